import { eventLine } from '#src/audit/retention.ts'
import { eventsAfter } from '#src/audit/store.ts'
import { ConfigError, loadConfig } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { openExisting } from './instance.ts'
import { write } from './print.ts'

/** Events per read. A read of this size takes about 500 kB of memory, and a long log takes few reads. */
const BATCH = 1_000

/**
 * Prints the events of the database as JSON Lines, oldest first. Events that `event_retention` has moved to
 * files are not printed, because these files are JSON Lines already.
 */
export const eventsExport = async (options: { config?: string; since?: string }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const { since: text = '1970-01-01' } = options
  // A time without a zone, and a date such as 2026-1-31, are refused, because `Date.parse` would read them in
  // the zone of this machine.
  const since = /^\d{4}(-\d\d){0,2}$|(Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(since)) throw new ConfigError('--since: not a time such as 2026-01-31T08:00:00Z.')
  const { store } = await openExisting(config, silentLog)
  try {
    for (let after = 0; ; ) {
      const rows = await store.read(q => eventsAfter(q, after, BATCH))
      const lines = rows.filter(({ timestamp }) => timestamp >= since).map(eventLine)
      if (!write(lines.join('')) || rows.length < BATCH) return
      after = rows.at(-1)?.seq ?? after
    }
  } finally {
    await store.close()
  }
}
