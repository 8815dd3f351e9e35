import { and, desc, inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Store, Transaction } from './store.ts'

/**
 * Maximum number of rows that one write removes. A larger write would delay other writes or conflict with
 * them.
 */
export const DELETE_BATCH = 250
/**
 * Number of rows in the smallest batch and in the first batch on SQLite. In a batch below the minimum, the
 * commit would take longer than the deletion of the rows.
 */
const SMALLEST = 10
const FIRST = 50
/** Intended milliseconds of a batch on SQLite. All other writes wait for the batch. */
const BATCH_TIME = 4

/**
 * Runs `batch` in separate writes until `batch` returns 0, or a number for which `isLast` is true. Returns
 * the sum of the returned numbers. Other writes run between the batches. On SQLite the time of each batch
 * decides the size of the next batch. The time per row varies by a factor of fifty. It is shorter when the
 * pages of the row are in memory, and it depends on the kind of row.
 */
export const inBatches = async (
  store: Store,
  batch: (tx: Transaction, limit: number) => Promise<number>,
  isLast = (_count: number, _limit: number): boolean => false,
): Promise<number> => {
  let limit = store.engine === 'sqlite' ? FIRST : DELETE_BATCH
  for (let total = 0; ; ) {
    let took = 0
    const count = await store.write(async tx => {
      const began = performance.now()
      const rows = await batch(tx, limit)
      took = performance.now() - began
      return rows
    })
    if (count === 0) return total
    total += count
    if (isLast(count, limit)) return total
    await store.drained()
    if (store.engine === 'sqlite')
      limit = Math.min(Math.max(Math.round((limit * BATCH_TIME) / took), SMALLEST), DELETE_BATCH)
  }
}

/**
 * Deletes the matching rows of at most `limit` keys, and returns the number of deleted rows. If the number is
 * less than `limit`, no matching row remains. The number can exceed `limit` when several matching rows have
 * the same key.
 */
export const deleteBatch = async (
  tx: Transaction,
  table: SQLiteTable,
  key: SQLiteColumn,
  where: SQL | undefined,
  limit: number,
): Promise<number> => {
  const some = tx.select({ key }).from(table).where(where).limit(limit)
  // If `key` is the primary key, the selected keys are the only condition of the DELETE, because with `where`
  // as a further condition SQLite would search all rows that match `where`.
  const removed = await tx
    .delete(table)
    .where(and(key.primary ? undefined : where, inArray(key, some)))
    .returning({ key })
  return removed.length
}

/**
 * Selects the rows that match `where`. Keeps the `max` latest of these rows (by `order`), and deletes at most
 * `max` of the older rows. `max` deletions are enough, because callers add one row in each write.
 */
export const keepLatest = async (
  tx: Transaction,
  table: SQLiteTable,
  { key, order, where, max }: { key: SQLiteColumn; order: SQLiteColumn; where: SQL | undefined; max: number },
): Promise<void> => {
  const surplus = tx.select({ key }).from(table).where(where).orderBy(desc(order)).offset(max).limit(max)
  await tx.delete(table).where(and(where, inArray(key, surplus)))
}
