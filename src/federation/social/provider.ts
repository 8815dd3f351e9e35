import type { Context } from '#src/context.ts'
import type { SocialProvider } from '#src/directory/identity-providers/types.ts'
import type { CallbackRequest } from '#src/federation/callback.ts'
import type { UpstreamProfile } from '#src/federation/profile.ts'
import type { LoginStart } from '#src/federation/start-login.ts'

/** The parameters of a callback. */
export interface Callback {
  parameters: URLSearchParams
  state: string
  /** Facts about the upstream request. */
  upstream_request: CallbackRequest | undefined
}

/** The protocol of one type of provider. */
export interface Upstream<P extends SocialProvider> {
  buildAuthorizationUrl(context: Context, start: LoginStart<P>): Promise<URL>
  prove(context: Context, provider: P, callback: Callback): Promise<UpstreamProfile>
}

/** Returns the redirect URI to register at the provider. */
export const redirectUri = ({ config }: Context, { alias }: SocialProvider): string =>
  `${config.url}/oauth/social/${alias}/callback`
