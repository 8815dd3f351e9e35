import { and, asc, type Column, desc, eq, gt, inArray, isNull, lt, lte, ne, type SQL, sql } from 'drizzle-orm'
import type { LoginId, OrganizationId, SessionId, UserId } from '#src/lib/ids.ts'
import { deleteBatch } from '#src/storage/batches.ts'
import { notPurged } from '#src/storage/purges.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Session = Tables['sessions']['$inferSelect']
export type NewSession = Omit<Session, 'last_active_at' | 'due_at' | 'ended_at' | 'tokens_valid_until'>
export type ListedSession = Session & { username: string }

/** Selects the sessions that match every field present. */
export interface SessionFilter {
  session_id?: SessionId | undefined
  user_id?: UserId | undefined
  client_id?: string | undefined
  organization_id?: OrganizationId | undefined
  login_id?: LoginId | undefined
  /** Excludes the sessions of this login. */
  except_login_id?: LoginId | undefined
}

const placeholder = sql.placeholder

const isActive = ({ sessions }: Tables, now: number) =>
  and(isNull(sessions.ended_at), gt(sessions.expires_at, now))

/** Condition for expired sessions. `due_at` is never later than `expires_at`, so its index finds them. */
const hasExpired = ({ sessions }: Tables, now: number) =>
  and(isNull(sessions.ended_at), lte(sessions.due_at, now), lte(sessions.expires_at, now))

const insertSession = prepared((q, { sessions }) =>
  q.insert(sessions).values({
    id: placeholder('id'),
    user_id: placeholder('user_id'),
    client_id: placeholder('client_id'),
    organization_id: placeholder('organization_id'),
    login_id: placeholder('login_id'),
    scope: placeholder('scope'),
    ip_address: placeholder('ip_address'),
    user_agent: placeholder('user_agent'),
    location: placeholder('location'),
    started_at: placeholder('started_at'),
    last_active_at: placeholder('started_at'),
    expires_at: placeholder('expires_at'),
    due_at: placeholder('expires_at'),
    ends_by: placeholder('ends_by'),
    refresh_hash: placeholder('refresh_hash'),
  }),
)

export const createSession = async (tx: Transaction, session: NewSession): Promise<void> => {
  await tx.later(insertSession(tx, session))
}

const selectHolder = prepared((q, { sessions, users }) =>
  q
    .select({
      id: users.id,
      organization_id: users.organization_id,
      username: users.username,
      email: users.email,
      email_verified: users.email_verified,
      first_name: users.first_name,
      last_name: users.last_name,
      updated_at: users.updated_at,
    })
    .from(sessions)
    .innerJoin(users, eq(users.id, sessions.user_id))
    .where(
      and(
        eq(sessions.id, placeholder('session_id')),
        eq(sessions.user_id, placeholder('user_id')),
        isNull(sessions.tokens_valid_until),
        eq(users.enabled, true),
        notPurged(q, sessions.organization_id),
      ),
    ),
)

export type Holder = NonNullable<Awaited<ReturnType<typeof findHolder>>>

/**
 * Returns the user of an access token; undefined when the token is revoked or the user deleted or disabled.
 */
export const findHolder = async (q: Queries, token: { session_id: SessionId; user_id: UserId }) => {
  const [holder] = await selectHolder(q, token)
  return holder
}

/** Undefined values add no condition; an empty text, as a form may send it, matches no row. */
const equal = (column: Column, value: string | undefined): SQL | undefined =>
  value === undefined ? undefined : eq(column, value)

const matching = ({ sessions }: Tables, filter: SessionFilter): SQL | undefined =>
  and(
    equal(sessions.id, filter.session_id),
    equal(sessions.user_id, filter.user_id),
    equal(sessions.client_id, filter.client_id),
    equal(sessions.organization_id, filter.organization_id),
    equal(sessions.login_id, filter.login_id),
    filter.except_login_id && ne(sessions.login_id, filter.except_login_id),
  )

