import { and } from 'drizzle-orm'
import { beyond, byCreation, type Range } from '#src/directory/store.ts'
import { isOfClient, type LogoutRow } from '#src/sessions/logout-store.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import type { Queries } from '#src/storage/store.ts'
import type { Client } from './store.ts'

/** Returns a page of a client's logouts, in the order of creation. */
export const listLogouts = (q: Queries, client: Client, range: Range): Promise<LogoutRow[]> => {
  const { logouts } = q.tables
  const { created_at, jti } = logouts
  return q
    .select()
    .from(logouts)
    .where(and(isOfClient(q, client), beyond(range, created_at, jti)))
    .orderBy(...byCreation(range.order, created_at, jti))
    .limit(range.limit)
}

/** Counts the logouts of a client. The result 10,001 means more than 10,000. */
export const countLogouts = (q: Queries, client: Client): Promise<number> => {
  const { logouts } = q.tables
  const found = q.select({ number: logouts.number }).from(logouts).where(isOfClient(q, client))
  return countUpTo(q, found, COUNT_LIMIT + 1)
}
