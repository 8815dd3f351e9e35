import { type Column, notExists, type SQL, sql } from 'drizzle-orm'
import type { Queries } from './store.ts'

/** Returns the condition that no row named by these columns is deleted and waiting for its purge. */
export const notPurged = (q: Queries, ...columns: [Column, ...Column[]]): SQL => {
  const { purges } = q.tables
  const named = sql.join(columns, sql`, `)
  return notExists(q.select({ id: purges.id }).from(purges).where(sql`${purges.id} IN (${named})`))
}
