import * as client from 'openid-client'
import type { CalledFor, Context } from '#src/context.ts'
import type { OAuth2Provider, OidcProvider } from '#src/directory/identity-providers/types.ts'
import {
  type ConnectionCheck,
  checkAddress,
  finding,
  UNREACHABLE,
} from '#src/federation/connection-checks.ts'
import { causesOf } from '#src/federation/refusal.ts'
import { OutboundError } from '#src/http/outbound.ts'
import { discover, MAX_KEPT_BYTES, UnusableSecret } from './configuration.ts'
import { oauth2Configuration } from './oauth2.ts'
import { redirectUri } from './provider.ts'

/** Returns what is wrong with a metadata document that the library refuses. */
const metadataProblems = (error: unknown): ConnectionCheck[] => {
  const causes = causesOf(error)
  if (causes.some(cause => cause instanceof OutboundError)) return [finding('metadata', 'bad', UNREACHABLE)]
  for (const { cause } of causes) {
    if (typeof cause !== 'object' || cause === null || Reflect.get(cause, 'attribute') !== 'issuer') continue
    const found: unknown = Reflect.get(Object(Reflect.get(cause, 'body')), 'issuer')
    return [
      finding('metadata', 'good', 'The discovery document was read.'),
      finding('issuer', 'bad', 'The issuer in the document differs from the stored one.', found),
    ]
  }
  const [answer] = causes.flatMap(({ cause }) => (cause instanceof Response ? [cause] : []))
  return [
    answer && answer.status !== 200
      ? finding('metadata', 'bad', `The answer has the status ${answer.status}.`)
      : finding('metadata', 'bad', 'The answer is not a discovery document.'),
  ]
}

const isHttp = (url: unknown): boolean => /^https?:$/.test(URL.parse(String(url))?.protocol ?? '')