/** Ends the matching active sessions, at most `limit`, and invalidates their access tokens. */
export const endSessions = async (
  tx: Transaction,
  filter: SessionFilter,
  now: number,
  limit: number,
): Promise<Session[]> => {
  const { sessions } = tx.tables
  const active = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(matching(tx.tables, filter), isActive(tx.tables, now)))
    .limit(limit)
  const ended = await tx
    .update(sessions)
    .set({ ended_at: now, tokens_valid_until: now })
    .where(inArray(sessions.id, active))
    .returning()
  // The engine returns rows in any order; events are recorded in the order in which the sessions started.
  return ended.sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Invalidates the access tokens of matching sessions that have ended or expired. */
export const refuseTokens = async (tx: Transaction, filter: SessionFilter, now: number): Promise<void> => {
  const { sessions } = tx.tables
  await tx
    .update(sessions)
    .set({ tokens_valid_until: now })
    .where(and(matching(tx.tables, filter), isNull(sessions.tokens_valid_until)))
}

/** Ends the matching active sessions, at most `limit`; their access tokens stay valid until they expire. */
export const closeSessions = (
  tx: Transaction,
  filter: SessionFilter,
  now: number,
  limit: number,
): Promise<Session[]> => {
  const { sessions } = tx.tables
  const active = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(matching(tx.tables, filter), isActive(tx.tables, now)))
    .limit(limit)
  return tx.update(sessions).set({ ended_at: now }).where(inArray(sessions.id, active)).returning()
}

/** Sets `due_at` of sessions that were refreshed since to their `expires_at`. Returns their number. */
export const postponeSessions = async (tx: Transaction, now: number, limit: number): Promise<number> => {
  const { sessions } = tx.tables
  const prolonged = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(isNull(sessions.ended_at), lte(sessions.due_at, now), gt(sessions.expires_at, now)))
    .limit(limit)
  const postponed = await tx
    .update(sessions)
    .set({ due_at: sql`${sessions.expires_at}` })
    .where(inArray(sessions.id, prolonged))
    .returning({ id: sessions.id })
  return postponed.length
}

/** Ends expired sessions as of their expiry. Each session is returned by exactly one call. */
export const expireSessions = (tx: Transaction, now: number, limit: number): Promise<Session[]> => {
  const { sessions } = tx.tables
  const due = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(hasExpired(tx.tables, now), notPurged(tx, sessions.user_id, sessions.organization_id)))
    .limit(limit)
  return tx
    .update(sessions)
    .set({ ended_at: sql`${sessions.expires_at}` })
    .where(inArray(sessions.id, due))
    .returning()
}

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

/** Returns active sessions by id, hence by start time; `after` is the last id of the previous page. */
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
 * Counts active sessions: with a filter exactly up to `most`, then `most` + 1; without one from the counters.
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

/** Returns the 100 newest active sessions of a user with the names of their clients. */
export const listUserSessions = async (q: Queries, user_id: UserId, now: number) => {
  const { sessions, clients } = q.tables
  const rows = await q
    .select({ session: sessions, client_name: clients.name })
    .from(sessions)
    .leftJoin(clients, eq(clients.client_id, sessions.client_id))
    .where(
      and(eq(sessions.user_id, user_id), isActive(q.tables, now), notPurged(q, sessions.organization_id)),
    )
    .orderBy(desc(sessions.id))
    .limit(100)
  return rows.map(({ session, client_name }) => ({
    ...session,
    client_name: client_name ?? session.client_id,
  }))
}

/**
 * Removes sessions that ended before `ended_before`, when their access tokens have expired too. Returns their
 * number.
 */

export const removeEndedSessions = (
  tx: Transaction,
  ended_before: number,
  limit: number,
): Promise<number> => {
  const { sessions } = tx.tables
  return deleteBatch(tx, sessions, sessions.id, lte(sessions.ended_at, ended_before), limit)
}
