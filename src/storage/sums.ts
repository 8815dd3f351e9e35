import type { Amounts, Sum, Transaction } from './store.ts'

/** One call of `Transaction.add`. */
export type Added = readonly [sum: Sum, key: string, amounts: Amounts]

/**
 * Writes each row once, with the sum of its amounts. The writes of a commit usually add to the same row, the
 * row of the current hour.
 */
export const writeSums = async (tx: Transaction, added: readonly Added[]): Promise<void> => {
  const totals = new Map<Sum, Map<string, Record<string, number>>>()
  for (const [sum, key, amounts] of added) {
    const rows = totals.get(sum) ?? new Map<string, Record<string, number>>()
    totals.set(sum, rows)
    const total = rows.get(key) ?? {}
    rows.set(key, total)
    for (const name in amounts) total[name] = (total[name] ?? 0) + (amounts[name] ?? 0)
  }
  // The rows are sorted, so that all copies of the server lock rows in the same order. They thus cannot
  // deadlock.
  for (const [sum, rows] of totals)
    for (const [key, amounts] of [...rows].sort(([a], [b]) => (a < b ? -1 : 1)))
      await tx.later(sum(tx, key, amounts))
}
