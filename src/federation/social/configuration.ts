import * as client from 'openid-client'
import type { CalledFor, Context, Outbound } from '#src/context.ts'
import { openSecret } from '#src/directory/identity-providers/secret.ts'
import { holdsPrivateKey, signingKeyOf } from '#src/directory/identity-providers/settings.ts'
import type { OidcProvider, SocialProvider } from '#src/directory/identity-providers/types.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { isAllowed, OutboundError } from '#src/http/outbound.ts'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { signJwt } from '#src/tokens/signature.ts'

/**
 * Maximum bytes of a metadata document, and of a key set. The parsed documents are kept in memory. A parsed
 * document takes up to 25 times the size of its text.
 */
export const MAX_KEPT_BYTES = 64 * 1024
/**
 * Maximum number of providers whose metadata and keys are kept. The number is limited, because any
 * organization may add providers.
 */
const MAX_KEPT = 200

/**
 * Adapts the server's outbound fetch to openid-client. A GET without credentials reads metadata or a key set.
 * The answer to such a GET has at most `MAX_KEPT_BYTES`. All other answers have the default limit of `fetch`.
 */
export const through =
  (fetch: Outbound, organization: CalledFor): client.CustomFetch =>
  (url, { method, headers, body, signal }) =>
    fetch(url, {
      organization,
      method,
      headers,
      ...(method === 'GET' && !new Headers(headers).has('authorization') && { bytes: MAX_KEPT_BYTES }),
      ...(body != null && { body: body instanceof URLSearchParams ? body : String(body) }),
      ...(signal && { signal }),
    })

/**
 * Returns the option that allows openid-client to call a plain http URL. The list is empty when
 * `outbound_allow` does not name the host and port of the URL.
 */
export const allowHttp = ({ config }: Context, url: string, organization: CalledFor) =>
  isAllowed(config, new URL(url), organization) ? [client.allowInsecureRequests] : []

/**
 * Returns the organization for which the provider is called.
 *
 * @throws OutboundError when the organization was deleted
 */
export const organizationOf = async (
  { store }: Context,
  { organization_id }: SocialProvider,
): Promise<CalledFor> => {
  const organization = await findOrganization(store, organization_id)
  if (!organization) throw new OutboundError(new Error('The organization of the provider is deleted.'))
  return organization
}

/**
 * Lifetime of Apple's client secret in milliseconds. A new secret is signed for each call. Apple allows a
 * lifetime of six months.
 */
const SECRET_LIFETIME = 5 * MINUTE

/**
 * The error for a stored secret that cannot authenticate Gatehouse. Earlier versions accepted such secrets.
 */
export class UnusableSecret extends Error {
  override readonly name = 'UnusableSecret'
}

/**
 * Signs Apple's client secret:
 * https://developer.apple.com/documentation/accountorganizationaldatasharing/creating-a-client-secret
 */
const signedSecret =
  (context: Context, pem: string, apple: { kid: string; iss: string; aud: string }): client.ClientAuth =>
  async (_server, { client_id }, body) => {
    const now = context.clock.now()
    const key = signingKeyOf(pem)
    if (!key) throw new UnusableSecret('The secret is not a private key on P-256.')
    const { kid, ...issued } = apple
    const claims = {
      ...issued,
      sub: client_id,
      iat: Math.floor(now / SECOND),
      exp: Math.floor((now + SECRET_LIFETIME) / SECOND),
    }
    body.set('client_id', client_id)
    body.set('client_secret', await signJwt(key, { alg: 'ES256', kid }, claims))
  }

/**
 * Chooses the client authentication by the provider's metadata:
 * https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata
 */
const clientAuth = (context: Context, provider: OidcProvider): client.ClientAuth => {
  const secret = openSecret(context, provider)
  const { team_id, key_id, issuer } = provider.settings
  if (!secret) return client.None()
  if (team_id && key_id) return signedSecret(context, secret, { kid: key_id, iss: team_id, aud: issuer })
  if (holdsPrivateKey(secret))
    return () => {
      throw new UnusableSecret('The secret is a private key, which is never sent: set team_id and key_id.')
    }
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)]
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest)
  }
}

/**
 * Milliseconds for which metadata is kept. Metadata seldom changes, and providers publish a new key more than
 * ten minutes before its first use.
 */
const KNOWN_FOR = 10 * MINUTE
/**
 * Milliseconds after a failure in which no new attempt is made. Each call to an unreachable provider may take
 * 5 s.
 */
const FAILED_FOR = 15 * SECOND

/**
 * Returns the provider's metadata, and the client that is registered at the provider. The result is cached
 * for ten minutes, and a failure for 15 s. The cached value becomes invalid when the provider's settings
 * change, and when the clock is set back.
 */
export const configurationOf = (context: Context, provider: OidcProvider): Promise<client.Configuration> => {
  const { upstreams, clock } = context
  const now = clock.now()
  const found = upstreams.get(provider.id)
  const isCurrent = found && now >= found.kept.from && now < found.kept.until
  if (isCurrent && found.version === provider.updated_at) return found.configuration
  const configuration = discover(context, provider)
  const kept = { from: now, until: now + KNOWN_FOR }
  const entry = { version: provider.updated_at, kept, configuration }
  upstreams.delete(provider.id)
  upstreams.set(provider.id, entry)
  const [oldest] = upstreams.keys()
  if (upstreams.size > MAX_KEPT && oldest !== undefined) upstreams.delete(oldest)
  configuration.catch(() => {
    if (upstreams.get(provider.id) !== entry) return
    const from = clock.now()
    upstreams.set(provider.id, { ...entry, kept: { from, until: from + FAILED_FOR } })
  })
  return configuration
}

/**
 * Reads the metadata of the provider. Returns the metadata and the client that is registered at the provider.
 */
export const discover = async (context: Context, provider: OidcProvider): Promise<client.Configuration> => {
  const organization = await organizationOf(context, provider)
  const { issuer, client_id } = provider.settings
  return client.discovery(new URL(issuer), client_id, undefined, clientAuth(context, provider), {
    [client.customFetch]: through(context.fetch, organization),
    // enableNonRepudiationChecks also verifies the signature of an ID token from the token endpoint.
    execute: [client.enableNonRepudiationChecks, ...allowHttp(context, issuer, organization)],
  })
}
