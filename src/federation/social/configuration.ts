import { createPrivateKey } from 'node:crypto'
import * as client from 'openid-client'
import type { CalledFor, Context, Outbound } from '#src/context.ts'
import { openSecret } from '#src/directory/identity-providers/service.ts'
import type { OidcProvider, SocialProvider } from '#src/directory/identity-providers/types.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { isAllowed, OutboundError } from '#src/http/outbound.ts'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { signWith } from '#src/tokens/signature.ts'

/** openid-client's way of asking, through ours. */
export const through =
  (fetch: Outbound, organization: CalledFor): client.CustomFetch =>
  (url, { method, headers, body, signal }) =>
    fetch(url, {
      organization,
      method,
      headers,
      ...(body != null && { body: body instanceof URLSearchParams ? body : String(body) }),
      ...(signal && { signal }),
    })

/** The library refuses plain http unless told; for whom it is allowed, the server's settings say. */
export const allowHttp = ({ config }: Context, url: string, organization: CalledFor) =>
  isAllowed(config, new URL(url), organization) ? [client.allowInsecureRequests] : []

/** The organization that calls to the provider are made for. Throws OutboundError once it is deleted. */
export const organizationOf = async (
  { store }: Context,
  { organization_id }: SocialProvider,
): Promise<CalledFor> => {
  const organization = await findOrganization(store, organization_id)
  if (!organization) throw new OutboundError(new Error('The organization of the provider is deleted.'))
  return organization
}

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')

const LIVES = 5 * MINUTE

/** Apple's secret: https://developer.apple.com/documentation/accountorganizationaldatasharing/creating-a-client-secret */
const signedSecret =
  (context: Context, { settings }: OidcProvider, pem: string): client.ClientAuth =>
  (_server, { client_id }, body) => {
    const now = context.clock.now()
    const input = [
      { alg: 'ES256', kid: settings.key_id },
      {
        iss: settings.team_id,
        sub: client_id,
        aud: settings.issuer,
        iat: Math.floor(now / SECOND),
        exp: Math.floor((now + LIVES) / SECOND),
      },
    ]
      .map(encode)
      .join('.')
    body.set('client_id', client_id)
    body.set('client_secret', `${input}.${signWith(createPrivateKey(pem), 'ES256', input)}`)
  }

/**
 * How our client proves itself there, as far as the metadata says:
 * https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata
 */
const clientAuth = (context: Context, provider: OidcProvider): client.ClientAuth => {
  const secret = openSecret(context, provider)
  const { team_id, key_id } = provider.settings
  if (!secret) return client.None()
  if (team_id && key_id) return signedSecret(context, provider, secret)
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)]
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest)
  }
}

interface Known {
  version: number
  expires_at: number
  configuration: Promise<client.Configuration>
}

const KNOWN_FOR = 10 * MINUTE
/** A provider that is down is left alone for a moment: each call to it may take 5 s. */
const FAILED_FOR = 15 * SECOND
const instances = new WeakMap<Context['store'], Map<string, Known>>()

/**
 * The provider's metadata and our client there: asked for once in ten minutes, and anew after a change, or soon after a
 * failure.
 */
export const configurationOf = (context: Context, provider: OidcProvider): Promise<client.Configuration> => {
  const known = instances.get(context.store) ?? new Map<string, Known>()
  instances.set(context.store, known)
  const now = context.clock.now()
  const found = known.get(provider.id)
  if (found && found.version === provider.updated_at && found.expires_at > now) return found.configuration
  const configuration = discover(context, provider)
  const asked = { version: provider.updated_at, expires_at: now + KNOWN_FOR, configuration }
  known.set(provider.id, asked)
  configuration.catch(() => {
    asked.expires_at = context.clock.now() + FAILED_FOR
  })
  return configuration
}

const discover = async (context: Context, provider: OidcProvider): Promise<client.Configuration> => {
  const organization = await organizationOf(context, provider)
  const { issuer, client_id } = provider.settings
  return client.discovery(new URL(issuer), client_id, undefined, clientAuth(context, provider), {
    [client.customFetch]: through(context.fetch, organization),
    // Without the first an ID token fresh from the provider's token endpoint goes unverified.
    execute: [client.enableNonRepudiationChecks, ...allowHttp(context, issuer, organization)],
  })
}
