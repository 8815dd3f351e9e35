import { hasCompleteLogin } from '#src/authorize/advance.ts'
import { isAnother, proceedAs } from '#src/authorize/authentication-result.ts'
import {
  accountRequest,
  type BrowserSession,
  browserSessionOf,
  findFlow,
  flowOf,
  type StoredFlow,
  storeFlow,
} from '#src/authorize/flow.ts'
import { consumePending, consumeRound } from '#src/authorize/store.ts'
import type { Context } from '#src/context.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/types.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash, withCookies } from '#src/http/cookies.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { UserId } from '#src/lib/ids.ts'
import { errorPage, PageError } from '#src/pages/error-page.ts'
import { render } from '#src/pages/render.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { linkOwnAccount } from '#src/sign-in/external-accounts.ts'
import { confirmProof } from '#src/sign-in/password.ts'
import { PASSWORD } from '#src/sign-in/sign-in.ts'
import type { Transaction } from '#src/storage/store.ts'
import { accountOf, confirmProvider, resolveAccount, type UpstreamIdentity } from './account-linking.ts'
import { normalizeProfile, type UpstreamProfile } from './profile.ts'
import { provisionUser } from './provisioning.ts'
import { CallbackError, checkCallbackLimit, refuseCallback, retryUrlOf } from './refusal.ts'
import { endUpstreamRequest, isPendingUpstream, storePendingLink } from './upstream-request.ts'

/** Facts about the upstream request that a callback answers. */
export interface CallbackRequest {
  /** Time of the request in milliseconds. */
  readonly sent_at: number
  readonly reauthenticate: boolean
}

interface CallbackResult {
  /** The `state` of the callback; undefined for an unsolicited SAML response. */
  state: string | undefined
  /** Verifies the provider's answer. An `AppError` passes through. Any other error refuses the login. */
  prove(upstream_request: CallbackRequest | undefined): Promise<UpstreamProfile>
}

/**
 * Handles a callback from a provider. {@link resolveAccount} decides which user signs in. The error page is
 * the same for every `CallbackError`, so that the page reveals nothing about users.
 */
export const handleCallback = async (
  context: Context,
  call: Call,
  provider: IdentityProvider,
  { state, prove }: CallbackResult,
): Promise<Response> => {
  const browser = browserSessionOf(context, call)
  const { flow, cookies, linking, upstream_request } = await flowOfRequest(context, browser, provider, state)
  const answer = await withRefusals(context, browser, { provider, flow, linking }, async () => {
    if (!provider.enabled) throw new CallbackError('provider_disabled')
    const asserted = normalizeProfile(await prove(upstream_request).catch(asCallbackError))
    const profile = { ...asserted, auth_time: authTimeOf(context, asserted, upstream_request) }
    return completeLogin(context, browser, flow, {
      provider,
      organization: flow.organization,
      profile,
      linking,
      invited: flow.request.invited,
    })
  }).catch(error => errorPage(context, call, error))
  // An error page also sets the cookies, because its link leads to the flow that was stored for this browser.
  return withCookies(answer, cookies)
}

/**
 * Returns the `auth_time` of the login in milliseconds, never later than now. When the provider states no
 * time, the value is 0, which no `max_age` accepts. When the upstream request required a new authentication,
 * the value is at least the time of that request. In this case a missing time counts as now, because some
 * providers never state a time.
 */
const authTimeOf = (
  { clock }: Context,
  { auth_time }: UpstreamProfile,
  upstream_request: CallbackRequest | undefined,
): number => {
  const now = clock.now()
  const time = upstream_request?.reauthenticate
    ? Math.max(auth_time ?? now, upstream_request.sent_at)
    : (auth_time ?? 0)
  return Math.min(now, Math.max(0, Math.floor(time)))
}

const asCallbackError = (cause: unknown): never => {
  throw cause instanceof CallbackError || cause instanceof AppError
    ? cause
    : new CallbackError('not_proven', { cause })
}

/**
 * Uses up the upstream request, and returns the flow to which it belongs. An unsolicited response has no
 * state. It starts a new flow, which ends on the account page.
 */
const flowOfRequest = async (
  context: Context,
  browser: BrowserSession,
  provider: IdentityProvider,
  state: string | undefined,
): Promise<{
  flow: StoredFlow
  cookies: string[]
  linking?: UserId | undefined
  upstream_request?: CallbackRequest
}> => {
  if (state === undefined) {
    await checkCallbackLimit(context, browser.call, provider)
    const { stored, cookies } = await storeFlow(
      context,
      browser,
      await flowOf(context, accountRequest(provider.organization_id)),
    )
    return { flow: stored, cookies }
  }
  const browser_hash = browserHash(context, browser.call.request)
  const key = browser_hash && { state, browser_hash, provider }
  const isAnswer = key !== undefined && (await isPendingUpstream(context, key))
  if (!isAnswer) await checkCallbackLimit(context, browser.call, provider)
  const upstream = isAnswer && (await endUpstreamRequest(context, key))
  if (!upstream)
    throw await refuseCallback(context, browser.call, provider, new CallbackError('unknown_state'))
  const flow = await findFlow(context, browser, upstream.handle)
  const upstream_request = { sent_at: upstream.created_at, reauthenticate: upstream.reauthenticate === true }
  return { flow, cookies: [], linking: upstream.linking, upstream_request }
}

/**
 * Runs `body`. If `body` refuses the login, records the reason and throws an error page that offers to start
 * again. Rethrows an error that is not a refusal.
 */
