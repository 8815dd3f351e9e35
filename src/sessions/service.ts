import { type Actor, hostActor, record } from '#src/audit/record.ts'
import type { Caller, Context } from '#src/context.ts'
import { writeAs } from '#src/http/guard.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { LoginId, OrganizationId, UserId } from '#src/lib/ids.ts'
import type { Transaction } from '#src/storage/store.ts'
import { revokeCodes } from '#src/tokens/codes.ts'
import { endLogins, endUserLogins, revokePendingLinks } from './login-store.ts'
import {
  closeSessions,
  createSession,
  endSessions,
  expireSessions,
  type NewSession,
  postponeSessions,
  refuseTokens,
  type Session,
  type SessionFilter,
} from './store.ts'

/** Who ends sessions, from where and why: what `session.revoked` tells. */
export interface RevokedBy {
  actor: Actor
  client_info: ClientInfo
  reason: string
}

const BATCH = 500

/** A user begins to use a client: the session and its event. */
export const startSession = async (
  context: Context,
  tx: Transaction,
  { email, ...session }: NewSession & { email: string },
): Promise<void> => {
  await createSession(tx, session)
  await record(context, tx, {
    type: 'session.created',
    actor: { id: session.user_id, email },
    target_id: session.id,
    target_type: 'session',
    organization_id: session.organization_id,
    client_info: session,
    metadata: { client_id: session.client_id },
    subject_id: session.user_id,
  })
}

/**
 * Revokes the active sessions that fit: their refresh tokens die, this server
 * refuses their access tokens from now on, and the logins that they came from end. When it is about a user, login or
 * session, the access tokens of sessions that had ended by themselves are refused too; all of a user's sessions, of one client
 * or of all, takes codes not yet redeemed along; of all clients, all logins of the user and what else was begun too. Gives how many active ones there were.
 */
export const revokeSessions = async (
  context: Context,
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
  if (client_id === undefined) {
    await endUserLogins(tx, user_id, organization_id, except_login_id)
    await revokePendingLinks(tx, user_id, organization_id)
  }
  return ended.length
}

/** The same, with nothing but these sessions: the logins that they came from stay. */
export const revokeSessionsAlone = async (
  context: Context,
  tx: Transaction,
  filter: SessionFilter,
  by: RevokedBy,
  limit = Number.MAX_SAFE_INTEGER,
): Promise<Session[]> => {
  const now = context.clock.now()
  const ended = await endSessions(tx, filter, now, limit)
  if (filter.session_id ?? filter.user_id ?? filter.login_id) await refuseTokens(tx, filter, now)
  for (const session of ended) await recordRevoked(context, tx, session, by)
  return ended
}

const recordRevoked = (context: Context, tx: Transaction, session: Session, by: RevokedBy): Promise<void> =>
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

export const revokeSession = async (
  context: Context,
  tx: Transaction,
  session: Pick<Session, 'id'>,
  by: RevokedBy,
): Promise<void> => {
  await revokeSessions(context, tx, { session_id: session.id }, by)
}

/**
 * `revokeSessions` for filters that may fit any number, in writes of a bounded size. The caller is looked up in the first
 * alone: it may end their own session.
 */
export const revokeAllSessions = async (
  context: Context,
  filter: SessionFilter,
  { caller, ...by }: RevokedBy & { caller?: Caller | undefined },
): Promise<number> => {
  for (let revoked = 0; ; ) {
    await context.store.calm()
    const isFirst = revoked === 0
    const count = await writeAs(context, isFirst ? caller : undefined, tx =>
      revokeSessions(context, tx, filter, by, BATCH),
    )
    revoked += count
    if (count < BATCH) return revoked
  }
}

/** Ends sessions whose access tokens stay valid until they run out: /oauth/revoke, a deleted client. The logins live on. */
export const releaseSessions = (
  context: Context,
  tx: Transaction,
  filter: SessionFilter,
  limit = Number.MAX_SAFE_INTEGER,
): Promise<Session[]> => closeSessions(tx, filter, context.clock.now(), limit)

/** Ends sessions that ran out, `limit` at most, with the event of each; says how many it dealt with. */
export const expireDueSessions = async (
  context: Context,
  tx: Transaction,
  limit: number,
): Promise<number> => {
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
  return postponed + expired.length
}

export interface LoggedIn {
  id: LoginId
  user_id: UserId
  email: string
  organization_id: OrganizationId
}

/** A person logs out: their logins end with every session that came from them. */
export const logOut = async (
  context: Context,
  tx: Transaction,
  logins: LoggedIn[],
  client_info: ClientInfo,
): Promise<void> => {
  for (const login of logins) {
    const actor = { id: login.user_id, email: login.email }
    await record(context, tx, {
      type: 'user.logout',
      actor,
      target_id: login.user_id,
      target_type: 'user',
      organization_id: login.organization_id,
      client_info: client_info,
      subject_id: login.user_id,
    })
    await revokeSessions(
      context,
      tx,
      { login_id: login.id },
      { actor, client_info: client_info, reason: 'logout' },
    )
  }
  await endLogins(
    tx,
    logins.map(({ id }) => id),
  )
}
