import type { Context } from '#src/context.ts'
import type { OAuth2Provider, OidcProvider, SocialProvider } from '#src/directory/identity-providers/types.ts'
import type { UpstreamProfile } from '#src/federation/profile.ts'
import { CallbackError } from '#src/federation/refusal.ts'
import type { BuildAuthorizationUrl } from '#src/federation/start-login.ts'
import { oauth2 } from './oauth2.ts'
import { openid } from './openid.ts'
import type { Callback, Upstream } from './provider.ts'
import { reasonOf } from './reason.ts'

const upstreams: { oidc: Upstream<OidcProvider>; oauth2: Upstream<OAuth2Provider> } = { oidc: openid, oauth2 }

const upstreamOf = (provider: SocialProvider) => upstreams[provider.type] as Upstream<SocialProvider>

/** Builds the URL of the provider's authorization endpoint with all parameters. */
export const authorizationUrlOf =
  (context: Context): BuildAuthorizationUrl<SocialProvider> =>
  async start => {
    const url = await upstreamOf(start.provider).buildAuthorizationUrl(context, start)
    // The endpoint comes from the provider's metadata. With another scheme the redirect could open a program
    // on the person's device.
    if (!/^https?:$/.test(url.protocol))
      throw new Error('The authorization endpoint is not an http or https URL.')
    return url.href
  }

/**
 * Verifies a callback and returns the profile that the provider asserts.
 *
 * @throws CallbackError with the reason
 */
export const verifySocialCallback = async (
  context: Context,
  provider: SocialProvider,
  callback: Callback,
): Promise<UpstreamProfile> => {
  try {
    return await upstreamOf(provider).prove(context, provider, callback)
  } catch (cause) {
    throw cause instanceof CallbackError ? cause : new CallbackError(reasonOf(cause), { cause })
  }
}
