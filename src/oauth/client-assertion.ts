import type { JWTVerifyOptions } from 'jose'
import type { CalledFor, Context } from '#src/context.ts'
import { asClientRow } from '#src/directory/clients/dynamic.ts'
import { rereadClient } from '#src/directory/clients/dynamic-use.ts'
import { findKeySet, type KeyFinder } from '#src/directory/clients/key-sets.ts'
import type { Client } from '#src/directory/clients/store.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { HOUR, SECOND } from '#src/lib/duration.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { assertionAlgs } from '#src/protocol/oauth/client-keys.ts'
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

/**
 * Reasons for refusing an assertion. `unknown_grant` means that the request has no code and no refresh token
 * of this client. `ended_session` means that the code can no longer be used, or that the session of the
 * refresh token is deleted. With either fault the server reads neither the document nor the keys of the
 * client, and stores no assertion, so that strangers cannot cause calls or writes.
 */
export type AssertionFault =
  | 'wrong_assertion'
  | 'wrong_method'
  | 'unknown_key'
  | 'used_assertion'
  | 'unknown_grant'
  | 'ended_session'
  | 'unreadable_keys'

/**
 * The client, as its metadata document describes it now if the document was read, and the reason for refusing
 * the assertion.
 */
export interface Signed {
  readonly client: Client
  readonly fault: AssertionFault | undefined
}

/**
 * Verifies a client assertion and uses it up. The metadata document of the client is read again when it is no
 * longer fresh, because its owner may have withdrawn a key, and when the key of the assertion is unknown,
 * because its owner may have added a key.
 * https://www.rfc-editor.org/rfc/rfc7523#section-3
 *
 * @throws AppError 429 or 503 when the client's keys are needed and too many keys are being fetched
 */
export const checkAssertion = async (
  context: Context,
  client_info: ClientInfo,
  stored: Client,
  assertion: string,
  asked: AssertedFor,
): Promise<Signed> => {
  const { client_id } = stored
  const organization = await organizationOf(context, client_id, asked)
  if (!organization) return { client: stored, fault: 'unknown_grant' }
  if (organization === 'gone') return { client: stored, fault: 'ended_session' }
  const by = { actor: { id: client_id, email: null }, organization_id: organization.id, client_info }
  const tryWith = async (is_lacking: boolean) => {
    const reread = await rereadClient(context, client_id, { organization, by, is_lacking })
    if (!reread) return { client: stored, verified: 'unreadable_keys' as const }
    const client = asClientRow(reread)
    return { client, verified: await verify(context, client, assertion, { organization, is_lacking }) }
  }
  const first = await tryWith(false)
  const { client, verified } = first.verified === 'unknown_key' ? await tryWith(true) : first
  if (typeof verified === 'string') return { client, fault: verified }
  const { jti, exp } = verified
  const assertion_hash = hashSecret(`${client_id} ${jti}`)
  // `exp` may have a fraction. jose rounds the current time down to seconds, so it accepts the assertion
  // until `exp`, rounded up.
  const expires_at = (Math.ceil(exp) + TOLERANCE) * SECOND
  const isFirst = await context.store.write(tx => useAssertion(tx, { assertion_hash, expires_at }))
  return { client, fault: isFirst ? undefined : 'used_assertion' }
}

type Claims = { jti: string; exp: number }

const verify = async (
  context: Context,
  { client_id, keys }: Client,
  assertion: string,
  { organization, is_lacking }: { organization: CalledFor; is_lacking: boolean },
): Promise<Claims | AssertionFault> => {
  if (!keys) return 'wrong_method'
  const { source, alg } = keys
  const { createLocalJWKSet } = await import('jose')
  const found =
    'jwks' in source
      ? createLocalJWKSet(source.jwks)
      : await findKeySet(context, { client_id, organization, jwks_uri: source.jwks_uri }, is_lacking)
  if (!found) return 'unreadable_keys'
  return check(assertion, found, {
    algorithms: alg ? [alg] : [...assertionAlgs],
    // `sub` needs no check, because the client was looked up by `sub`.
    issuer: client_id,
    audience: audiencesOf(context),
    currentDate: new Date(context.clock.now()),
    clockTolerance: TOLERANCE,
  })
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
 * Some clients use the issuer as audience. Other clients use the endpoint.
 */
const audiencesOf = ({ config: { url, internal_url } }: Context): string[] => [
  url,
  ...[url, ...(internal_url ? [internal_url] : [])].map(address => `${address}/oauth/token`),
]

/**
 * Returns the organization of the code or refresh token in the request. Returns `gone` for a code that can no
 * longer be used, and for a refresh token whose session is deleted. In these cases the client has not
 * guessed. Returns undefined for any other code or token that does not belong to the client, and for the
 * client credentials grant.
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
    if (!code || code === 'burnt') return code && 'gone'
    const subject = await findSubject(q, code, asked.code)
    return !subject || subject === 'burnt' ? 'gone' : subject.organization_id
  })
  if (!organization_id || organization_id === 'gone') return organization_id
  return findOrganization(context.store, organization_id)
}
