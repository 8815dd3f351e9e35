import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { and, eq, isNull, sql } from 'drizzle-orm'
import type { Core } from '#src/context.ts'
import { bareId, type SessionId } from '#src/lib/ids.ts'
import { hashSecret, type Secret, sameHash } from '#src/lib/secrets.ts'
import { notPurged } from '#src/storage/purges.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'

/**
 * A refresh token is the id of its session, 256 random bits and a MAC (tag), base64url, 86 characters. The
 * session's row keeps the hash of the current token. The tag distinguishes a used token, whose replay ends
 * the session, from a forged one: ids of sessions are not secret.
 */
const ID = 16
const SECRET = 32
const TAG = 16
const LENGTH = Math.ceil(((ID + SECRET + TAG) * 4) / 3)

const tagOf = ({ master }: Core, named: Uint8Array): Buffer =>
  createHmac('sha256', master.derive('refresh-tag')).update(named).digest().subarray(0, TAG)

const compose = (context: Core, session_id: SessionId, secret: Uint8Array): Secret => {
  const id = Buffer.from(bareId(session_id).replaceAll('-', ''), 'hex')
  const named = Buffer.concat([id, secret])
  return Buffer.concat([named, tagOf(context, named)]).toString('base64url') as Secret
}

/** Returns the session of a token with a valid tag, current or used; undefined for any other text. */
const sessionOf = (context: Core, token: string): SessionId | undefined => {
  if (token.length !== LENGTH) return undefined
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.toString('base64url') !== token) return undefined
  const named = bytes.subarray(0, ID + SECRET)
  if (!timingSafeEqual(bytes.subarray(named.length), tagOf(context, named))) return undefined
  const id = bytes.toString('hex', 0, ID).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  return `sess_${id}`
}

/** Generates the first refresh token of a session. */
export const newRefreshToken = (context: Core, session_id: SessionId): Secret =>
  compose(context, session_id, randomBytes(SECRET))

const placeholder = sql.placeholder

const selectGrant = prepared((q, { sessions, users }) =>
  q
    .select({
      session_id: sessions.id,
      refresh_hash: sessions.refresh_hash,
      last_active_at: sessions.last_active_at,
      client_id: sessions.client_id,
      user_id: sessions.user_id,
      scope: sessions.scope,
      expires_at: sessions.expires_at,
      due_at: sessions.due_at,
      ends_by: sessions.ends_by,
      ended_at: sessions.ended_at,
      organization_id: users.organization_id,
      username: users.username,
      email: users.email,
      email_verified: users.email_verified,
      first_name: users.first_name,
      last_name: users.last_name,
      enabled: users.enabled,
    })
    .from(sessions)
    .innerJoin(users, eq(users.id, sessions.user_id))
    .where(and(eq(sessions.id, placeholder('session_id')), notPurged(q, sessions.organization_id))),
)

/** The session and user of a refresh token. `is_used` is true when the token is not the current one. */
export type RefreshGrant = NonNullable<Awaited<ReturnType<typeof findRefreshGrant>>>

/** Returns the grant in any state: the caller checks for used tokens, ended sessions and disabled users. */
export const findRefreshGrant = async (context: Core, q: Queries, token: string) => {
  const session_id = sessionOf(context, token)
  const [row] = session_id ? await selectGrant(q, { session_id }) : []
  if (!row?.refresh_hash) return undefined
  const { refresh_hash, ...grant } = row
  return { ...grant, refresh_hash, is_used: !sameHash(refresh_hash, hashSecret(token)) }
}

/**
 * Derives the successor of a token. It can be derived again when a response was lost
 * (`refresh_token_reuse_window`), so only its hash is stored.
 */
const successorOf = (context: Core, token: string, session_id: SessionId): Secret => {
  const key = context.master.derive('refresh')
  const secret = createHmac('sha256', key).update(`${session_id}\0${token}`).digest()
  return compose(context, session_id, secret)
}

/** Returns the successor of a used token while the successor itself is unused; never two generations back. */
export const findUnusedSuccessor = (
  context: Core,
  token: string,
  { session_id, refresh_hash }: RefreshGrant,
): Secret | undefined => {
  const successor = successorOf(context, token, session_id)
  return sameHash(hashSecret(successor), refresh_hash) ? successor : undefined
}

const rotate = prepared((q, { sessions }) =>
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
        eq(sessions.refresh_hash, placeholder('token_hash')),
        isNull(sessions.ended_at),
      ),
    )
    .returning({ id: sessions.id }),
)

/**
 * Consumes a token: its session gets the successor and the new `expires_at`. Returns the successor; undefined
 * when a concurrent request has consumed the token.
 */
export const rotateRefreshToken = async (
  context: Core,
  tx: Transaction,
  token: string,
  { session_id, due_at }: RefreshGrant,
  times: { now: number; expires_at: number },
): Promise<Secret | undefined> => {
  const successor = successorOf(context, token, session_id)
  const hashes = { token_hash: hashSecret(token), next_hash: hashSecret(successor) }
  const rotated = await rotate(tx, { session_id, ...hashes, ...times })
  if (rotated.length === 0) return undefined
  // Separate from the statement above: setting `due_at`, even to the same value, would write its index.
  const { sessions } = tx.tables
  if (times.expires_at < due_at)
    await tx.update(sessions).set({ due_at: times.expires_at }).where(eq(sessions.id, session_id))
  return successor
}
