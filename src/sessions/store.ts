import { and, desc, eq, gt, inArray, isNull, lte, sql } from 'drizzle-orm'
import type { SessionId, UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { notPurged } from '#src/storage/purges.ts'
import { counting, prepared, preparedForStart, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import { hasExpired, isActive, matching, narrowest, type SessionFilter } from './filter-store.ts'

export type Session = Tables['sessions']['$inferSelect']
export type NewSession = Omit<
  Session,
  'last_active_at' | 'due_at' | 'ended_at' | 'tokens_valid_until' | 'resources' | 'authentication'
> &
  Partial<Pick<Session, 'resources' | 'authentication'>>

const placeholder = sql.placeholder

const insertSession = counting(
  preparedForStart('insert session', (q, { sessions }) =>
    q
      .insert(sessions)
      .values({
        id: placeholder('id'),
        user_id: placeholder('user_id'),
        client_id: placeholder('client_id'),
        organization_id: placeholder('organization_id'),
        login_id: placeholder('login_id'),
        scope: placeholder('scope'),
        resources: placeholder('resources'),
        ip_address: placeholder('ip_address'),
        user_agent: placeholder('user_agent'),
        location: placeholder('location'),
        started_at: placeholder('started_at'),
        last_active_at: placeholder('started_at'),
        expires_at: placeholder('expires_at'),
        due_at: placeholder('expires_at'),
        ends_by: placeholder('ends_by'),
        refresh_hash: placeholder('refresh_hash'),
        authentication: placeholder('authentication'),
      })
      .onConflictDoNothing(),
  ),
)

/**
 * Inserts a session and returns true. Returns false when a session with the id exists. The caller decides the
 * lifetime of the session (oauth/grants/authorization-code.ts). No SELECT looks for the id first. On
 * PostgreSQL a SELECT of an absent id would conflict with every session that starts at the same time, because
 * the ids of these sessions share an index page.
 */
export const createSession = (tx: Transaction, session: NewSession): Promise<boolean> =>
  insertSession(tx, { resources: null, authentication: null, ...session }).then(inserted => inserted > 0)

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
      attributes: users.attributes,
      picture: users.picture,
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
 * Returns the user of an access token. Returns undefined when the token is revoked, when the user is deleted
 * or disabled, or when the organization is deleted.
 */
export const findHolder = (q: Queries, token: { session_id: SessionId; user_id: UserId }) =>
  selectHolder(q, token).then(([holder]) => holder)

const selectRefreshable = prepared((q, { sessions, users }) =>
  q
    .select({
      id: sessions.id,
      refresh_hash: sessions.refresh_hash,
      started_at: sessions.started_at,
      last_active_at: sessions.last_active_at,
      client_id: sessions.client_id,
      user_id: sessions.user_id,
      scope: sessions.scope,
      resources: sessions.resources,
      expires_at: sessions.expires_at,
      due_at: sessions.due_at,
      ends_by: sessions.ends_by,
      ended_at: sessions.ended_at,
      authentication: sessions.authentication,
      organization_id: users.organization_id,
      username: users.username,
      email: users.email,
      email_verified: users.email_verified,
      first_name: users.first_name,
      last_name: users.last_name,
      enabled: users.enabled,
      active_at: users.active_at,
    })
    .from(sessions)
    .innerJoin(users, eq(users.id, sessions.user_id))
    .where(and(eq(sessions.id, placeholder('session_id')), notPurged(q, sessions.organization_id))),
)

/** Returns the session of a refresh token, in any state, with its user. */
export const findRefreshable = (q: Queries, session_id: SessionId) =>
  selectRefreshable(q, { session_id }).then(([found]) => found)

const rotate = counting(
  prepared((q, { sessions }) =>
    q
      .update(sessions)
      .set({
        refresh_hash: sql`${placeholder('next_hash')}`,
        last_active_at: sql`${placeholder('now')}`,
        expires_at: sql`${placeholder('expires_at')}`,
      })
      .where(
        and(
          eq(sessions.id, placeholder('session_id')),
          eq(sessions.refresh_hash, placeholder('current_hash')),
          isNull(sessions.ended_at),
        ),
      ),
  ),
)

/**
 * Replaces the refresh token of a session and extends the session. Returns false when a concurrent request
 * has replaced the token, or when the session has ended.
 */
export const refreshSession = async (
  tx: Transaction,
  { id, due_at }: { id: SessionId; due_at: number },
  change: { current_hash: SecretHash; next_hash: SecretHash; now: number; expires_at: number },
): Promise<boolean> => {
  const rotated = await rotate(tx, { session_id: id, ...change })
  if (rotated !== 1) return false
  // The statement above does not set `due_at`. An UPDATE that sets this column writes to the index of the
  // column, even when the value stays the same.
  const { sessions } = tx.tables
  if (change.expires_at < due_at)
    await tx.update(sessions).set({ due_at: change.expires_at }).where(eq(sessions.id, id))
  return true
}

/**
 * Extends a session of the login at the client: the newest active one with this scope and no APIs. The
 * session now ends `lifetime` ms after `now`, but never later than `ends_by`. Returns the former state of the
 * session. Returns undefined when the login has no such session.
 */
export const extendSession = async (
  tx: Transaction,
  of: Pick<Session, 'login_id' | 'client_id' | 'scope'>,
  now: number,
  lifetime: number,
): Promise<Session | undefined> => {
  const { sessions } = tx.tables
  const { login_id, client_id } = of
  const [found] = await tx
    .select()
    .from(sessions)
    .where(
      and(
        matching(tx.tables, { login_id, client_id }, 'login_id'),
        eq(sessions.scope, of.scope),
        isNull(sessions.resources),
        isActive(tx.tables, now),
      ),
    )
    .orderBy(desc(sessions.id))
    .limit(1)
  if (!found) return undefined
  const expires_at = Math.min(now + lifetime, found.ends_by ?? Number.POSITIVE_INFINITY)
  // A later `due_at` is not stored: when the session is due, the sweep reads `expires_at`. `expires_at` is
  // earlier than `due_at` only after the clock was set back.
  const times = { last_active_at: now, expires_at, ...(expires_at < found.due_at && { due_at: expires_at }) }
  await tx.update(sessions).set(times).where(eq(sessions.id, found.id))
  return found
}

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
    .where(and(matching(tx.tables, filter, await narrowest(tx, filter)), isActive(tx.tables, now)))
    .limit(limit)
  const ended = await tx
    .update(sessions)
    .set({ ended_at: now, tokens_valid_until: now })
    .where(inArray(sessions.id, active))
    .returning()
  // The engine returns rows in any order. Events are recorded in the order of the ids of their sessions.
  return ended.sort((a, b) => (a.id < b.id ? -1 : 1))
}

/**
 * Invalidates the access tokens of all matching sessions, whether active, ended or expired. Otherwise the
 * tokens of a session that `closeSessions` has ended could still be used.
 */
export const refuseTokens = async (tx: Transaction, filter: SessionFilter, now: number): Promise<void> => {
  const { sessions } = tx.tables
  await tx
    .update(sessions)
    .set({ tokens_valid_until: now })
    .where(and(matching(tx.tables, filter, await narrowest(tx, filter)), isNull(sessions.tokens_valid_until)))
}

/**
 * Ends the matching active sessions, at most `limit`. Access tokens of these sessions stay valid until they
 * expire.
 */
export const closeSessions = async (
  tx: Transaction,
  filter: SessionFilter,
  now: number,
  limit: number,
): Promise<Session[]> => {
  const { sessions } = tx.tables
  const active = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(matching(tx.tables, filter, await narrowest(tx, filter)), isActive(tx.tables, now)))
    .limit(limit)
  return tx.update(sessions).set({ ended_at: now }).where(inArray(sessions.id, active)).returning()
}

