import { and, eq } from 'drizzle-orm'
import { beyond, byCreation, countUpTo, type Range } from '#src/directory/store.ts'
import { COUNT_LIMIT } from '#src/http/count-limit.ts'
import type { LogoutRow } from '#src/sessions/logout-store.ts'
import type { Queries } from '#src/storage/store.ts'

/** Returns a page of a client's logouts, in the order of creation. */
export const listLogouts = (q: Queries, client_id: string, range: Range): Promise<LogoutRow[]> => {
  const { logouts } = q.tables
  const { created_at, jti } = logouts
  return q
    .select()
    .from(logouts)
    .where(and(eq(logouts.client_id, client_id), beyond(range, created_at, jti)))
    .orderBy(...byCreation(range.order, created_at, jti))
    .limit(range.limit)
}

/** Counts the logouts of a client. The result 10,001 means more than 10,000. */
export const countLogouts = (q: Queries, client_id: string): Promise<number> => {
  const { logouts } = q.tables
  const found = q.select({ number: logouts.number }).from(logouts).where(eq(logouts.client_id, client_id))
  return countUpTo(q, found, COUNT_LIMIT + 1)
}
