import type { Context } from '#src/context.ts'
import { findOrganizationBySlug } from '#src/directory/organizations/store.ts'
import type { Call } from '#src/http/call.ts'
import { networkOf } from '#src/http/network.ts'
import { HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { enqueueMail, LINK_LIFETIME } from '#src/mail/outbox.ts'
import { PageError } from '#src/pages/boundary.ts'
import { chargeBrowser, isKnownIn } from '#src/sign-in/devices.ts'
import { accountName, MAX_IDENTIFIER } from '#src/sign-in/password.ts'
import { checkThrottle, countFailure, type Limit } from '#src/sign-in/throttle.ts'
import {
  type BrowserSession,
  browserSessionOf,
  findFlow,
  openStep,
  type StoredFlow,
  stepToken,
} from './flow.ts'
import { homeOf, MAX_SLUG, nobody, typedSlug } from './login-organization.ts'
import { asksOrganization, type Retry, show } from './step-pages.ts'

/**
 * Limits of reset mails per account and network, per account, and per network. The wait is never longer than
 * a link is valid, so the owner always has a working link, whatever others request.
 */
const PER_NETWORK: Limit = { kind: 'window', count: 3, window: HOUR, wait: LINK_LIFETIME }
const PER_ACCOUNT: Limit = { kind: 'window', count: 10, window: HOUR, wait: LINK_LIFETIME }
const PER_ADDRESS: Limit = { kind: 'window', count: 20, window: HOUR, wait: 10 * MINUTE }

const page = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  retry?: Retry<'reset-password'>,
): Promise<Response> => {
  const { login_hint } = flow.request
  const typed = new URL(browser.call.request.url).searchParams.get('organization') ?? ''
  return show(
    context,
    'reset-password',
    browser,
    flow,
    {
      action: '/oauth/reset-password',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'reset_password'),
      login_url: `/oauth/login?request=${flow.handle}`,
      ...(login_hint !== undefined && { username: login_hint }),
      ...((await asksOrganization(context, flow)) && { organization: typed.slice(0, MAX_SLUG) }),
    },
    retry,
  )
}

const onlyWithMail = ({ mail }: Context): void => {
  if (!mail) throw new PageError('not_found', 404)
}

export const getResetPassword =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    onlyWithMail(context)
    const browser = browserSessionOf(context, call)
    const handle = new URL(call.request.url).searchParams.get('request') ?? ''
    return page(context, browser, await findFlow(context, browser, handle))
  }

/**
 * Sends a reset link by mail. The answer and the work are the same for every name, whether user and
 * organization exist or not: the user is looked up when the mail is sent. The organization is the typed one,
 * that of the address's login domain, or that of the request.
 */
export const postResetPassword =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    onlyWithMail(context)
    const { browser, flow, form } = await openStep(context, call, 'reset_password')
    const username = (form.get('username') ?? '').trim()
    const slug = typedSlug(flow, form)
    const typed = slug ? { organization: slug.slice(0, MAX_SLUG) } : {}
    if (username === '')
      return page(context, browser, flow, { data: { ...typed, error: { code: 'missing' } }, status: 400 })
    const organization = slug
      ? await findOrganizationBySlug(context.store, slug)
      : ((await homeOf(context, flow, username)) ?? flow.organization)
    const organization_id = (organization ?? flow.organization).id
    const name = organization ? username : nobody(slug, username)
    const identifier = name.slice(0, MAX_IDENTIFIER).toWellFormed()
    const network = networkOf(call.ip_address)
    const account = `reset:${accountName({ organization_id, identifier })}`
    const address = { key: `resets:${network}`, limit: PER_ADDRESS }
    const mails = [
      { key: account, limit: PER_ACCOUNT },
      { key: `${account}:${network}`, limit: PER_NETWORK },
    ]
    await chargeBrowser(context, call, { organization_id, kind: 'mail' })
    const wait = await context.store.write(async tx => {
      const blocked = await checkThrottle(context, tx, [address])
      if (blocked > 0 && !(await isKnownIn(tx, organization_id, call))) return blocked
      await countFailure(context, tx, [address])
      if ((await checkThrottle(context, tx, mails)) > 0) return 0
      await countFailure(context, tx, mails)
      const mail = { kind: 'reset_password', organization_id, user_id: null, data: { identifier } } as const
      await enqueueMail(context, tx, mail, call)
      return 0
    })
    if (wait === 0) return page(context, browser, flow, { data: { sent: true }, status: 200 })
    const seconds = Math.ceil(wait / SECOND)
    const data = { ...typed, username, error: { code: 'throttled', seconds } } as const
    return page(context, browser, flow, { data, status: 429, headers: { 'retry-after': String(seconds) } })
  }