/**
 * Looks at the first `limit` sessions that are due and have not ended. Sets `due_at` to `expires_at` for each
 * of these sessions that now expires after `now`. Returns the number of changed sessions.
 */
export const postponeSessions = async (tx: Transaction, now: number, limit: number): Promise<number> => {
  const { sessions } = tx.tables
  const due = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(isNull(sessions.ended_at), lte(sessions.due_at, now)))
    .orderBy(sessions.due_at)
    .limit(limit)
  const postponed = await tx
    .update(sessions)
    .set({ due_at: sql`${sessions.expires_at}` })
    .where(and(inArray(sessions.id, due), gt(sessions.expires_at, now)))
    .returning({ id: sessions.id })
  return postponed.length
}

/**
 * Ends expired sessions and returns them. `ended_at` becomes the time at which the session expired. Each
 * session is returned by exactly one call.
 */
export const expireSessions = (tx: Transaction, now: number, limit: number): Promise<Session[]> => {
  const { sessions } = tx.tables
  const due = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(hasExpired(tx.tables, now), notPurged(tx, sessions.user_id, sessions.organization_id)))
    .orderBy(sessions.due_at)
    .limit(limit)
  return tx
    .update(sessions)
    .set({ ended_at: sql`${sessions.expires_at}` })
    .where(inArray(sessions.id, due))
    .returning()
}

/** Returns the ids of up to `limit` sessions that ended at `ended_before` (ms) or earlier. */
export const listEnded = async (q: Queries, ended_before: number, limit: number): Promise<SessionId[]> => {
  const { sessions: t } = q.tables
  const found = await q.select({ id: t.id }).from(t).where(lte(t.ended_at, ended_before)).limit(limit)
  return found.map(({ id }) => id)
}

/** Removes sessions. */
export const removeSessions = async (tx: Transaction, ids: SessionId[]): Promise<void> => {
  const { sessions } = tx.tables
  await tx.delete(sessions).where(inArray(sessions.id, ids))
}
