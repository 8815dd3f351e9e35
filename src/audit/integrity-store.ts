import { asc, getTableColumns, gt, sql } from 'drizzle-orm'
import type { Queries } from '#src/storage/store.ts'

/**
 * Returns the events after `seq` in the order of writing, as stored, to verify their `mac`. `metadata` stays
 * unparsed: parsing a damaged event could fail.
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
