import { type Column, notExists, type SQL, sql } from 'drizzle-orm'
import type { Queries } from './store.ts'

/** Condition: none of what these columns name has been deleted and still waits for its rows to be removed. */
export const notPurged = (q: Queries, ...columns: [Column, ...Column[]]): SQL => {
  const { purges } = q.tables
  const named = sql.join(columns, sql`, `)
  return notExists(q.select({ id: purges.id }).from(purges).where(sql`${purges.id} IN (${named})`))
}
