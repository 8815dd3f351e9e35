import { pino } from 'pino'
import { eventsAfter } from '#src/audit/store.ts'
import { loadConfig } from '#src/config.ts'
import { iso } from '#src/lib/text.ts'
import { openExisting } from './instance.ts'

const BATCH = 1_000

/** The audit log, oldest first, an event a line (JSON Lines): to be kept before a retention removes what is old. */
export const eventsExport = async (options: { config?: string; since?: string }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const since = Date.parse(options.since ?? '1970-01-01')
  if (Number.isNaN(since)) throw new Error('--since takes a time such as 2026-01-31T08:00:00Z')
  const { store } = await openExisting(config, pino({ level: 'silent' }))
  const output = Bun.stdout.writer()
  try {
    for (let after = 0; ; ) {
      const rows = await store.read(q => eventsAfter(q, after, BATCH))
      for (const { seq, subject_id, mac, timestamp, ...event } of rows) {
        after = seq
        if (timestamp >= since) output.write(`${JSON.stringify({ ...event, timestamp: iso(timestamp) })}\n`)
      }
      await output.flush()
      if (rows.length < BATCH) return
    }
  } finally {
    await store.close()
  }
}
