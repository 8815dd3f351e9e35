import { type Actor, hostActor, type NewEvent, record } from '#src/audit/record.ts'
import type { Core } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { LoginId, OrganizationId, UserId } from '#src/lib/ids.ts'
import { othersRun } from '#src/lib/turn.ts'
import type { Transaction } from '#src/storage/store.ts'
import type { SessionFilter } from './filter-store.ts'
import { hasMore } from './list-store.ts'
import { endLogins, revokeCodes } from './login-store.ts'
import { enqueueLogouts } from './logout-store.ts'
import {
  closeSessions,
  endSessions,
  expireSessions,
  type NewSession,
  postponeSessions,
  refuseTokens,
  type Session,
} from './store.ts'

/** Actor, client info and reason that `session.revoked` records. */
export interface RevokedBy {
  actor: Actor
  client_info: ClientInfo
  reason: string
}

/** Returns the event of a session that has begun. */
export const sessionCreated = ({ email, ...session }: NewSession & { email: string }): NewEvent => ({
  type: 'session.created',
  actor: { id: session.user_id, email },
  target_id: session.id,
  target_type: 'session',
  organization_id: session.organization_id,
  client_info: session,
  metadata: { client_id: session.client_id },
  subject_id: session.user_id,
})

/**
 * Revokes the active sessions that match the filter, at most `limit`. Returns their number.
 *
 * - Their refresh tokens and access tokens become invalid, and the logins of the sessions end.
 * - A filter by user, login or session also invalidates access tokens of sessions that had ended before.
 * - A filter by user, without session or login, also revokes the user's unredeemed codes (only those of
 * `client_id` if the filter has one).
 *
 * `revokeUser` ends the user's logins and pending links as well.
 */
export const revokeSessions = async (
  context: Core,
  tx: Transaction,
  filter: SessionFilter,
  by: RevokedBy,
  limit = Number.MAX_SAFE_INTEGER,
): Promise<number> => {
  const ended = await revokeSessionsAlone(context, tx, filter, by, limit)
  const { session_id, user_id, login_id, except_login_id, client_id, organization_id } = filter
  if (ended.length > 0) await endLogins(tx, [...new Set(ended.map(session => session.login_id))])
  if (!user_id || session_id || login_id) return ended.length
  await revokeCodes(tx, { user_id, client_id, organization_id, except_login_id })
  return ended.length
}

/** Revokes sessions as `revokeSessions` does, but keeps logins and codes. Returns the revoked sessions. */
export const revokeSessionsAlone = async (
  context: Core,
  tx: Transaction,
  filter: SessionFilter,
  by: RevokedBy,
  limit = Number.MAX_SAFE_INTEGER,
): Promise<Session[]> => {
  const now = context.clock.now()
  const ended = await endSessions(tx, filter, now, limit)
  if (filter.session_id ?? filter.user_id ?? filter.login_id) await refuseTokens(tx, filter, now)
  for (const session of ended) await recordRevoked(context, tx, session, by)
  await enqueueLogouts(tx, ended, now)
  return ended
}

/**
 * Maximum number of sessions that one write of `revokeMost` ends. Other writes wait for that write; on SQLite
 * all requests wait.
 */
const PORTION = 500

/**
 * Revokes sessions that match the filter until the remaining sessions fit into one write. It makes several
 * writes, and other requests run between them. It is called before a write that has to revoke all sessions
 * together with another change, because a program can begin thousands of sessions of one user. Logins, codes
 * and links are kept. Sessions that begin meanwhile are left to the later write. If `revokeMost` revoked them
 * too, a program that keeps beginning sessions could delay that write for ever.
 */
export const revokeMost = async (context: Core, filter: SessionFilter, by: RevokedBy): Promise<void> => {
  const { store, clock } = context
  const known = { ...filter, started_by: clock.now() }
  while (await store.read(q => hasMore(q, known, clock.now(), PORTION))) {
    await store.drained()
    await store.write(async tx => {
      const now = clock.now()
      const ended = await endSessions(tx, known, now, PORTION)
      for (const session of ended) await recordRevoked(context, tx, session, by)
      await enqueueLogouts(tx, ended, now)
    })
    await othersRun()
  }
}

