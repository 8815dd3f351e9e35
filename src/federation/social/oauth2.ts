import * as client from 'openid-client'
import type { Context } from '#src/context.ts'
import { findPreset } from '#src/directory/identity-providers/presets.ts'
import { openSecret } from '#src/directory/identity-providers/secret.ts'
import type { OAuth2Provider } from '#src/directory/identity-providers/types.ts'
import { mapClaims } from '#src/federation/profile.ts'
import { CallbackError } from '#src/federation/refusal.ts'
import { boundHandle } from '#src/federation/upstream-request.ts'
import { allowHttp, organizationOf, through } from './configuration.ts'
import { isLinked, redirectUri, type Upstream } from './provider.ts'

/** Login with plain OAuth 2.0: the provider's own user endpoint names the user. */
export const oauth2: Upstream<OAuth2Provider> = {
  buildAuthorizationUrl: async (context, { provider, state, reauthenticate }) =>
    client.buildAuthorizationUrl(await oauth2Configuration(context, provider), {
      redirect_uri: redirectUri(context, provider),
      scope: provider.settings.scopes.join(' '),
      state,
      code_challenge: await client.calculatePKCECodeChallenge(boundHandle(context, 'code_verifier', state)),
      code_challenge_method: 'S256',
      ...(reauthenticate && (findPreset(provider.settings.preset)?.reauthenticate ?? { prompt: 'login' })),
    }),

  prove: async (context, provider, { parameters, state }) => {
    const configuration = await oauth2Configuration(context, provider)
    // `iss` is ignored, because the issuer of a provider without metadata is unknown. A mix-up attack fails
    // anyway, because each provider has its own redirect URI (RFC 9700 section 4.4).
    parameters.delete('iss')
    const { access_token } = await client.authorizationCodeGrant(
      configuration,
      new URL(`${redirectUri(context, provider)}?${parameters}`),
      { expectedState: state, pkceCodeVerifier: boundHandle(context, 'code_verifier', state) },
    )
    const { userinfo_endpoint, emails_endpoint, preset } = provider.settings
    const claims = await load(configuration, access_token, userinfo_endpoint)
    if (typeof claims !== 'object' || claims === null) throw new CallbackError('userinfo')
    const profile = mapClaims(provider, claims as Record<string, unknown>, findPreset(preset)?.claims)
    // An address from a provider without `emails_endpoint`, such as GitLab, counts as verified only if the
    // mapping names a claim for `email_verified`, because OAuth 2.0 has no standard claim for this.
    const isStated = provider.attribute_mapping.email_verified !== undefined
    if (!emails_endpoint) return { ...profile, email_verified: isStated && profile.email_verified }
    if (await isLinked(context, provider, profile)) return { ...profile, email_verified: false }
    return { ...profile, ...chooseEmail(await load(configuration, access_token, emails_endpoint)) }
  },
}

/** Returns the configuration of Gatehouse as a client of a provider that publishes no metadata. */
export const oauth2Configuration = async (
  context: Context,
  provider: OAuth2Provider,
): Promise<client.Configuration> => {
  const organization = await organizationOf(context, provider)
  const { authorization_endpoint, token_endpoint, client_id } = provider.settings
  const configuration = new client.Configuration(
    { issuer: new URL(authorization_endpoint).origin, authorization_endpoint, token_endpoint },
    client_id,
    undefined,
    client.ClientSecretPost(openSecret(context, provider)),
  )
  configuration[client.customFetch] = through(context.fetch, organization)
  for (const allow of allowHttp(context, token_endpoint, organization)) allow(configuration)
  return configuration
}

const load = async (configuration: client.Configuration, token: string, url: string): Promise<unknown> => {
  // GitHub refuses a call without `User-Agent`.
  const headers = new Headers({ accept: 'application/json', 'user-agent': 'Gatehouse' })
  const answer = await client.fetchProtectedResource(configuration, token, new URL(url), 'GET', null, headers)
  if (answer.status !== 200) throw new CallbackError('userinfo')
  return answer.json()
}

interface Email {
  email: string
  verified: boolean
  primary?: boolean
}

const isEmail = (entry: unknown): entry is Email =>
  typeof entry === 'object' && entry !== null && 'email' in entry && typeof entry.email === 'string'

/**
 * Chooses the primary address if it is verified. The second choice is any other verified address. The last
 * choice is the primary address, which then counts as unverified.
 */
const chooseEmail = (list: unknown): { email?: string; email_verified: boolean } => {
  const emails = (Array.isArray(list) ? list : []).filter(isEmail)
  const primary = emails.find(entry => entry.primary === true)
  const verified = [primary, ...emails].find(entry => entry?.verified === true)
  const email = (verified ?? primary)?.email
  return { ...(email && { email }), email_verified: verified !== undefined }
}
