import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { SECOND } from '#src/lib/duration.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { mailOrigin } from '#src/mail/outbox.ts'
import { PageError } from '#src/pages/error-page.ts'
import { redeemEmailCode } from '#src/sign-in/email-codes.ts'
import { accountName, confirmProof, MAX_IDENTIFIER, proveByName } from '#src/sign-in/password.ts'
import { resume } from './advance.ts'
import { askForMail, knownOwner } from './ask-for-mail.ts'
import { proceedAs } from './authentication-result.ts'
import { type BrowserSession, openStep, type StoredFlow, stepToken } from './flow.ts'
import { continueAt } from './login.ts'
import { homeOf } from './login-organization.ts'
import { clientName, confirmingUser, openStepPage, type Retry, show } from './step-pages.ts'
import { setCodeFor } from './store.ts'

const PATH = '/oauth/email-code'

/** RFC 8176 has no value for a code by mail; it is a one-time password (`otp`). */
const EMAIL_CODE = { acr: '1', amr: ['otp'] }

/** Renders the page that asks for a name. After a code was requested, the page asks for the code instead. */
const page = (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  retry?: Retry<'email-code'>,
): Response => {
  const { searchParams } = new URL(browser.call.request.url)
  const { code_for, login_hint } = flow.request
  const isAsked = code_for !== undefined && !searchParams.has('again')
  const username = code_for ?? login_hint
  return show(
    context,
    'email-code',
    browser,
    flow,
    {
      action: PATH,
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'email_code', '', hashSecret(code_for ?? '')),
      login_url: `/oauth/login?request=${flow.handle}`,
      ...(username !== undefined && { username }),
      ...(isAsked && {
        again_url: `${PATH}?request=${flow.handle}&again=1`,
        given: searchParams.get('code')?.match(/^\d{6}$/)?.[0] ?? '',
      }),
    },
    retry,
  )
}

/**
 * Returns a redirect to the due step when the user must sign in another way before adding a factor, because a
 * mailbox alone must not suffice for a change of the account. Returns undefined when the form may be used.
 *
 * @throws PageError 404 when the server sends no mail, the organization offers no codes, or a user with
 * another way to sign in has to confirm a change of the account
 */
const leadElsewhere = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
): Promise<Response | undefined> => {
  const isOffered = context.mail && settingsOf(flow.organization).email_code !== 'off'
  const confirms = isOffered && (await confirmingUser(context, browser, flow)) !== undefined
  if (!isOffered || (confirms && flow.request.confirm)) throw new PageError('not_found', 404)
  return confirms ? resume(context, browser, flow) : undefined
}

/**
 * Shows the form for a code. The link in the mail leads to this form. Another browser gets an error, because
 * the code belongs to the browser that asked for it.
 */
export const getEmailCode =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow } = await openStepPage(context, call).catch(error => {
      const { searchParams } = new URL(call.request.url)
      throw searchParams.has('code') ? new PageError('other_browser', 400) : error
    })
    return (await leadElsewhere(context, browser, flow)) ?? page(context, browser, flow)
  }

/** Handles two forms. The form with `username` requests a code by mail, and the form with `code` signs in. */
export const postEmailCode =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow, form, content } = await openStep(context, call, 'email_code')
    const elsewhere = await leadElsewhere(context, browser, flow)
    if (elsewhere) return elsewhere
    const username = form.get('username')
    if (username !== undefined) return sendCode(context, browser, flow, username.trim())
    // A code was requested for another name since the page was shown.
    if (content !== hashSecret(flow.request.code_for ?? '')) throw new PageError('expired', 400)
    return enterCode(context, browser, flow, form.get('code') ?? '')
  }

/**
 * Sends a code by mail. The answer and the work are the same for every name, because only the job that sends
 * the mail decides whether a code is sent.
 */
const sendCode = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  username: string,
): Promise<Response> => {
  const { call } = browser
  const refuse = (
    error: { code: 'missing' | 'throttled'; seconds?: number },
    options: Omit<Retry<'email-code'>, 'data'>,
  ) =>
    page(
      context,
      browser,
      { ...flow, request: { ...flow.request, code_for: undefined } },
      {
        data: { username, error },
        ...options,
      },
    )
  if (username === '') return refuse({ code: 'missing' }, { status: 400 })
  const home = await homeOf(context, flow, username)
  if (home) return continueAt(context, browser, flow, home, username)
  const { id: organization_id } = flow.organization
  const identifier = username.slice(0, MAX_IDENTIFIER).toWellFormed()
  const application = clientName(flow)?.client_name
  const owner = await knownOwner(context, organization_id, identifier, call)
  const data = {
    ...mailOrigin({ ...originFrom(call), application }),
    identifier,
    request: flow.handle,
    ...(owner && { known_to: owner }),
  }
  const mail = { kind: 'sign_in_code', organization_id, user_id: null, data } as const
  // Requests from known browsers are counted separately, so that strangers who request codes for this name do
  // not use up the owner's limit.
  const recipient = `code:${accountName({ organization_id, identifier })}${owner ? ':known' : ''}`
  const wait = await askForMail(context, call, mail, recipient, owner)
  if (wait > 0) {
    const seconds = Math.ceil(wait / SECOND)
    return refuse(
      { code: 'throttled', seconds },
      { status: 429, headers: { 'retry-after': String(seconds) } },
    )
  }
  await context.store.write(tx => setCodeFor(tx, flow.pending, identifier))
  return seeOther(`${PATH}?request=${flow.handle}`)
}

const originFrom = ({ user_agent, ip_address, time_zone }: Call) => ({ user_agent, ip_address, time_zone })

/**
 * Signs in with the code, which counts as one factor. Wrong codes and wrong passwords use up the same
 * attempts, so that guessing both gives nobody more attempts.
 */
const enterCode = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  code: string,
): Promise<Response> => {
  const identifier = flow.request.code_for
  if (identifier === undefined) return page(context, browser, flow)
  const { user, refusal } = await proveByName(
    context,
    { organization_id: flow.organization.id, identifier, client_info: browser.call },
    {
      work: 'commit',
      check: async found => {
        const { request_hash } = flow.pending
        const isRight = await context.store.write(tx =>
          redeemEmailCode(context, tx, found, request_hash, code),
        )
        return isRight ? undefined : 'wrong_email_code'
      },
    },
  )
  if (refusal) {
    const { status, headers, code: reason, seconds } = refusal
    const error = { code: reason === 'invalid_credentials' ? 'wrong' : reason, seconds } as const
    return page(context, browser, flow, { data: { error }, status, headers })
  }
  return proceedAs(context, browser, flow, { user, ...EMAIL_CODE, confirm: tx => confirmProof(tx, user) })
}
