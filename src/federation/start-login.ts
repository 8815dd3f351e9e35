import { advance, decide } from '#src/authorize/advance.ts'
import { handleAuthorizationRequest } from '#src/authorize/authorize.ts'
import {
  accountRequest,
  type BrowserSession,
  browserSessionOf,
  type Flow,
  findFlow,
  flowOf,
  newHandle,
  type StoredFlow,
  storeFlow,
} from '#src/authorize/flow.ts'
import type { FlowRequest } from '#src/authorize/store.ts'
import type { Context } from '#src/context.ts'
import { findProvider } from '#src/directory/identity-providers/store.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/types.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { withCookies } from '#src/http/cookies.ts'
import { queryOf } from '#src/http/query.ts'
import type { UserId } from '#src/lib/ids.ts'
import type { Secret } from '#src/lib/secrets.ts'
import { issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import { PageError } from '#src/pages/error-page.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { causesOf, retryUrlOf } from './refusal.ts'
import { storeSentRequest, upstreamState } from './upstream-request.ts'

/** A browser that is about to be redirected to a provider. */
export interface LoginStart<P extends IdentityProvider> {
  provider: P
  /** The `state` parameter: 43 characters. */
  state: Secret
  request: FlowRequest
  /** True when the user has to authenticate again, even with a session at the provider. */
  reauthenticate: boolean
}

/** Builds the URL at the provider to which the browser is redirected. */
export type BuildAuthorizationUrl<P extends IdentityProvider> = (start: LoginStart<P>) => Promise<string>

/**
 * Returns the provider with this alias.
 *
 * @throws PageError 404 for an unknown alias, and for a provider of another type, which has other endpoints
 */
export const requireProvider = async <P extends IdentityProvider>(
  context: Context,
  alias: string,
  is: (provider: IdentityProvider) => provider is P,
): Promise<P> => {
  const provider = await findProvider(context.store, alias)
  if (!provider || provider.alias !== alias || !is(provider)) throw new PageError('not_found', 404)
  return provider
}

/**
 * Redirects a browser to a provider. The parameter `request` names the pending request of the login. A query
 * with `client_id` is a new authorization request; with `prompt=none` it is answered without the provider. If
 * the query has neither parameter, the login ends on the account page.
 *
 * @throws PageError 404 for a disabled provider, and for a login of another organization; 502 when the
 * provider cannot be used; the errors of `findFlow`
 */
export const startUpstreamLogin = async <P extends IdentityProvider>(
  context: Context,
  call: Call,
  provider: P,
  buildUrl: BuildAuthorizationUrl<P>,
): Promise<Response> => {
  if (!provider.enabled) throw new PageError('not_found', 404)
  const browser = browserSessionOf(context, call)
  const redirect = (flow: Flow | StoredFlow, linking?: UserId) =>
    redirectUpstream(context, browser, provider, flow, linking, buildUrl)
  const query = queryOf(call.request)
  const given = new URLSearchParams(query)
  if (given.has('client_id'))
    return handleAuthorizationRequest(context, call, [query], flow =>
      flow.request.prompts.includes('none') ? advance(context, browser, flow, 'get') : redirect(flow),
    )
  const handle = given.get('request')
  if (handle === null) return redirect(await flowOf(context, accountRequest(provider.organization_id)))
  const flow = await findFlow(context, browser, handle)
  const link = given.get('link')
  return redirect(flow, link === null ? undefined : linkingUserOf(context, flow, link))
}

const redirectUpstream = async <P extends IdentityProvider>(
  context: Context,
  browser: BrowserSession,
  provider: P,
  flow: Flow | StoredFlow,
  linking: UserId | undefined,
  buildUrl: BuildAuthorizationUrl<P>,
): Promise<Response> => {
  // A provider signs in only users of its own organization. The operator of a provider could otherwise sign
  // in as a user of another organization.
  if (flow.organization.id !== provider.organization_id) throw new PageError('not_found', 404)
  const kind = provider.type === 'saml' ? 'signature' : 'outbound'
  await chargeBrowser(context, browser.call, { organization_id: provider.organization_id, kind })
  const { request } = flow
  const reauthenticate = await mustReauthenticate(context, browser, flow)
  const handle = 'handle' in flow ? flow.handle : newHandle(flow)
  const state = upstreamState(context, { handle, provider_id: provider.id, linking, reauthenticate })
  const location = await buildUrl({ provider, state, request, reauthenticate }).catch(cause => {
    const { request_id } = browser.call
    const causes = causesOf(cause).map(({ message }) => message)
    context.log.warn({ event: 'provider_failed', request_id, provider: provider.alias, causes })
    const retry = 'handle' in flow && { retry_url: retryUrlOf(flow, linking) }
    throw new PageError('provider', 502, { cause, ...retry })
  })
  const { stored, cookies } =
    'handle' in flow ? { stored: flow, cookies: [] } : await storeFlow(context, browser, flow, handle)
  const { browser_hash } = stored.pending
  await storeSentRequest(context, state, {
    browser_hash,
    provider_id: provider.id,
    handle,
    linking,
    reauthenticate,
  })
  return withCookies(seeOther(location), cookies)
}

/**
 * True when the client sends `prompt=login` or `max_age`, or when the browser has a login whose user must
 * authenticate again. In these cases a session at the provider is not enough.
 */
const mustReauthenticate = async (
  context: Context,
  browser: BrowserSession,
  flow: Flow,
): Promise<boolean> => {
  const { prompts, max_age } = flow.request
  if (prompts.includes('login') || max_age !== undefined) return true
  const next = await decide(context, browser, flow)
  return next.step === 'login' && next.login !== undefined
}

const SEPARATOR = '~'

/**
 * Issues the token that allows a flow to link the account with which the user returns from the provider. Only
 * the account page redirects with this token, after a form post, so another site cannot make a browser link
 * an account.
 */
export const linkToken = (context: Context, { pending, handle }: StoredFlow, user_id: UserId): string =>
  issueCsrf(context, 'link', pending.browser_hash, `${handle}${SEPARATOR}${user_id}`)

const linkingUserOf = (context: Context, { pending, handle }: StoredFlow, token: string): UserId => {
  const subject = verifyCsrf(context, 'link', pending.browser_hash, token)
  const [named, user_id] = subject.split(SEPARATOR)
  if (named !== handle) throw new PageError('forbidden', 403)
  return user_id as UserId
}
