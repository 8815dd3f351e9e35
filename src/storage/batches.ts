import { and, inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Transaction } from './store.ts'

/** Rows that one write takes away: a few milliseconds in which nobody else writes. */
export const BATCH = 250

/** Removes `limit` rows at most, and says how many there were: as many, and there may be more. */
export const removeSome = async (
  tx: Transaction,
  table: SQLiteTable,
  key: SQLiteColumn,
  where: SQL | undefined,
  limit: number,
): Promise<number> => {
  const some = tx.select({ key }).from(table).where(where).limit(limit)
  const removed = await tx
    .delete(table)
    .where(and(where, inArray(key, some)))
    .returning({ key })
  return removed.length
}
