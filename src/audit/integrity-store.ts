import { asc, getTableColumns, gt, sql } from 'drizzle-orm'
import type { Queries } from '#src/storage/store.ts'

/**
 * The events after one, in the order of writing and as they are stored, for comparing each with its `mac`: nothing is
 * parsed, which a damaged one might not bear.
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
