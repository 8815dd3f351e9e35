import { timingSafeEqual } from 'node:crypto'
import type { Core } from '#src/context.ts'
import { type SessionId, uuidBytes, uuidOf } from '#src/lib/ids.ts'
import { hashSecret, randomOctets, type Secret, sameHash } from '#src/lib/secrets.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { findRefreshable, refreshSession } from './store.ts'

/**
 * A refresh token is the id of its session, 256 secret bits and a MAC (tag), in base64url (86 characters).
 * The first token has random secret bits. The secret bits of each later token are derived from the token
 * before it. The session's row keeps the hash of the current token. The replay of a used token usually ends
 * the session (oauth/grants/refresh-token.ts). The tag distinguishes a used token from a forged token.
 * Without the tag anyone could end a session with a forged token, because ids of sessions are not secret.
 */
const ID = 16
const SECRET = 32
const TAG = 16
const LENGTH = Math.ceil(((ID + SECRET + TAG) * 4) / 3)

const tagOf = ({ master }: Core, named: Uint8Array): Buffer =>
  master.hmac('refresh-tag').update(named).digest().subarray(0, TAG)

const compose = (context: Core, session_id: SessionId, secret: Uint8Array): Secret => {
  const named = Buffer.concat([uuidBytes(session_id), secret])
  return Buffer.concat([named, tagOf(context, named)]).toString('base64url') as Secret
}

/** Returns the session id in a current or used token. Returns undefined for a text without a valid tag. */
const sessionOf = (context: Core, token: string): SessionId | undefined => {
  if (token.length !== LENGTH) return undefined
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.toString('base64url') !== token) return undefined
  const named = bytes.subarray(0, ID + SECRET)
  if (!timingSafeEqual(bytes.subarray(named.length), tagOf(context, named))) return undefined
  return `sess_${uuidOf(bytes.subarray(0, ID))}`
}

/** Generates the first refresh token of a session. */
export const newRefreshToken = (context: Core, session_id: SessionId): Secret =>
  compose(context, session_id, randomOctets(SECRET))

/** The session and user of a refresh token. `is_used` is true when the session has a newer token. */
export type RefreshGrant = Exclude<Awaited<ReturnType<typeof findRefreshGrant>>, 'gone' | undefined>

/**
 * Returns the grant of a token in any state. The caller must refuse used tokens, ended or expired sessions,
 * and disabled users. Returns undefined for a text that this server did not issue as a refresh token. Returns
 * `gone` for a token whose session is deleted, for example because the session ended long ago. Such a token
 * must not count as a guess, because this server has issued it.
 */
export const findRefreshGrant = async (context: Core, q: Queries, token: string) => {
  const session_id = sessionOf(context, token)
  if (!session_id) return undefined
  const row = await findRefreshable(q, session_id)
  if (!row?.refresh_hash) return 'gone'
  const { refresh_hash } = row
  return { ...row, refresh_hash, is_used: !sameHash(refresh_hash, hashSecret(token)) }
}

/**
 * Derives the successor of a token. A token has only one successor. If a response was lost, the same
 * successor is derived again (`refresh_token_reuse_window`). The successor itself need not be stored. Its
 * hash is enough.
 */
const successorOf = (context: Core, token: string, session_id: SessionId): Secret => {
  const secret = context.master.hmac('refresh').update(`${session_id}\0${token}`).digest()
  return compose(context, session_id, secret)
}

/**
 * Returns the successor of a used token if the successor is unused. If the successor was used, the client has
 * received it, and a request with the earlier token may come from an attacker.
 */
export const findUnusedSuccessor = (
  context: Core,
  token: string,
  { id, refresh_hash }: RefreshGrant,
): Secret | undefined => {
  const successor = successorOf(context, token, id)
  return sameHash(hashSecret(successor), refresh_hash) ? successor : undefined
}

/**
 * Consumes a token: its session gets the successor and the new `expires_at`. Returns the successor. Returns
 * undefined when the session has ended, or when the token was used before, for example by a concurrent
 * request.
 */
export const rotateRefreshToken = async (
  context: Core,
  tx: Transaction,
  token: string,
  grant: RefreshGrant,
  times: { now: number; expires_at: number },
): Promise<Secret | undefined> => {
  if (grant.is_used) return undefined
  const successor = successorOf(context, token, grant.id)
  const hashes = { current_hash: grant.refresh_hash, next_hash: hashSecret(successor) }
  return (await refreshSession(tx, grant, { ...hashes, ...times })) ? successor : undefined
}
