import type { Context } from '#src/context.ts'
import { findOrganizationBySlug } from '#src/directory/organizations/store.ts'
import type { Call } from '#src/http/call.ts'
import { SECOND } from '#src/lib/duration.ts'
import { PageError } from '#src/pages/error-page.ts'
import { accountName, MAX_IDENTIFIER } from '#src/sign-in/password.ts'
import { askForMail, knownOwner } from './ask-for-mail.ts'
import { type BrowserSession, openStep, type StoredFlow, stepToken } from './flow.ts'
import { homeOf, keptSlug, MAX_SLUG, nobody, typedSlug } from './login-organization.ts'
import { asksOrganization, openStepPage, type Retry, show } from './step-pages.ts'

const page = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  retry?: Retry<'reset-password'>,
): Promise<Response> => {
  const { login_hint } = flow.request
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
      ...((await asksOrganization(context, flow)) && { organization: keptSlug(browser.call) }),
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
    const { browser, flow } = await openStepPage(context, call)
    return page(context, browser, flow)
  }

/**
 * Sends a reset link by mail. The job that sends the mail decides later whether a link is sent. Answer and
 * work are the same for unknown users and organizations, so a stranger cannot find out who has an account.
 * The link is for a user of the typed organization. If no organization was typed, the organization that owns
 * the login domain of the address is used. If no organization owns the domain, the organization of the
 * request is used.
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
    const mail = { kind: 'reset_password', organization_id, user_id: null, data: { identifier } } as const
    const recipient = `reset:${accountName({ organization_id, identifier })}`
    const owner = await knownOwner(context, organization_id, identifier, call)
    const wait = await askForMail(context, call, mail, recipient, owner)
    if (wait === 0) return page(context, browser, flow, { data: { sent: true }, status: 200 })
    const seconds = Math.ceil(wait / SECOND)
    const data = { ...typed, username, error: { code: 'throttled', seconds } } as const
    return page(context, browser, flow, { data, status: 429, headers: { 'retry-after': String(seconds) } })
  }
