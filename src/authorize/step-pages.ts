import type { Context } from '#src/context.ts'
import { checkedName } from '#src/directory/clients/names.ts'
import { listAccounts } from '#src/directory/identity-providers/account-store.ts'
import { listButtons } from '#src/directory/identity-providers/buttons.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { hasTenants } from '#src/directory/organizations/store.ts'
import { listFactors } from '#src/directory/users/factors/store.ts'
import { findUser } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import type { Common, Pages, StepExit } from '#src/pages/data.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { render } from '#src/pages/render.ts'
import { withoutNotice } from '#src/pages/way-back.ts'
import { passwordRulesFor } from '#src/sign-in/new-password.ts'
import { challengeOf, requestOptions } from '#src/sign-in/passkeys.ts'
import { decideAmong } from './due-step.ts'
import { listBrowserLogins, type StepUser } from './eligible-logins.ts'
import {
  type BrowserSession,
  browserSessionOf,
  type Flow,
  findFlow,
  isProven,
  roundOf,
  type StoredFlow,
  type SubjectId,
  stepToken,
} from './flow.ts'
import { keptSlug } from './login-organization.ts'
import { provenByMailbox, waysInOf } from './mailbox-alone.ts'
import { waysIn } from './ways-in.ts'

/** Values that replace the usual values of a page when its form is shown again after a refused post. */
export interface Retry<Page extends keyof Pages> {
  data: Partial<Pages[Page]>
  status: number
  headers?: Record<string, string>
}

/** Renders the page of a step in the theme of the organization. `retry` overrides data and status. */
export const show = <Page extends keyof Pages>(
  context: Context,
  page: Page,
  { call }: BrowserSession,
  { organization }: StoredFlow,
  data: Omit<Pages[Page], keyof Common>,
  retry: Retry<Page> | undefined,
): Response =>
  render(
    page,
    {
      brand: brandOf(context, organization),
      request_id: call.request_id,
      ...data,
      ...retry?.data,
    } as Pages[Page],
    { ...retry, locale: call.locale },
  )

/**
 * Returns the client's name for a page (`checkedName`). For a dynamic client this is a host, because nobody
 * has checked the name that the client gives itself.
 */
export const clientName = ({ client, request }: StoredFlow) =>
  client && { client_name: checkedName(client, request.redirect_uri) }

/**
 * Returns how the user of a step may leave the step. A request that names its user (`hinted_user_id`) accepts
 * no other account.
 */
export const exitOf = (context: Context, flow: StoredFlow, subject?: SubjectId): StepExit => {
  const { back = '', confirm, enrol, hinted_user_id } = flow.request
  if (confirm) return { cancel_url: confirm.cancel }
  if (enrol) return { cancel_url: withoutNotice(back) }
  return hinted_user_id === undefined ? otherAccount(context, flow, subject) : {}
}

/** Returns the form with which a user leaves a step in order to sign in with another account. */
export const otherAccount = (context: Context, flow: StoredFlow, subject?: SubjectId): StepExit => ({
  other: {
    action: '/oauth/other-account',
    fields: { request: flow.handle, csrf_token: stepToken(context, flow, 'other_account', subject) },
  },
})

/**
 * Returns the user who has to confirm their identity. This happens before a change of the account
 * (`confirm`), and before a user who signed in with only a code by mail adds a factor. Returns undefined for
 * other requests and when the user's login has ended. Also returns undefined when the user has no password,
 * passkey or linked provider. The login page then also offers a code by mail.
 */
export const confirmingUser = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
): Promise<StepUser | undefined> => {
  const { confirm, hinted_user_id } = flow.request
  if (!confirm && !browser.login_hash && !flow.pending?.proof) return undefined
  const logins = await listBrowserLogins(context, browser, flow)
  if (!confirm) return provenByMailbox(context, flow, decideAmong(context, flow, logins))
  const login = logins.find(({ user_id }) => user_id === hinted_user_id)
  if (!login) return undefined
  if (login.factors.includes('passkey') && offersPasskeys(context.config)) return login
  const ways = await waysInOf(context, flow, login)
  return ways.some(({ by }) => by !== 'passkey') ? login : undefined
}

