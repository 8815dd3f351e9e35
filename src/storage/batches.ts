import { and, desc, inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Transaction } from './store.ts'

/** Rows that one write removes: other writes wait for a few milliseconds. */
export const DELETE_BATCH = 250

/** Deletes at most `limit` rows and returns their number. When it equals `limit`, there may be more. */
export const deleteBatch = async (
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

/**
 * Deletes the rows that match `where` beyond the `max` latest by `order`, up to `max` of them. A write that
 * adds one row at a time leaves at most one surplus row.
 */
export const keepLatest = async (
  tx: Transaction,
  table: SQLiteTable,
  { key, order, where, max }: { key: SQLiteColumn; order: SQLiteColumn; where: SQL | undefined; max: number },
): Promise<void> => {
  const surplus = tx.select({ key }).from(table).where(where).orderBy(desc(order)).offset(max).limit(max)
  await tx.delete(table).where(and(where, inArray(key, surplus)))
}