export const withRefusals = async (
  context: Context,
  { call }: BrowserSession,
  { provider, flow, linking }: { provider: IdentityProvider; flow: StoredFlow; linking: UserId | undefined },
  body: () => Promise<Response>,
): Promise<Response> => {
  try {
    return await body()
  } catch (error) {
    const refusal = refusalOf(error)
    if (!refusal) throw error
    const page = await refuseCallback(context, call, provider, refusal, retryUrlOf(flow, linking))
    throw refusal === error ? page : error
  }
}

/**
 * Returns the refusal to record for an error. Returns undefined when the error is not a refusal. The 410 of
 * an invitation that has ended is recorded as a refusal, but the user still sees the page of the 410.
 */
const refusalOf = (error: unknown): CallbackError | undefined => {
  if (error instanceof PageError && error.status === 410)
    return new CallbackError('invitation_ended', { cause: error })
  return error instanceof CallbackError ? error : undefined
}

/**
 * Level and method of a federated login. Such a login counts as one factor, because Gatehouse cannot see
 * which factors the provider checked. Gatehouse then asks for a second factor if the user needs one. RFC 8176
 * registers no `amr` value for a federated login; `fed` is in common use.
 */
const FEDERATED = { acr: '1', amr: ['fed'] }

/**
 * Carries out the decision of {@link resolveAccount}. If a concurrent request has already created the user,
 * {@link resolveAccount} decides again.
 */
export const completeLogin = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  identity: UpstreamIdentity,
): Promise<Response> => {
  const result = await context.store.read(q => resolveAccount(context, q, identity))
  if (result.step === 'refuse') {
    const { reason, user_id } = result
    throw new CallbackError(reason, { user_id, email: identity.profile.email })
  }
  // A flow that asks the signed-in user to confirm their identity accepts only an account that is already
  // linked to this user. This check therefore comes first.
  if (flow.request.confirm && (result.step !== 'enter' || isAnother(flow, result.user)))
    throw new CallbackError('other_account', { email: identity.profile.email })
  if (identity.linking && 'user' in result) return endLinking(context, browser, flow, identity, result.user)
  if (result.step === 'wait') return waitingPage(context, browser, flow)
  const { auth_time, until } = identity.profile
  const account = accountOf(identity)
  const confirm = (tx: Transaction) => confirmIdentity(tx, flow, identity)
  if (result.step === 'enter')
    return proceedAs(context, browser, flow, { ...result, ...FEDERATED, account, auth_time, until, confirm })
  if (result.step === 'link') return linkAs(context, browser, flow, identity, result.user, 'assertion')
  if (result.step === 'create') {
    const user = await provisionUser(context, identity, browser.call).catch(ignoreConflict)
    if (!user) return completeLogin(context, browser, flow, identity)
    if (!user.enabled) return waitingPage(context, browser, flow)
    return proceedAs(context, browser, flow, { user, ...FEDERATED, account, auth_time, until, confirm })
  }
  const { provider, profile } = identity
  const { browser_hash, round } = flow.pending
  const handle = await storePendingLink(context, {
    browser_hash,
    provider_id: provider.id,
    handle: flow.handle,
    profile,
    round,
    provider_version: provider.updated_at,
  })
  return seeOther(`/oauth/link-account?request=${handle}`)
}

const waitingPage = (context: Context, { call }: BrowserSession, { organization }: StoredFlow): Response =>
  render(
    'registration-waiting',
    { brand: brandOf(context, organization), request_id: call.request_id },
    { locale: call.locale },
  )

/**
 * Confirms that the provider is unchanged. If the user filled in a form, invalidates all forms of this flow,
 * so that they can begin only one login.
 */
const confirmIdentity = async (
  tx: Transaction,
  { pending }: StoredFlow,
  identity: UpstreamIdentity,
): Promise<void> => {
  await confirmProvider(tx, identity)
  if (identity.is_form && !(await consumeRound(tx, pending))) throw new PageError('expired', 400)
}

const ignoreConflict = (error: unknown): undefined => {
  if (error instanceof AppError && error.code === 'conflict') return undefined
  throw error
}

/** Links the account and signs the user in, in one write, after every required factor is proven. */
export const linkAs = (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  identity: UpstreamIdentity,
  user: UserRow,
  by: 'assertion' | 'password',
): Promise<Response> =>
  proceedAs(context, browser, flow, {
    user,
    ...FEDERATED,
    ...(by === 'password'
      ? { amr: [...PASSWORD.amr, ...FEDERATED.amr] }
      : { auth_time: identity.profile.auth_time }),
    until: identity.profile.until,
    confirm: async tx => {
      await confirmIdentity(tx, flow, identity)
      await confirmProof(tx, user)
    },
    action: { do: 'link', account: accountOf(identity), by, provider_version: identity.provider.updated_at },
  })

/** Links the account to the user who began the linking on the account page. Begins no login. */
const endLinking = async (
  context: Context,
  browser: BrowserSession,
  { pending }: StoredFlow,
  identity: UpstreamIdentity,
  user: UserRow,
): Promise<Response> => {
  const { call, login_hash } = browser
  if (!(await hasCompleteLogin(context, browser, user)))
    throw new CallbackError('not_logged_in', { user_id: user.id })
  const isLate = await context.store.write(async tx => {
    const logins = login_hash ? await listLogins(context, tx, login_hash) : []
    // In the meantime, the user may have signed out, or another person may use the browser.
    if (!logins.some(({ user_id }) => user_id === user.id))
      throw new CallbackError('not_logged_in', { user_id: user.id })
    await confirmProvider(tx, identity)
    if (!(await consumePending(tx, pending.request_hash))) return true
    await linkOwnAccount(context, tx, { account: accountOf(identity), by: 'login' }, user, call)
    return false
  })
  if (isLate) throw new PageError('expired', 400)
  return seeOther(pending.request.back ?? '/account')
}
