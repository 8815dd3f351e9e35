import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/store.ts'
import { withCookies } from '#src/http/cookies.ts'
import { PageError } from '#src/http/page-boundary.ts'
import { DAY } from '#src/lib/duration.ts'
import { OAuthError, type OAuthErrorCode } from '#src/protocol/oauth/error.ts'
import { type EligibleLogin, type NextStep, nextStep } from '#src/protocol/oauth/next-step.ts'
import { usesPrivateScheme, withParameters } from '#src/protocol/oauth/redirect-uri.ts'
import { formatScope, isSubset } from '#src/protocol/oauth/scope.ts'
import { type Login, listLogins } from '#src/sessions/logins.ts'
import { recordLogin } from '#src/sign-in/log-in.ts'
import { issueCode } from '#src/tokens/codes.ts'
import { type Flow, isProven, type StoredFlow, storeFlow, type Visitor } from './flow.ts'
import { changePasswordPage, consentPage, loginPage, selectAccountPage } from './step-pages.ts'
import { consumePending, grantConsent, listConsents } from './store.ts'

/** A login of this browser with all that decides about it. */
type Candidate = Login & EligibleLogin
type Next = NextStep<Candidate>
type PageStep = Exclude<Next, { step: 'refuse' }>

/**
 * The only place that routes between the steps of an authorization: collects the stored facts, asks the rule, and does what
 * it says. After a GET the page is shown at once; after a POST the browser is sent to the page's own address, so that a
 * reload posts nothing again.
 */
export const advance = async (
  context: Context,
  visitor: Visitor,
  flow: Flow | StoredFlow,
  after: 'get' | 'post',
): Promise<Response> => {
  const next = await decide(context, visitor, flow)
  if (next.step === 'refuse') return refuse(context, flow, next.error)
  if (next.step === 'issue') return issue(context, visitor, flow, next.login)
  // No second factor is built yet: an organization that demands one lets nobody in.
  if (next.step === 'enrol' || next.step === 'second_factor') throw new PageError('unavailable', 503)
  const { stored, cookies } =
    'handle' in flow ? { stored: flow, cookies: [] } : await storeFlow(context, visitor, flow)
  const answer =
    after === 'get'
      ? await stepPage(context, visitor, stored, next)
      : seeOther(`/oauth/${next.step.replace('_', '-')}?request=${stored.handle}`)
  return withCookies(answer, cookies)
}

const stepPage = async (
  context: Context,
  visitor: Visitor,
  flow: StoredFlow,
  next: PageStep,
): Promise<Response> => {
  if (next.step === 'login') return loginPage(context, visitor, flow, next.login)
  if (next.step === 'select_account') return selectAccountPage(context, visitor, flow, next.logins)
  const page = next.step === 'consent' ? consentPage : changePasswordPage
  return page(context, visitor, flow, next.login)
}

/** What is due, by the facts of this moment. */
export const decide = async (context: Context, visitor: Visitor, flow: Flow): Promise<Next> => {
  const { request, client, pending, approved } = flow
  const logins = await candidates(context, visitor, flow)
  const chosen = logins.find(({ id }) => id === pending?.login_id)
  return nextStep({
    prompts: request.prompts,
    max_age: request.max_age,
    now: context.clock.now(),
    // Whoever wants to log in as somebody else is not offered the logins that are there.
    logins: pending?.selected && !pending.login_id ? [] : logins,
    chosen_login_id: pending?.login_id ?? undefined,
    is_authenticated: isProven(flow),
    hinted_user_id: request.hinted_user_id,
    consent_required: client?.consent_required ?? false,
    always_ask: client?.type === 'public' && usesPrivateScheme(request.redirect_uri),
    consent_given_by: approved ? chosen?.user_id : undefined,
  })
}

/** The logins of this browser whose user belongs to the organization that the request names; no other is ever looked at (M-03). */
const candidates = async (
  context: Context,
  { login_hash }: Visitor,
  { request, client, organization }: Flow,
): Promise<Candidate[]> => {
  if (!login_hash) return []
  const { password_policy, mfa_required } = settingsOf(organization)
  const max_age = (password_policy.max_age_days ?? Number.POSITIVE_INFINITY) * DAY
  const [logins, consents] = await context.store.read(q =>
    Promise.all([
      listLogins(context, q, login_hash),
      client?.consent_required
        ? listConsents(q, { browser_hash: login_hash, client_id: client.client_id })
        : [],
    ]),
  )
  return logins
    .filter(login => login.organization_id === organization.id)
    .map(login => ({
      ...login,
      must_change_password:
        login.password_temporary ||
        (login.amr.includes('pwd') && context.clock.now() - login.password_changed_at > max_age),
      enrol_due: mfa_required,
      factor_due: false,
      has_consented: consents.some(
        ({ user_id, scopes }) => user_id === login.user_id && isSubset(request.scopes, scopes),
      ),
    }))
}

/** The end of a flow: a code for the client, or the person's own page. One write, and for one caller only. */
const issue = async (
  context: Context,
  { call }: Visitor,
  { request, client, pending, approved }: Flow,
  login: Candidate,
): Promise<Response> => {
  const code = await context.store.write(async tx => {
    if (pending && !(await consumePending(tx, pending.request_hash))) throw new PageError('expired', 400)
    const { user_id, organization_id, auth_time, acr, amr } = login
    if (!client) {
      await recordLogin(context, tx, { ...login, id: user_id }, call)
      return undefined
    }
    const { client_id } = client
    if (approved)
      await grantConsent(
        tx,
        { user_id, client_id, organization_id, scopes: request.scopes },
        context.clock.now(),
      )
    return issueCode(context, tx, {
      client_id,
      user_id,
      organization_id,
      login_id: login.id,
      redirect_uri: request.redirect_uri,
      scope: formatScope(request.scopes),
      nonce: request.nonce,
      code_challenge: request.code_challenge,
      auth_time,
      acr,
      amr,
      origin: call,
    })
  })
  return code ? answerClient(context, request, { code }) : seeOther('/account')
}

/** The end of a flow without a code. */
export const refuse = async (context: Context, flow: Flow, code: OAuthErrorCode): Promise<Response> => {
  const { pending, request } = flow
  const isLate = pending && !(await context.store.write(tx => consumePending(tx, pending.request_hash)))
  if (isLate) throw new PageError('expired', 400)
  return answerError(context, request, new OAuthError(code))
}

const noStore = { 'cache-control': 'no-store', pragma: 'no-cache', 'referrer-policy': 'no-referrer' }

/** 302 to the client with `state` as it was sent and `iss` (https://www.rfc-editor.org/rfc/rfc9207). */
export const answerClient = (
  context: Context,
  target: { redirect_uri: string; state?: string | undefined },
  parameters: Record<string, string>,
): Response => {
  const { redirect_uri, state } = target
  const location = withParameters(redirect_uri, { ...parameters, state, iss: context.config.url })
  return new Response(null, { status: 302, headers: { ...noStore, location } })
}

export const answerError = (
  context: Context,
  target: { redirect_uri: string; state?: string | undefined },
  { code, description }: OAuthError,
): Response => answerClient(context, target, { error: code, error_description: description })

export const seeOther = (location: string): Response =>
  new Response(null, { status: 303, headers: { ...noStore, location } })
