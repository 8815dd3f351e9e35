import { asc, getTableColumns, gt, sql } from 'drizzle-orm'
import type { Queries } from '#src/storage/store.ts'

/**
 * Returns the events after `seq` as they are stored, in the order of writing. The caller verifies their
 * `mac`. `metadata` is not parsed, because the JSON of a damaged event may be invalid.
 */
export const storedAfter = async (q: Queries, seq: number, limit: number) => {
  const { events } = q.tables
  const { metadata, ...columns } = getTableColumns(events)
  return q
    .select({ ...columns, metadata: sql<string>`${metadata}` })
    .from(events)
    .where(gt(events.seq, seq))
    .orderBy(asc(events.seq))
    .limit(limit)
}
