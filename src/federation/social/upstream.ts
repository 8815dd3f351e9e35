import type { Context } from '#src/context.ts'
import type { OAuth2Provider, OidcProvider, SocialProvider } from '#src/directory/identity-providers/store.ts'
import type { CallbackRequest } from '#src/federation/callback.ts'
import type { UpstreamProfile } from '#src/federation/profile.ts'
import { CallbackError } from '#src/federation/refusal.ts'
import type { BuildAuthorizationUrl, LoginStart } from '#src/federation/start-login.ts'
import { oauth2 } from './oauth2.ts'
import { openid } from './openid.ts'
import { reasonOf } from './reason.ts'

/** What came back with the browser. */
export interface Callback {
  parameters: URLSearchParams
  state: string
  /** What was asked of the provider. */
  asked: CallbackRequest | undefined
}

/** How one type of provider is talked to. */
export interface Upstream<P extends SocialProvider> {
  buildAuthorizationUrl(context: Context, start: LoginStart<P>): Promise<URL>
  prove(context: Context, provider: P, callback: Callback): Promise<UpstreamProfile>
}

export const redirectUri = ({ config }: Context, { alias }: SocialProvider): string =>
  `${config.url}/oauth/social/${alias}/callback`

const upstreams: { oidc: Upstream<OidcProvider>; oauth2: Upstream<OAuth2Provider> } = { oidc: openid, oauth2 }

const upstreamOf = (provider: SocialProvider) => upstreams[provider.type] as Upstream<SocialProvider>

/** The provider's authorization endpoint with all that it is asked. */
export const authorizationUrlOf =
  (context: Context): BuildAuthorizationUrl<SocialProvider> =>
  async start => {
    const url = await upstreamOf(start.provider).buildAuthorizationUrl(context, start)
    // It comes from the provider's own metadata.
    if (!/^https?:$/.test(url.protocol)) throw new Error('The authorization endpoint is no web address.')
    return url.href
  }

/** Who came back, proven by the provider; an CallbackError with the reason when it is not. */
export const verifyCallback = async (
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
