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

/** Returns the event that records the start of a session. */
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
 * - The refresh tokens and access tokens of the sessions become invalid, and the logins of the sessions end.
 * - With a filter by user, login or session, the access tokens of matching sessions that had already ended
 *   become invalid too.
 * - With a filter by user that names no session and no login, the user's unredeemed codes are revoked too.
 *   The fields `client_id`, `organization_id` and `except_login_id` of the filter limit the codes as well.
 *
 * `revokeUser` also ends the user's logins and pending links.
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

/** Does the same as `revokeSessions`, but keeps logins and codes. Returns the revoked sessions. */
export const revokeSessionsAlone = async (
  context: Core,
  tx: Transaction,
  filter: SessionFilter,
  by: RevokedBy,
  limit = Number.MAX_SAFE_INTEGER,
): Promise<Session[]> => {
  const ended = await endRecorded(context, tx, filter, by, limit)
  if (filter.session_id ?? filter.user_id ?? filter.login_id)
    await refuseTokens(tx, filter, context.clock.now())
  return ended
}

/** Ends sessions, records an event for each and tells their clients. Returns the ended sessions. */
const endRecorded = async (
  context: Core,
  tx: Transaction,
  filter: SessionFilter,
  by: RevokedBy,
  limit: number,
): Promise<Session[]> => {
  const now = context.clock.now()
  const ended = await endSessions(tx, filter, now, limit)
  for (const session of ended) await recordRevoked(context, tx, session, by)
  await enqueueLogouts(tx, ended, now)
  return ended
}

/**
 * Maximum number of sessions that one write of `revokeMost` ends. During this write other writes wait. On
 * SQLite all requests wait.
 */
const PORTION = 500

/**
 * Revokes sessions that match the filter until the remaining sessions fit into one write. A program can start
 * thousands of sessions of one user. This function is therefore called before a write that must revoke all
 * sessions together with another change. It makes several writes, and other requests run between these
 * writes. Logins, codes and links are kept. Sessions that start during this work are left to the later write.
 * Otherwise a program that keeps starting sessions could delay the later write for ever.
 */
export const revokeMost = async (context: Core, filter: SessionFilter, by: RevokedBy): Promise<void> => {
  const { store, clock } = context
  const known = { ...filter, started_by: clock.now() }
  while (await store.read(q => hasMore(q, known, clock.now(), PORTION))) {
    await store.drained()
    await store.write(tx => endRecorded(context, tx, known, by, PORTION))
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

/** Revokes one session by {@link revokeSessions}. */
export const revokeSession = async (
  context: Core,
  tx: Transaction,
  session: Pick<Session, 'id'>,
  by: RevokedBy,
): Promise<void> => {
  await revokeSessions(context, tx, { session_id: session.id }, by)
}

/**
 * Ends the active sessions that match the filter, at most `limit`, and returns them. Their logins continue.
 * Their access tokens stay valid until the tokens expire or the user is deleted or disabled. The route
 * /oauth/revoke and the deletion of a client or user end sessions in this way, because none of them is a sign
 * of a stolen token or login.
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
 * Looks at due sessions, at most `limit`: ends the expired sessions, records an event for each, and postpones
 * the extended sessions. Returns the number of ended and postponed sessions.
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

/** The facts about a login and its user that `logOut` needs. */
export interface LoggedIn {
  id: LoginId
  user_id: UserId
  email: string
  organization_id: OrganizationId
}

/**
 * Revokes sessions of the logins by {@link revokeMost}. Call it before the write that calls {@link logOut}.
 */
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
 * be signed out of each application. Records the logout of each login, except logins that another request has
 * ended in the meantime.
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
