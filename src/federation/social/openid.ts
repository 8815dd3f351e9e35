import * as client from 'openid-client'
import type { Context } from '#src/context.ts'
import { findPreset } from '#src/directory/identity-providers/presets.ts'
import type { OidcProvider } from '#src/directory/identity-providers/types.ts'
import { isWhole, mapClaims } from '#src/federation/profile.ts'
import { CallbackError } from '#src/federation/refusal.ts'
import { boundHandle } from '#src/federation/upstream-request.ts'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { accessTokenHash } from '#src/protocol/oidc/claims.ts'
import { isSigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { configurationOf } from './configuration.ts'
import { type Callback, isLinked, redirectUri, type Upstream } from './provider.ts'
import { reasonOf } from './reason.ts'

type Claims = Record<string, unknown>

/**
 * Login with OpenID Connect, authorization code flow:
 * https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth
 */
export const openid: Upstream<OidcProvider> = {
  buildAuthorizationUrl: async (context, { provider, state, request, reauthenticate }) => {
    const configuration = await configurationOf(context, provider)
    const { scopes, response_mode, preset } = provider.settings
    const { prompt: strongest = 'login' } = findPreset(preset)?.reauthenticate ?? {}
    const prompt = reauthenticate
      ? strongest
      : request.prompts.includes('select_account')
        ? 'select_account'
        : undefined
    return client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri(context, provider),
      scope: scopes.join(' '),
      state,
      nonce: boundHandle(context, 'nonce', state),
      code_challenge: await client.calculatePKCECodeChallenge(boundHandle(context, 'code_verifier', state)),
      code_challenge_method: 'S256',
      ...(response_mode !== 'query' && { response_mode }),
      ...(prompt && { prompt }),
      // OpenID Connect requires auth_time in the ID token when the request has max_age.
      ...(reauthenticate && { max_age: '0' }),
      ...(request.login_hint !== undefined && { login_hint: request.login_hint }),
      ...(request.ui_locales.length > 0 && { ui_locales: request.ui_locales.join(' ') }),
    })
  },

  prove: async (context, provider, callback) => {
    const configuration = await configurationOf(context, provider)
    const { parameters, state } = callback
    const answer = await client.authorizationCodeGrant(
      configuration,
      new URL(`${redirectUri(context, provider)}?${parameters}`),
      {
        expectedState: state,
        expectedNonce: boundHandle(context, 'nonce', state),
        pkceCodeVerifier: boundHandle(context, 'code_verifier', state),
        idTokenExpected: true,
      },
    )
    const claims = answer.claims()
    if (!claims) throw new CallbackError('id_token_missing')
    // The library does not check azp in an ID token with a single audience:
    // https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
    if ((claims.azp ?? provider.settings.client_id) !== provider.settings.client_id)
      throw new CallbackError('id_token_azp')
    checkAccessTokenHash(answer, claims)
    const auth_time = authTimeOf(context, claims)
    checkFresh(context, auth_time, callback)
    const preset = findPreset(provider.settings.preset)?.claims
    const known: Claims = { ...namesOf(provider, callback), ...claims }
    const profile = { ...mapClaims(provider, known, preset), auth_time }
    // The userinfo endpoint costs another call, which may fail. It is called only for a person who is not
    // linked yet, when the address, the name or a mapped claim is missing. The provider's tokens have no
    // other use and are not stored.
    const hasMapped = Object.values(provider.attribute_mapping).every(name => Object.hasOwn(known, name))
    const isComplete = (isWhole(profile) && hasMapped) || (await isLinked(context, provider, profile))
    if (isComplete || !configuration.serverMetadata().userinfo_endpoint) return profile
    const more = await client.fetchUserInfo(configuration, answer.access_token, claims.sub).catch(cause => {
      throw new CallbackError(reasonOf(cause, 'userinfo'), { cause })
    })
    const merged = mapClaims(provider, { ...more, ...known }, preset)
    const isSameAddress = merged.email === mapClaims(provider, more, preset).email
    // In userinfo, `email_verified` may be about a newer address than the one in the ID token.
    const { email_verified } = isSameAddress ? merged : profile
    return { ...merged, email_verified, auth_time }
  },
}

/**
 * Checks `at_hash`, which the library does not check:
 * https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowTokenValidation
 */
const checkAccessTokenHash = (
  { id_token = '', access_token }: client.TokenEndpointResponse,
  { at_hash }: client.IDToken,
): void => {
  if (at_hash === undefined) return
  const header = JSON.parse(Buffer.from(id_token.split('.', 1)[0] ?? '', 'base64url').toString()) as {
    alg: string
  }
  const alg = header.alg.replace(/^PS/, 'RS')
  if (isSigningAlg(alg) && at_hash !== accessTokenHash(access_token, alg))
    throw new CallbackError('id_token_at_hash')
}

/**
 * Milliseconds by which the clocks of two machines of a provider, or of two copies of this server, may
 * differ. The default for SAML providers (`clock_tolerance`) is the same.
 */
const TOLERANCE = MINUTE

/**
 * Returns the time of the authentication in milliseconds, according to this server's clock. Both times in the
 * token come from the provider's clock, so only their difference is used.
 */
const authTimeOf = ({ clock }: Context, { auth_time, iat }: client.IDToken): number | undefined =>
  auth_time === undefined ? undefined : clock.now() - (iat - auth_time) * SECOND

/**
 * If the upstream request demanded a new authentication, refuses an authentication that is more than
 * `TOLERANCE` older than the request. A missing `auth_time` is accepted, because some providers never send
 * it.
 */
const checkFresh = (
  { clock }: Context,
  auth_time: number | undefined,
  { upstream_request }: Callback,
): void => {
  if (!upstream_request?.reauthenticate || auth_time === undefined) return
  if (auth_time < Math.min(upstream_request.sent_at, clock.now()) - TOLERANCE)
    throw new CallbackError('old_authentication')
}

/**
 * Returns the user's name, which Apple sends only at the first login, in an unsigned parameter. Nothing else
 * is read from this parameter.
 */
const namesOf = ({ settings }: OidcProvider, { parameters }: Callback): Claims => {
  const text = settings.preset === 'apple' ? parameters.get('user') : null
  try {
    const { name } = JSON.parse(text ?? '{}') as { name?: { firstName?: unknown; lastName?: unknown } }
    return {
      ...(name?.firstName !== undefined && { given_name: name.firstName }),
      ...(name?.lastName !== undefined && { family_name: name.lastName }),
    }
  } catch {
    return {}
  }
}
