import { and, asc, desc, eq, gt, gte, lt, lte, type SQL, sql } from 'drizzle-orm'
import {
  CONSOLE_CLIENT,
  CONSOLE_NAME,
  type OrganizationId,
  type SessionId,
  type UserId,
} from '#src/lib/ids.ts'
import { countUpTo } from '#src/storage/counts.ts'
import { notPurged } from '#src/storage/purges.ts'
import { inSlices, SLICE } from '#src/storage/slices.ts'
import type { Queries, Store } from '#src/storage/store.ts'
import {
  foundBy,
  hasExpired,
  type Indexed,
  isActive,
  isCompared,
  matching,
  narrowest,
  type SessionFilter,
} from './filter-store.ts'
import type { Session } from './store.ts'

export type ListedSession = Session & { username: string }

/**
 * Returns a session that has neither ended nor expired at `now` (ms). If `organization_id` is given, returns
 * only a session of this organization.
 */
export const findActiveSession = async (
  q: Queries,
  find: { session_id: string; organization_id?: OrganizationId | undefined; now: number },
): Promise<ListedSession | undefined> => {
  const { now, organization_id } = find
  const filter = { session_id: find.session_id as SessionId, within: organization_id, now }
  const [session] = await selectListed(q, listed(q, filter, 'session_id'))
  return session
}

interface ListFilter extends SessionFilter {
  /** The organization that the caller is limited to. */
  within?: OrganizationId | undefined
  now: number
}

/** Returns the filter as conditions on the columns of a session. */
const asFilter = ({ within, now: _, ...filter }: ListFilter): SessionFilter => ({
  ...filter,
  organization_id: filter.organization_id ?? within,
})

/**
 * Condition for the sessions of the organization. `coalesce` keeps the query planner from choosing the index
 * of `organization_id`.
 */
const unindexedIn = ({ tables: { sessions } }: Queries, id: OrganizationId): SQL =>
  sql`coalesce(${sessions.organization_id}, ${sessions.organization_id}) = ${id}`

const listed = (q: Queries, list: ListFilter, by: Indexed | undefined): SQL | undefined => {
  const { within, now } = list
  const { sessions } = q.tables
  return and(
    matching(q.tables, asFilter(list), by),
    // If `organization_id` differs from `within`, no session matches.
    within && list.organization_id && unindexedIn(q, within),
    isActive(q.tables, now),
    notPurged(q, sessions.user_id, sessions.organization_id),
  )
}

const selectListed = async (q: Queries, condition: SQL | undefined, order?: SQL, limit = 1) => {
  const { sessions, users } = q.tables
  const rows = await q
    .select({ session: sessions, username: users.username })
    .from(sessions)
    .innerJoin(users, eq(users.id, sessions.user_id))
    .where(condition)
    .orderBy(order ?? asc(sessions.id))
    .limit(limit)
  return rows.map(({ session, username }) => ({ ...session, username }))
}

interface Start {
  order: 'asc' | 'desc'
  /** Id of the session after which the list starts. */
  after?: string | undefined
}

/**
 * Reads the matching sessions in slices. Calls `read` with the condition of each slice, until `read` returns
 * true or no slice is left. When an index finds exactly the matching sessions, there is only one slice.
 */
const readSlices = async (
  store: Store,
  list: ListFilter,
  { order, after }: Start,
  read: (q: Queries, condition: SQL | undefined) => Promise<boolean>,
): Promise<void> => {
  const [direction, beyond, upTo] = order === 'asc' ? [asc, gt, lte] : [desc, lt, gte]
  const filter = asFilter(list)
  const by = await store.read(q => narrowest(q, filter))
  await inSlices(after as SessionId | undefined, from =>
    store.read(async q => {
      const { id } = q.tables.sessions
      const next = from && beyond(id, from)
      const [end] = isCompared(filter, by)
        ? await q
            .select({ id })
            .from(q.tables.sessions)
            .where(and(foundBy(q.tables, filter, by), next))
            .orderBy(direction(id))
            .limit(1)
            .offset(SLICE - 1)
        : []
      const isDone = await read(q, and(listed(q, list, by), next, end && upTo(id, end.id)))
      return isDone ? undefined : end?.id
    }),
  )
}

/**
 * Returns active sessions in the order of their ids, ascending or descending. The id of a session is made
 * with its code, so this is the order in which the codes were issued.
 */
export const listSessions = async (
  store: Store,
  { order, after, limit, ...list }: ListFilter & Start & { limit: number },
): Promise<ListedSession[]> => {
  const rows: ListedSession[] = []
  await readSlices(store, list, { order, after }, async (q, condition) => {
    const { id } = q.tables.sessions
    const more = await selectListed(q, condition, (order === 'asc' ? asc : desc)(id), limit - rows.length)
    return rows.push(...more) === limit
  })
  return rows
}

/**
 * Counts active sessions. With a filter, the count stops at `most` + 1. Without a filter, the number comes
 * from stored counters.
 */
export const countSessions = async (store: Store, list: ListFilter, most: number): Promise<number> => {
  const { within, now, ...filter } = list
  if (Object.values(filter).every(value => value === undefined))
    return store.read(q => countAllSessions(q, within, now))
  let total = 0
  await readSlices(store, list, { order: 'desc' }, async (q, condition) => {
    const { sessions } = q.tables
    const found = q.select({ id: sessions.id }).from(sessions).where(condition)
    total += await countUpTo(q, found, most + 1 - total)
    return total > most
  })
  return total
}

const countAllSessions = async (
  q: Queries,
  within: OrganizationId | undefined,
  now: number,
): Promise<number> => {
  const { sessions, counters, purges } = q.tables
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
    and(hasExpired(q.tables, now), within && unindexedIn(q, within), notPurged(q, sessions.organization_id)),
  )
  return (counted?.total ?? 0) - ranOut
}

/**
 * Maximum number of sessions in a list without pages. A page of the admin API has the same limit
 * (`listQuery`). Older sessions are omitted.
 */
export const MAX_LISTED = 100

/**
 * Returns the newest active sessions of a user with the names of the clients. Returns at most `MAX_LISTED`
 * sessions.
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

/** True when more than `count` active sessions match the filter. */
export const hasMore = async (
  q: Queries,
  filter: SessionFilter,
  now: number,
  count: number,
): Promise<boolean> => {
  const { sessions } = q.tables
  const found = await q
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(matching(q.tables, filter, await narrowest(q, filter)), isActive(q.tables, now)))
    .limit(1)
    .offset(count)
  return found.length > 0
}