const checkEndpoints = (metadata: client.ServerMetadata): ConnectionCheck => {
  const missing = (['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const).filter(
    name => !isHttp(metadata[name]),
  )
  return missing.length === 0
    ? finding('endpoints', 'good', 'The document names each endpoint that a login needs.')
    : finding('endpoints', 'bad', `The document lacks ${missing.join(', ')}.`)
}

const checkFlow = (metadata: client.ServerMetadata): ConnectionCheck => {
  const { response_types_supported, code_challenge_methods_supported } = metadata
  if (response_types_supported && !response_types_supported.includes('code'))
    return finding('code_flow', 'bad', 'The provider does not offer the authorization code flow.')
  return code_challenge_methods_supported?.includes('S256')
    ? finding('code_flow', 'good', 'The authorization code flow with PKCE (S256) is offered.')
    : finding(
        'code_flow',
        'warning',
        'The document does not mention PKCE (S256); most providers support it anyway.',
      )
}

const isSigningKey = (key: unknown): boolean => {
  const { kty, use } = Object(key) as { kty?: unknown; use?: unknown }
  return ['RSA', 'EC', 'OKP'].includes(String(kty)) && use !== 'enc'
}

const checkKeys = async (
  context: Context,
  organization: CalledFor,
  jwks_uri = '',
): Promise<ConnectionCheck> => {
  if (!isHttp(jwks_uri)) return finding('keys', 'bad', 'The document names no key set.')
  try {
    const answer = await context.fetch(jwks_uri, { organization, bytes: MAX_KEPT_BYTES })
    const { keys }: { keys?: unknown } = Object(await answer.json())
    const count = Array.isArray(keys) ? keys.filter(isSigningKey).length : 0
    return count > 0
      ? finding('keys', 'good', `The key set has ${count} signing ${count === 1 ? 'key' : 'keys'}.`)
      : finding('keys', 'bad', 'The key set has no signing key.')
  } catch (error) {
    const isRefused = error instanceof OutboundError
    return finding('keys', 'bad', isRefused ? UNREACHABLE : 'The answer is not a key set.')
  }
}

/** Error codes by which a token endpoint shows that it accepts the client and refuses only the code. */
const KNOWN_CLIENT = ['invalid_grant', 'bad_verification_code']
const UNKNOWN_CLIENT = ['invalid_client', 'unauthorized_client', 'incorrect_client_credentials']

/**
 * Returns the error code in the answer of a token endpoint. An answer with the status 200 can also contain an
 * error code.
 */
const errorOf = (error: unknown): string | undefined =>
  causesOf(error)
    .flatMap(({ cause, ...rest }) => [rest, Object(cause), Object(Reflect.get(Object(cause), 'body'))])
    .map(each => Reflect.get(each, 'error') as unknown)
    .find((code): code is string => typeof code === 'string' && /^[\w.-]{1,64}$/.test(code))

/** Tries to redeem an invented code. The error shows whether the provider accepts the client. */
const checkCredentials = async (
  configuration: client.Configuration,
  redirect_uri: string,
): Promise<ConnectionCheck> => {
  try {
    await client.genericGrantRequest(configuration, 'authorization_code', {
      code: 'connection-test',
      redirect_uri,
      code_verifier: client.randomPKCECodeVerifier(),
    })
  } catch (error) {
    if (causesOf(error).some(cause => cause instanceof OutboundError))
      return finding('credentials', 'bad', `Token endpoint: ${UNREACHABLE}`)
    if (causesOf(error).some(cause => cause instanceof UnusableSecret))
      return finding(
        'credentials',
        'bad',
        'The client secret has to be a private key on P-256 (PEM), with team_id and key_id.',
      )
    const code = errorOf(error)
    if (code !== undefined && UNKNOWN_CLIENT.includes(code))
      return finding('credentials', 'bad', 'The provider refuses the client id or secret.', code)
    if (code !== undefined && KNOWN_CLIENT.includes(code))
      return finding('credentials', 'good', 'The provider accepts the client id and secret.')
    return finding(
      'credentials',
      'unknown',
      'Only a login can tell whether the client id and secret are right.',
      code,
    )
  }
  return finding('credentials', 'unknown', 'The provider answers an unknown code with a token.')
}

const toRegister = (context: Context, provider: OidcProvider | OAuth2Provider): ConnectionCheck =>
  finding(
    'redirect_uri',
    'info',
    'Register exactly this redirect URI at the provider.',
    redirectUri(context, provider),
  )

/** Checks an OpenID Connect provider: https://openid.net/specs/openid-connect-discovery-1_0.html */
export const testOpenId = async (
  context: Context,
  organization: CalledFor,
  provider: OidcProvider,
): Promise<ConnectionCheck[]> => {
  const last = toRegister(context, provider)
  const configuration = await discover(context, provider).catch(metadataProblems)
  if (Array.isArray(configuration)) return [...configuration, last]
  const metadata = configuration.serverMetadata()
  const endpoints = checkEndpoints(metadata)
  const [keys, credentials] = await Promise.all([
    checkKeys(context, organization, metadata.jwks_uri),
    endpoints.status === 'good' ? checkCredentials(configuration, redirectUri(context, provider)) : [],
  ])
  return [
    finding('metadata', 'good', 'The discovery document was read.'),
    finding('issuer', 'good', 'The document names the expected issuer.', metadata.issuer),
    endpoints,
    checkFlow(metadata),
    keys,
    credentials,
    last,
  ].flat()
}

/** Checks the token and user endpoints of an OAuth 2.0 provider. */
export const testOAuth2 = async (
  context: Context,
  organization: CalledFor,
  provider: OAuth2Provider,
): Promise<ConnectionCheck[]> => {
  const configuration = await oauth2Configuration(context, provider)
  const checks = await Promise.all([
    checkCredentials(configuration, redirectUri(context, provider)),
    checkAddress(context, organization, 'userinfo', provider.settings.userinfo_endpoint),
  ])
  return [...checks, toRegister(context, provider)]
}