const recordRevoked = (context: Core, tx: Transaction, session: Session, by: RevokedBy): Promise<void> =>
  record(context, tx, {
    type: 'session.revoked',
    actor: by.actor,
    target_id: session.id,
    target_type: 'session',
    organization_id: session.organization_id,
    client_info: by.client_info,
    metadata: { user_id: session.user_id, client_id: session.client_id, reason: by.reason },
    subject_id: session.user_id,
  })

/** Revokes one session as {@link revokeSessions} does. */
export const revokeSession = async (
  context: Core,
  tx: Transaction,
  session: Pick<Session, 'id'>,
  by: RevokedBy,
): Promise<void> => {
  await revokeSessions(context, tx, { session_id: session.id }, by)
}

/**
 * Ends sessions. Their logins continue, and their access tokens stay valid until they expire or the user is
 * deleted or disabled. /oauth/revoke and the deletion of clients and users end sessions in this way, because
 * these calls are no sign of a stolen token or login.
 */
export const releaseSessions = async (
  context: Core,
  tx: Transaction,
  filter: SessionFilter,
  limit = Number.MAX_SAFE_INTEGER,
): Promise<Session[]> => {
  const now = context.clock.now()
  const closed = await closeSessions(tx, filter, now, limit)
  await enqueueLogouts(tx, closed, now)
  return closed
}

/**
 * Ends expired sessions, at most `limit`, and records an event for each. Returns the number of due sessions
 * that were handled: those that were ended, and those that had been extended.
 */
export const expireDueSessions = async (context: Core, tx: Transaction, limit: number): Promise<number> => {
  const now = context.clock.now()
  const postponed = await postponeSessions(tx, now, limit)
  const expired = await expireSessions(tx, now, limit)
  for (const session of expired)
    await record(context, tx, {
      ...hostActor,
      type: 'session.expired',
      target_id: session.id,
      target_type: 'session',
      organization_id: session.organization_id,
      metadata: { user_id: session.user_id, client_id: session.client_id },
      subject_id: session.user_id,
    })
  await enqueueLogouts(tx, expired, now, true)
  return postponed + expired.length
}

/** A login and its user, as `logOut` needs them. */
export interface LoggedIn {
  id: LoginId
  user_id: UserId
  email: string
  organization_id: OrganizationId
}

/** Revokes sessions of the logins as {@link revokeMost} does, before the write that calls {@link logOut}. */
export const beginLogOut = async (
  context: Core,
  logins: readonly Pick<LoggedIn, 'id' | 'user_id' | 'email'>[],
  client_info: ClientInfo,
): Promise<void> => {
  for (const { id: login_id, user_id, email } of logins)
    await revokeMost(context, { login_id }, { actor: { id: user_id, email }, client_info, reason: 'logout' })
}

/**
 * Ends logins and every session that came from them. A person who signs out on a shared computer expects to
 * be signed out of each application. Records the logout of each login that has not ended since it was read.
 */
export const logOut = async (
  context: Core,
  tx: Transaction,
  logins: LoggedIn[],
  client_info: ClientInfo,
): Promise<void> => {
  const ids = logins.map(({ id }) => id)
  const ended = new Set(await endLogins(tx, ids))
  for (const login of logins) {
    const actor = { id: login.user_id, email: login.email }
    if (ended.has(login.id))
      await record(context, tx, {
        type: 'user.logout',
        actor,
        target_id: login.user_id,
        target_type: 'user',
        organization_id: login.organization_id,
        client_info,
        subject_id: login.user_id,
      })
    await revokeSessions(context, tx, { login_id: login.id }, { actor, client_info, reason: 'logout' })
  }
}