/** Renders the page on which a signed-in user confirms their identity, by one of their ways to sign in. */
const confirmPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: StepUser,
  retry: Retry<'login'> | undefined,
): Promise<Response> => {
  const { organization, handle } = flow
  const { user, factors, accounts } = await context.store.read(async q => ({
    user: await findUser(q, organization.id, login.user_id),
    factors: await listFactors(q, login.user_id),
    accounts: await listAccounts(q, login.user_id),
  }))
  const passkeys = factors.filter(({ type }) => type === 'passkey')
  const linked = new Set(accounts.map(({ provider }) => provider.alias))
  const has_password = typeof user?.password_hash === 'string'
  const buttons = await listButtons(context.store, organization.id, handle)
  return show(
    context,
    'confirm',
    browser,
    flow,
    {
      action: '/oauth/login',
      request: handle,
      csrf_token: stepToken(context, flow, 'login'),
      user: pageUserOf(login),
      has_password,
      ...(flow.request.confirm?.intent && { change: flow.request.confirm.intent.change }),
      providers: buttons.filter(({ alias }) => linked.has(alias)),
      ...(context.mail && has_password && { reset_url: `/oauth/reset-password?request=${handle}` }),
      ...(passkeys.length > 0 &&
        offersPasskeys(context.config) && {
          passkey: {
            action: '/oauth/passkey',
            recover_url: `/oauth/recover?request=${handle}`,
            options: requestOptions(
              context.config,
              challengeOf(context, 'login', roundOf(flow)),
              passkeys,
              'required',
            ),
          },
        }),
      ...exitOf(context, flow, login.id),
      ...(retry?.data.error && { error: retry.data.error }),
    },
    retry && { data: {}, status: retry.status, ...(retry.headers && { headers: retry.headers }) },
  )
}

/** True when the pages of the request ask for the user's organization. */
export const asksOrganization = async (context: Context, { request }: Flow): Promise<boolean> =>
  request.any_organization && (await hasTenants(context.store))

/** Renders the login page. `login` is set when a certain user has to authenticate again. */
export const loginPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login?: StepUser,
  retry?: Retry<'login'>,
): Promise<Response> => {
  const confirming = await confirmingUser(context, browser, flow)
  if (confirming) return confirmPage(context, browser, flow, confirming, retry)
  const { pending, request } = flow
  // `login_hint` only fills in the field, because any site can send a request with a hint.
  const username = login?.username ?? (pending.selected ? undefined : request.login_hint)
  const csrf_token = stepToken(context, flow, 'login')
  const other = retry
    ? undefined
    : await context.loginPage?.({
        request: browser.call.request,
        organization_id: flow.organization.id,
        handle: flow.handle,
        csrf_token,
        login_hint: username,
        client_name: clientName(flow)?.client_name,
      })
  if (other) return other
  const ways = await waysIn(context, flow.organization, flow.handle, () =>
    requestOptions(context.config, challengeOf(context, 'login', roundOf(flow))),
  )
  const typed = retry?.data.organization
  return show(
    context,
    'login',
    browser,
    flow,
    {
      action: '/oauth/login',
      request: flow.handle,
      csrf_token,
      ...clientName(flow),
      ...(username !== undefined && { username }),
      ...((await asksOrganization(context, flow)) && { organization: keptSlug(browser.call) }),
      ...ways,
      ...(ways.reset_url &&
        typed && { reset_url: `${ways.reset_url}&${new URLSearchParams({ organization: typed })}` }),
    },
    retry,
  )
}

/** Shows the logins of this browser to choose from. */
export const selectAccountPage = (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  logins: readonly StepUser[],
): Response =>
  show(
    context,
    'select-account',
    browser,
    flow,
    {
      action: '/oauth/select-account',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'select_account'),
      ...clientName(flow),
      accounts: logins.map(login => ({ login: login.id, ...pageUserOf(login) })),
    },
    undefined,
  )

/**
 * Returns the browser session and the flow for the page of a step. The query of the page names the request.
 *
 * @throws PageError 400 in the cases of {@link findFlow}
 */
export const openStepPage = async (
  context: Context,
  call: Call,
): Promise<{ browser: BrowserSession; flow: StoredFlow }> => {
  const browser = browserSessionOf(context, call)
  const handle = new URL(call.request.url).searchParams.get('request') ?? ''
  return { browser, flow: await findFlow(context, browser, handle) }
}

/** Shows the form that replaces a temporary or expired password. */
export const changePasswordPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: StepUser,
  retry?: Retry<'change-password'>,
): Promise<Response> =>
  show(
    context,
    'change-password',
    browser,
    flow,
    {
      action: '/oauth/change-password',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'change_password', login.id),
      reason: login.password_temporary ? 'temporary' : 'expired',
      user: pageUserOf(login),
      ask_current: !isProven(flow),
      rules: await passwordRulesFor(context, flow.organization, login.user_id),
      ...exitOf(context, flow, login.id),
    },
    retry,
  )

/**
 * Tells a user that the client does not admit them, and whom to ask. The form of the page sends the user back
 * to the client, which gets the refusal.
 */
export const excludedPage = (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: StepUser,
): Response =>
  show(
    context,
    'excluded',
    browser,
    flow,
    {
      action: '/oauth/excluded',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'excluded', login.id),
      client: { name: clientName(flow)?.client_name ?? '' },
      user: pageUserOf(login),
      ...exitOf(context, flow, login.id),
    },
    { data: {}, status: 403 },
  )
