import type { Context } from '#src/context.ts'
import type { OAuth2Provider, OidcProvider, SocialProvider } from '#src/directory/identity-providers/store.ts'
import type { Asked } from '#src/federation/callback.ts'
import type { Profile } from '#src/federation/profile.ts'
import { ArrivalError } from '#src/federation/refusal.ts'
import type { Departure, Leave } from '#src/federation/start-login.ts'
import { oauth2 } from './oauth2.ts'
import { openid } from './openid.ts'
import { reasonOf } from './reason.ts'

/** What came back with the browser. */
export interface Callback {
  parameters: URLSearchParams
  state: string
  /** What was asked of the provider. */
  asked: Asked | undefined
}

/** How one type of provider is talked to. */
export interface Upstream<P extends SocialProvider> {
  leave(context: Context, departure: Departure<P>): Promise<URL>
  prove(context: Context, provider: P, callback: Callback): Promise<Profile>
}

export const redirectUri = ({ config }: Context, { alias }: SocialProvider): string =>
  `${config.url}/oauth/social/${alias}/callback`

const upstreams: { oidc: Upstream<OidcProvider>; oauth2: Upstream<OAuth2Provider> } = { oidc: openid, oauth2 }

const upstreamOf = (provider: SocialProvider) => upstreams[provider.type] as Upstream<SocialProvider>

/** The provider's authorization endpoint with all that it is asked. */
export const leave =
  (context: Context): Leave<SocialProvider> =>
  async departure => {
    const url = await upstreamOf(departure.provider).leave(context, departure)
    // It comes from the provider's own metadata.
    if (!/^https?:$/.test(url.protocol)) throw new Error('The authorization endpoint is no web address.')
    return url.href
  }

/** Who came back, proven by the provider; an ArrivalError with the reason when it is not. */
export const proveBy = async (
  context: Context,
  provider: SocialProvider,
  callback: Callback,
): Promise<Profile> => {
  try {
    return await upstreamOf(provider).prove(context, provider, callback)
  } catch (cause) {
    throw cause instanceof ArrivalError ? cause : new ArrivalError(reasonOf(cause), { cause })
  }
}
