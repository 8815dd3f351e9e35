import { and, asc, desc, eq, gt, lt, type SQL, sql } from 'drizzle-orm'
import {
  CONSOLE_CLIENT,
  CONSOLE_NAME,
  type OrganizationId,
  type SessionId,
  type UserId,
} from '#src/lib/ids.ts'
import { notPurged } from '#src/storage/purges.ts'
import type { Queries } from '#src/storage/store.ts'
import { hasExpired, isActive, matching, type SessionFilter } from './filter-store.ts'
import type { Session } from './store.ts'

export type ListedSession = Session & { username: string }

/**
 * Returns a session that has neither ended nor expired at `now` (ms); with `organization_id` only a session
 * of that organization.
 */
export const findActiveSession = async (
  q: Queries,
  find: { session_id: string; organization_id?: OrganizationId | undefined; now: number },
): Promise<ListedSession | undefined> => {
  const { now, organization_id } = find
  const [session] = await selectListed(q, {
    session_id: find.session_id as SessionId,
    within: organization_id,
    now,
  })
  return session
}

interface ListFilter extends SessionFilter {
  /** The organization that the caller is limited to. */
  within?: OrganizationId | undefined
  now: number
}

const listed = (q: Queries, { within, now, ...filter }: ListFilter): SQL | undefined =>
  and(
    matching(q.tables, filter),
    within && eq(q.tables.sessions.organization_id, within),
    isActive(q.tables, now),
    notPurged(q, q.tables.sessions.user_id, q.tables.sessions.organization_id),
  )

const selectListed = async (q: Queries, filter: ListFilter, beyond?: SQL, order?: SQL, limit = 1) => {
  const { sessions, users } = q.tables
  const rows = await q
    .select({ session: sessions, username: users.username })
    .from(sessions)
    .innerJoin(users, eq(users.id, sessions.user_id))
    .where(and(listed(q, filter), beyond))
    .orderBy(order ?? asc(sessions.id))
    .limit(limit)
  return rows.map(({ session, username }) => ({ ...session, username }))
}

/**
 * Returns active sessions in the order of their ids, which is the order in which they started. `after` is the
 * last id of the previous page.
 */
export const listSessions = (
  q: Queries,
  list: ListFilter & { order: 'asc' | 'desc'; after?: string | undefined; limit: number },
): Promise<ListedSession[]> => {
  const { order, after, limit, ...filter } = list
  const { id } = q.tables.sessions
  const beyond = after === undefined ? undefined : (order === 'asc' ? gt : lt)(id, after as SessionId)
  return selectListed(q, filter, beyond, order === 'asc' ? asc(id) : desc(id), limit)
}

/**
 * Counts active sessions. With a filter the number is exact up to `most`, and `most` + 1 beyond it. Without a
 * filter it comes from the counters.
 */
export const countSessions = async (q: Queries, filter: ListFilter, most: number): Promise<number> => {
  const { sessions, counters, purges } = q.tables
  const { within, now, ...narrowing } = filter
  if (Object.values(narrowing).some(given => given !== undefined)) {
    const found = q
      .select({ id: sessions.id })
      .from(sessions)
      .where(listed(q, filter))
      .limit(most + 1)
    const [counted] = await q.select({ total: sql<number>`count(*)` }).from(found.as('found'))
    return counted?.total ?? 0
  }
  const [counted] = await q
    .select({ total: sql<number | null>`sum(${counters.total})` })
    .from(counters)
    .where(
      and(
        eq(counters.kind, 'sessions'),
        within && eq(counters.organization_id, within),
        sql`${counters.organization_id} NOT IN (SELECT ${purges.id} FROM ${purges})`,
      ),
    )
  // Expired sessions stay in the counter until the sweep ends them.
  const ranOut = await q.$count(
    sessions,
    and(hasExpired(q.tables, now), within && eq(sessions.organization_id, within)),
  )
  return (counted?.total ?? 0) - ranOut
}

/**
 * Maximum number of sessions in a list without pages, the same as on a page of the admin API (`listQuery`).
 * Older sessions are left out.
 */
const MAX_LISTED = 100

/**
 * Returns the newest active sessions of a user with the names of their clients: at most 100, all on one page.
 */
export const listUserSessions = async (q: Queries, user_id: UserId, now: number) => {
  const { sessions, clients, dynamic_clients } = q.tables
  const rows = await q
    .select({
      session: sessions,
      client_name: sql<string | null>`coalesce(${clients.name}, ${dynamic_clients.name})`,
    })
    .from(sessions)
    .leftJoin(clients, eq(clients.client_id, sessions.client_id))
    .leftJoin(dynamic_clients, eq(dynamic_clients.client_id, sessions.client_id))
    .where(
      and(eq(sessions.user_id, user_id), isActive(q.tables, now), notPurged(q, sessions.organization_id)),
    )
    .orderBy(desc(sessions.id))
    .limit(MAX_LISTED)
  return rows.map(({ session, client_name }) => ({
    ...session,
    // The console's client has no row.
    client_name: client_name ?? (session.client_id === CONSOLE_CLIENT ? CONSOLE_NAME : session.client_id),
  }))
}
