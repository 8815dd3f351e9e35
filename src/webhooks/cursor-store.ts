import { asc, between, desc, gte, lt, min } from 'drizzle-orm'
import { CLOCK_SKEW } from '#src/lib/duration.ts'
import type { Queries } from '#src/storage/store.ts'

/**
 * Returns the `seq` before the first event at or after a time (ms); `last` when there is no such event. An
 * event with a smaller `seq` may have a later time, because writes run at the same time and clocks of copies
 * differ. The smallest `seq` is therefore searched among all events up to `CLOCK_SKEW` after the first event.
 */
export const seqBefore = async (q: Queries, from: number, last: number): Promise<number> => {
  const { seq, timestamp } = q.tables.events
  const [first] = await q
    .select({ timestamp })
    .from(q.tables.events)
    .where(gte(timestamp, from))
    .orderBy(asc(timestamp))
    .limit(1)
  if (!first) return last
  const [row] = await q
    .select({ seq: min(seq) })
    .from(q.tables.events)
    .where(between(timestamp, from, first.timestamp + CLOCK_SKEW))
  return row?.seq ? row.seq - 1 : last
}

/**
 * Returns the cursor of a webhook that gets the events since `from` (ms). On PostgreSQL an open transaction
 * may still store an event with a `seq` below `cursor`. The result is then lower than `cursor`, so that all
 * events after `settled` are read. `settled` is 0 in the transaction of a seed, and may be 0 soon after a
 * start. With this value the webhook would get the whole log, so events that are older than `from` by more
 * than `CLOCK_SKEW` are left out.
 */
export const settledCursor = async (
  q: Queries,
  { cursor, settled, from }: { cursor: number; settled: number; from: number },
): Promise<number> => {
  if (q.engine === 'sqlite' || settled >= cursor) return cursor
  const { seq, timestamp } = q.tables.events
  const [old] = await q
    .select({ seq })
    .from(q.tables.events)
    .where(lt(timestamp, from - CLOCK_SKEW))
    .orderBy(desc(timestamp), desc(seq))
    .limit(1)
  return Math.min(cursor, Math.max(settled, old?.seq ?? 0))
}
