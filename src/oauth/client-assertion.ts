import type { JWTVerifyOptions } from 'jose'
import type { CalledFor, Context } from '#src/context.ts'
import { findKeySet, type KeyFinder } from '#src/directory/clients/key-sets.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { HOUR, SECOND } from '#src/lib/duration.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { assertionAlgs, type ClientKeys } from '#src/protocol/oauth/client-keys.ts'
import type { TokenRequest } from '#src/protocol/oauth/token-request.ts'
import { findSubject } from '#src/sessions/login-store.ts'
import { findRefreshGrant } from '#src/sessions/refresh-tokens.ts'
import { useAssertion } from '#src/tokens/assertion-store.ts'
import { findCode } from '#src/tokens/code-store.ts'

/**
 * Maximum difference between the clocks of client and server, in seconds. Synchronized machines differ by
 * less than a second.
 */
const TOLERANCE = 10
/**
 * Maximum time from the use of an assertion until it expires, in ms. It is limited because the id of an
 * assertion is stored until the assertion expires.
 */
const MAX_LIFETIME = HOUR

/** The request that a client signs an assertion for. */
export type AssertedFor =
  | Pick<Extract<TokenRequest, { grant_type: 'authorization_code' }>, 'grant_type' | 'code'>
  | Pick<Extract<TokenRequest, { grant_type: 'refresh_token' }>, 'grant_type' | 'refresh_token'>
  | Pick<Extract<TokenRequest, { grant_type: 'client_credentials' }>, 'grant_type'>

interface Signer {
  readonly client_id: string
  readonly keys: ClientKeys
}

/**
 * Reasons for refusing an assertion. `unknown_grant` means that the request has no usable code and no refresh
 * token of this client. In this case the server does not fetch the keys at the client's URL, so that
 * strangers cannot cause calls. `ended_session` means the same for a refresh token whose session is deleted.
 */
export type AssertionFault =
  | 'wrong_assertion'
  | 'unknown_key'
  | 'used_assertion'
  | 'unknown_grant'
  | 'ended_session'
  | 'unreadable_keys'

/**
 * Verifies a client assertion and uses it up. Returns undefined for a valid assertion, otherwise the reason
 * for refusing it. https://www.rfc-editor.org/rfc/rfc7523#section-3
 *
 * @throws AppError 429 or 503 when the client's keys are needed and too many keys are being fetched
 */
export const findAssertionFault = async (
  context: Context,
  signer: Signer,
  assertion: string,
  asked: AssertedFor,
): Promise<AssertionFault | undefined> => {
  const verified = await verify(context, signer, assertion, asked)
  if (typeof verified === 'string') return verified
  const { jti, exp } = verified
  const assertion_hash = hashSecret(`${signer.client_id} ${jti}`)
  // The column `expires_at` stores integers, but `exp` may have a fraction, so it is rounded up. A second is
  // added, because jose rounds the current time down and accepts the assertion for up to a second longer.
  const expires_at = (Math.ceil(exp) + TOLERANCE + 1) * SECOND
  const isFirst = await context.store.write(tx => useAssertion(tx, { assertion_hash, expires_at }))
  return isFirst ? undefined : 'used_assertion'
}

type Claims = { jti: string; exp: number }

const verify = async (
  context: Context,
  { client_id, keys: { source, alg } }: Signer,
  assertion: string,
  asked: AssertedFor,
): Promise<Claims | AssertionFault> => {
  const options = {
    algorithms: alg ? [alg] : [...assertionAlgs],
    // `sub` needs no check, because the client was looked up by `sub`.
    issuer: client_id,
    audience: audiencesOf(context),
    currentDate: new Date(context.clock.now()),
    clockTolerance: TOLERANCE,
  }
  if ('jwks' in source) {
    const { createLocalJWKSet } = await import('jose')
    return check(assertion, createLocalJWKSet(source.jwks), options)
  }
  const organization = await organizationOf(context, client_id, asked)
  if (!organization) return 'unknown_grant'
  if (organization === 'gone') return 'ended_session'
  const find = (is_lacking: boolean) =>
    findKeySet(context, { client_id, organization, jwks_uri: source.jwks_uri }, is_lacking)
  const known = await find(false)
  const first = known && (await check(assertion, known, options))
  if (first !== 'unknown_key') return first ?? 'unreadable_keys'
  const newer = await find(true)
  return newer && newer !== known ? check(assertion, newer, options) : first
}

/**
 * Verifies signature and claims with jose. The audience must be a single value, so that no assertion is valid
 * at two servers.
 */
const check = async (
  assertion: string,
  keys: KeyFinder,
  options: JWTVerifyOptions & { currentDate: Date },
): Promise<Claims | 'wrong_assertion' | 'unknown_key'> => {
  const { jwtVerify } = await import('jose')
  try {
    const { aud, jti, exp = Number.POSITIVE_INFINITY } = (await jwtVerify(assertion, keys, options)).payload
    const isForOne = typeof aud === 'string' || aud?.length === 1
    const isShort = (exp - TOLERANCE) * SECOND <= options.currentDate.getTime() + MAX_LIFETIME
    return isForOne && isShort && typeof jti === 'string' && jti !== '' ? { jti, exp } : 'wrong_assertion'
  } catch (error) {
    return Reflect.get(Object(error), 'code') === 'ERR_JWKS_NO_MATCHING_KEY'
      ? 'unknown_key'
      : 'wrong_assertion'
  }
}

/**
 * Returns the accepted audiences: the issuer, and each address that discovery names for the token endpoint.
 * Some clients use the issuer, others the endpoint.
 */
const audiencesOf = ({ config: { url, internal_url } }: Context): string[] => [
  url,
  ...[url, ...(internal_url ? [internal_url] : [])].map(address => `${address}/oauth/token`),
]

/**
 * Returns the organization of the code or refresh token in the request. Returns undefined for another
 * client's code or token, for an unusable code, and for the client credentials grant. Returns `gone` for a
 * refresh token whose session is deleted.
 */
const organizationOf = async (
  context: Context,
  client_id: string,
  asked: AssertedFor,
): Promise<CalledFor | 'gone' | undefined> => {
  const organization_id = await context.store.read(async q => {
    if (asked.grant_type === 'client_credentials') return undefined
    if (asked.grant_type === 'refresh_token') {
      const grant = await findRefreshGrant(context, q, asked.refresh_token)
      if (grant === 'gone') return grant
      return grant?.client_id === client_id ? grant.organization_id : undefined
    }
    const code = await findCode(context, q, { code: asked.code, client_id })
    const subject = code && code !== 'burnt' ? await findSubject(q, code, asked.code) : undefined
    return subject === 'burnt' ? undefined : subject?.organization_id
  })
  if (!organization_id || organization_id === 'gone') return organization_id
  return findOrganization(context.store, organization_id)
}
