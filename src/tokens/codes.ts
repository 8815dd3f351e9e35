import { hash } from 'node:crypto'
import type { Core } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { SECOND } from '#src/lib/duration.ts'
import { type LoginId, newId, type SessionId, uuidBytes, uuidOf } from '#src/lib/ids.ts'
import { openWith, sealWith } from '#src/lib/master-key.ts'
import { hashSecret, newSecret, type Secret, type SecretHash } from '#src/lib/secrets.ts'

/**
 * Lifetime of a code in milliseconds: long enough for a redirect and one call of the client. A code that
 * leaks after this time has already expired.
 */
const LIFETIME = 60 * SECOND

/**
 * Maximum characters of a code. Clients and proxies accept a redirect URI that becomes longer by a code of
 * this length.
 */
const MAX_LENGTH = 512

/** The login that a code comes from. */
export interface CodeLogin extends ClientInfo {
  id: LoginId
  codes_revoked: Readonly<Record<string, number>> | null
}

/** The values of a new authorization code. */
export interface NewCode {
  client_id: string
  login: CodeLogin
  redirect_uri: string
  /** Space-separated. */
  scope: string
  /** Identifiers of the APIs that the request names, separated by spaces; empty when it names no API. */
  resources?: string | undefined
  nonce: string | undefined
  code_challenge: string
  /** Milliseconds. */
  auth_time: number
  acr: string
  amr: string[]
  client_info: ClientInfo
}

/** The content of an authorization code. Times are milliseconds. */
export interface AuthorizationCode
  extends Pick<NewCode, 'scope' | 'code_challenge' | 'auth_time' | 'acr' | 'amr'> {
  /**
   * Id of the session that the code begins. Inserting the row of the session uses up the code, because ids of
   * sessions are unique. `oauth/grants/authorization-code.ts` handles a second use.
   */
  session_id: SessionId
  login_id: LoginId
  client_id: string
  /** Number of times that codes of the login had been revoked when this code was issued. */
  revocations: number
  redirect_hash: Buffer
  resources: string
  nonce: string
  issued_at: number
  expires_at: number
  /** undefined when the client info equals that of the login. */
  client_info: ClientInfo | undefined
}

/** The row of a code whose content is too long for a URL. The client gets a random code instead. */
export interface StoredCode {
  code_hash: SecretHash
  sealed: string
  expires_at: number
}

const UUID = 16
const HASH = 32

/** Returns the number of times that codes of a login were revoked. */
export const countRevocations = (revoked: CodeLogin['codes_revoked']): number =>
  Math.max(0, ...Object.values(revoked ?? {}))

/**
 * True when all codes of the login, or the login's codes for this client, were revoked after this code was
 * issued. Counts are compared, not times, because the copies of the server share no clock.
 */
export const isRevoked = (
  { client_id, revocations }: Pick<AuthorizationCode, 'client_id' | 'revocations'>,
  revoked: CodeLogin['codes_revoked'],
): boolean =>
  Object.entries(revoked ?? {}).some(
    ([client, count]) => (client === '' || client === client_id) && count > revocations,
  )

/** Returns the SHA-256 of the URI (32 bytes), which a code contains instead of the URI. */
export const redirectHash = (redirect_uri: string): Buffer => hash('sha256', redirect_uri, 'buffer')

/**
 * Returns a new authorization code, valid for one minute and one use. The code contains its own data in
 * base64url, encrypted and authenticated for the client. An authorization with an existing login therefore
 * writes nothing. If the code would be too long for a URL, a random code is returned, and the caller stores
 * the content (`stored`).
 */
export const composeCode = (
  context: Core,
  { client_id, login, client_info, ...asked }: NewCode,
): { code: Secret; stored?: StoredCode } => {
  const now = context.clock.now()
  const { ip_address, user_agent } = client_info
  const isSame = ip_address === login.ip_address && user_agent === login.user_agent
  const { scope, resources = '', nonce = '', code_challenge, auth_time, acr, amr } = asked
  const rest = [
    now,
    countRevocations(login.codes_revoked),
    scope,
    nonce,
    code_challenge,
    auth_time,
    acr,
    amr,
    resources,
  ]
  const plain = Buffer.concat([
    uuidBytes(newId('sess', now)),
    uuidBytes(login.id),
    redirectHash(asked.redirect_uri),
    Buffer.from(JSON.stringify(isSame ? rest : [...rest, ip_address, user_agent])),
  ])
  const sealed = sealWith(context.master.derive('code'), plain, client_id).toString('base64url') as Secret
  if (sealed.length <= MAX_LENGTH) return { code: sealed }
  const code = newSecret()
  return { code, stored: { code_hash: hashSecret(code), sealed, expires_at: now + LIFETIME } }
}

/**
 * Opens a code that was issued to this client. Returns undefined for any other text. Another encoding of the
 * same bytes is also refused, so that a used code has no second spelling.
 */
export const openCode = (context: Core, sealed: string, client_id: string): AuthorizationCode | undefined => {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.toString('base64url') !== sealed) return undefined
  let plain: Buffer
  try {
    plain = openWith(context.master.derive('code'), bytes, client_id)
  } catch {
    return undefined
  }
  const [
    issued_at,
    revocations,
    scope,
    nonce,
    code_challenge,
    auth_time,
    acr,
    amr,
    resources,
    ip_address,
    user_agent,
  ] = JSON.parse(plain.toString('utf8', 2 * UUID + HASH))
  return {
    session_id: `sess_${uuidOf(plain.subarray(0, UUID))}`,
    login_id: `login_${uuidOf(plain.subarray(UUID, 2 * UUID))}`,
    redirect_hash: plain.subarray(2 * UUID, 2 * UUID + HASH),
    issued_at,
    expires_at: issued_at + LIFETIME,
    client_id,
    revocations,
    scope,
    nonce,
    code_challenge,
    auth_time,
    acr,
    amr,
    resources,
    client_info: ip_address === undefined ? undefined : { ip_address, user_agent },
  }
}
