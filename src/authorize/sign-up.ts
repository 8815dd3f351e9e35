import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { allowsRegistration, mayRegister } from '#src/directory/registrations/service.ts'
import type { Call } from '#src/http/call.ts'
import { SECOND } from '#src/lib/duration.ts'
import { canonicalEmail, mailboxOf } from '#src/lib/email.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/error-page.ts'
import { askForMail } from './ask-for-mail.ts'
import { type BrowserSession, openStep, type StoredFlow, stepToken } from './flow.ts'
import { openStepPage, type Retry, show } from './step-pages.ts'

/** Maximum length of an e-mail address in characters: https://www.rfc-editor.org/errata/eid1690 */
const MAX_EMAIL = 254

const page = (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  retry?: Retry<'sign-up'>,
): Response =>
  show(
    context,
    'sign-up',
    browser,
    flow,
    {
      action: '/oauth/sign-up',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'sign_up'),
      login_url: `/oauth/login?request=${flow.handle}`,
      waits: settingsOf(flow.organization).registration === 'approval',
    },
    retry,
  )

const onlyWhereAllowed = (context: Context, { organization }: StoredFlow): void => {
  if (!allowsRegistration(context, organization)) throw new PageError('not_found', 404)
}

export const getSignUp =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow } = await openStepPage(context, call)
    onlyWhereAllowed(context, flow)
    return page(context, browser, flow)
  }

/**
 * Sends a registration link, which also continues the request of this browser. Only the job that sends the
 * mail looks the user up. Answer and work are the same whether or not the address has a user, so a stranger
 * cannot find out who has an account.
 */
export const postSignUp =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow, form } = await openStep(context, call, 'sign_up')
    onlyWhereAllowed(context, flow)
    const email = (form.get('email') ?? '').trim().slice(0, MAX_EMAIL + 1)
    const refuse = (code: 'email' | 'domain') =>
      page(context, browser, flow, { data: { email, error: { code } }, status: 400 })
    if (email.length > MAX_EMAIL || canonicalEmail(email) === undefined) return refuse('email')
    if (!mayRegister(context, flow.organization, email)) return refuse('domain')
    const { id: organization_id } = flow.organization
    const data = { email, request: flow.handle }
    const mail = { kind: 'registration', organization_id, user_id: null, data } as const
    const wait = await askForMail(context, call, mail, `register:${hashSecret(mailboxOf(email))}`)
    if (wait === 0) return page(context, browser, flow, { data: { sent: true }, status: 200 })
    const seconds = Math.ceil(wait / SECOND)
    const error = { code: 'throttled', seconds } as const
    const headers = { 'retry-after': String(seconds) }
    return page(context, browser, flow, { data: { email, error }, status: 429, headers })
  }
