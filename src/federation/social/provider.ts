import type { Context } from '#src/context.ts'
import { findAccount } from '#src/directory/identity-providers/account-store.ts'
import type { SocialProvider } from '#src/directory/identity-providers/types.ts'
import type { CallbackRequest } from '#src/federation/callback.ts'
import type { UpstreamProfile } from '#src/federation/profile.ts'
import type { LoginStart } from '#src/federation/start-login.ts'
import { isPlain } from '#src/lib/text.ts'

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

/** True when the account is linked. A login through a linked account needs neither a name nor an address. */
export const isLinked = async (
  { store }: Context,
  { id: provider_id }: SocialProvider,
  { subject }: UpstreamProfile,
): Promise<boolean> =>
  isPlain(subject) && (await store.read(q => findAccount(q, { provider_id, subject }))) !== undefined
