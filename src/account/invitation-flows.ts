import {
  accountRequest,
  type BrowserSession,
  browserSessionOf,
  findFlow,
  flowOf,
  type StoredFlow,
  storeFlow,
} from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import { entryPath } from '#src/directory/identity-providers/buttons.ts'
import { findEnabledProviders } from '#src/directory/identity-providers/store.ts'
import type { ShownProvider } from '#src/directory/identity-providers/types.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { withCookies } from '#src/http/cookies.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/error-page.ts'
import type { Found } from '#src/sign-in/accept-invitation.ts'

/**
 * Returns the providers through which an invited person may sign in. A person who registers gets no
 * providers, because the login page has already offered them.
 */
export const providersFor = async (
  { store }: Context,
  { invitation, organization }: Pick<Found, 'invitation' | 'organization'>,
): Promise<ShownProvider[]> =>
  invitation.is_registration ? [] : findEnabledProviders(store, organization.id)

/** Redirects to a provider. A login through it uses up the invitation. */
export const toProvider = async (
  context: Context,
  call: Call,
  opened: Pick<Found, 'invitation' | 'organization'> & { link_hash: SecretHash },
  alias: string,
): Promise<Response> => {
  const { invitation, organization, link_hash } = opened
  const provider = (await providersFor(context, opened)).find(each => each.alias === alias)
  if (!provider) throw new PageError('not_found', 404)
  const invited = { link_hash, email: invitation.email }
  const flow = await flowOf(context, accountRequest(organization.id, { invited }))
  const { stored, cookies } = await storeFlow(context, browserSessionOf(context, call), flow)
  return withCookies(seeOther(`${entryPath(provider)}?request=${stored.handle}`), cookies)
}

/**
 * Returns the stored authorization request in which the person asked to register. If this browser has no such
 * request, or the request is no longer valid, the function returns a new request for the account page.
 */
export const flowAfter = async (
  context: Context,
  browser: BrowserSession,
  { organization, request }: Pick<Found, 'organization'> & { request: string | undefined },
): Promise<StoredFlow> => {
  const asked = request && (await findFlow(context, browser, request).catch(() => undefined))
  if (asked && asked.organization.id === organization.id) return asked
  return (await storeFlow(context, browser, await flowOf(context, accountRequest(organization.id)))).stored
}
