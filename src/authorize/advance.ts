import type { Context } from '#src/context.ts'
import { insertDynamicClient, noteUse } from '#src/directory/clients/dynamic-store.ts'
import { recordDynamic } from '#src/directory/clients/dynamic-use.ts'
import type { Client } from '#src/directory/clients/store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { withCookies } from '#src/http/cookies.ts'
import { PageError } from '#src/pages/error-page.ts'
import { sameOrganization, withoutNotice } from '#src/pages/way-back.ts'
import { isDynamic } from '#src/protocol/oauth/dynamic-id.ts'
import { OAuthError, type OAuthErrorCode } from '#src/protocol/oauth/error.ts'
import { formatScope } from '#src/protocol/oauth/scope.ts'
import { answeredAcr } from '#src/protocol/oidc/acr.ts'
import { recordLogin } from '#src/sign-in/sign-in.ts'
import type { Transaction } from '#src/storage/store.ts'
import { storeCode } from '#src/tokens/code-store.ts'
import { type CodeLogin, composeCode, type StoredCode } from '#src/tokens/codes.ts'
import { answerClient, answerError } from './answer.ts'
import { attributesPage } from './attributes-page.ts'
import { consentPage } from './consent-page.ts'
import { consentScopes, offeredScopes } from './consent-scopes.ts'
import { consentsSince, grantConsent, hasConsents } from './consent-store.ts'
import { withDocument } from './document.ts'
import { decideAmong, type Next } from './due-step.ts'
import { type BrowserLogin, isLogin, listBrowserLogins } from './eligible-logins.ts'
import { enrolPage, offerPasskeyPage, secondFactorPage } from './factor-pages.ts'
import {
  accountRequest,
  type BrowserSession,
  chooseLogin,
  chosenOf,
  type Flow,
  findFlow,
  flowOf,
  isProven,
  openStep,
  type StoredFlow,
  storeFlow,
} from './flow.ts'
import { provenByMailbox } from './mailbox-alone.ts'
import { changePasswordPage, excludedPage, loginPage, selectAccountPage } from './step-pages.ts'
import { consumePending } from './store.ts'
import { termsPage } from './terms-page.ts'

type PageStep = Exclude<Next, { step: 'refuse' | 'issue' }>

/**
 * Runs the next step of an authorization. Only this function routes between steps. After a GET it answers
 * with the page of the step. After a POST it redirects to the URL of that page, so that a reload repeats
 * nothing.
 *
 * @param logins the eligible logins, when the caller has already listed them in this request
 */
export const advance = async (
  context: Context,
  browser: BrowserSession,
  opened: Flow | StoredFlow,
  after: 'get' | 'post',
  logins?: readonly BrowserLogin[],
): Promise<Response> => {
  const { flow, next } = await settle(context, browser, opened, logins)
  // Until the user consents, the redirect URI of a dynamic client may be an attacker's. The server therefore
  // shows the error on a page. `refuseDynamic` in authorize.ts does the same for a refused request.
  if (next.step === 'refuse' && flow.client && isDynamic(flow.client)) throw new PageError('bad_request', 400)
  if (next.step === 'refuse') return refuseAuthorization(context, browser.call, flow, next.error)
  if (next.step === 'issue') return issue(context, browser, flow, next.login)
  const { stored, cookies } =
    'handle' in flow ? { stored: flow, cookies: [] } : await storeFlow(context, browser, flow)
  const answer =
    after === 'get'
      ? await stepPage(context, browser, stored, next)
      : seeOther(`/oauth/${next.step.replace('_', '-')}?request=${stored.handle}`)
  return withCookies(answer, cookies)
}

const stepPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  next: PageStep,
): Promise<Response> => {
  if (next.step === 'login') return loginPage(context, browser, flow, next.login)
  if (next.step === 'select_account') return selectAccountPage(context, browser, flow, next.logins)
  return pages[next.step](context, browser, flow, next.login)
}

const pages = {
  second_factor: secondFactorPage,
  enrol: enrolPage,
  change_password: changePasswordPage,
  excluded: excludedPage,
  attributes: attributesPage,
  terms: termsPage,
  offer_passkey: offerPasskeyPage,
  consent: consentPage,
}

/** Returns the next step of the flow. The step depends on the logins of the browser. */
export const decide = async (
  context: Context,
  browser: BrowserSession,
  flow: Flow,
  chosen_login_id = chosenOf(flow),
): Promise<Next> => {
  const logins = await listBrowserLogins(context, browser, flow)
  return confirmFirst(context, flow, decideAmong(context, flow, logins, chosen_login_id))
}

/**
 * True when this browser has a login of the user, and this login has no step left to complete. A thief who
 * knows only the password may have begun a change, such as a new address or a linked account, before the user
 * added a second factor. The thief's login then lacks the second factor, so the thief cannot complete the
 * change.
 */
export const hasCompleteLogin = async (
  context: Context,
  browser: BrowserSession,
  { id: hinted_user_id, organization_id }: Pick<UserRow, 'id' | 'organization_id'>,
): Promise<boolean> => {
  const flow = await flowOf(context, accountRequest(organization_id, { hinted_user_id }))
  return (await decide(context, browser, flow)).step === 'issue'
}

/**
 * Returns the given step. Returns the step `login` instead when the user has to confirm their identity first:
 * before a factor is added ({@link provenByMailbox}), and before a form that waits for a confirmation is
 * handled. A login that another request began confirms no such form, because the user may have cancelled it.
 */
const confirmFirst = async (context: Context, flow: Flow, next: Next): Promise<Next> => {
  if (next.step === 'issue' && flow.request.confirm?.intent && !flow.pending?.login_id)
    return { step: 'login', login: next.login }
  const login = await provenByMailbox(context, flow, next)
  return login ? { step: 'login', login } : next
}

/**
 * Like {@link decide}. Before the steps that concern the client (excluded user, consent, code), this function
 * reads the metadata document of a dynamic client. Callers that answer the client use this function.
 */
export const settle = async <F extends Flow>(
  context: Context,
  browser: BrowserSession,
  flow: F,
  known?: readonly BrowserLogin[],
): Promise<{ flow: F; next: Next; logins: readonly BrowserLogin[] }> => {
  const logins = known ?? (await listBrowserLogins(context, browser, flow))
  const next = await confirmFirst(context, flow, decideAmong(context, flow, logins))
  const concernsClient = next.step === 'excluded' || next.step === 'consent' || next.step === 'issue'
  const described = concernsClient ? await withDocument(context, browser.call, flow, next.login) : flow
  return described === flow ? { flow, next, logins } : settle(context, browser, described)
}

/**
 * True when the user of a page has to authenticate again before the form of the page is handled. This is the
 * case, for example, when the login became too old while the page was open.
 */
export const isStale = (next: Next, login_id: string | undefined): next is Next & { login: BrowserLogin } =>
  next.step === 'login' && next.login !== undefined && next.login.id === login_id

/**
 * Opens the posted form of a step that is due for the login that the page showed. Returns an answer instead
 * when this login became too old while the page was open, or when another step of this login is due, because
 * another copy of the form was handled first.
 *
 * @throws PageError 400 `expired` when another login is due; the errors of {@link openStep}
 */
export const openDueStep = async (
  context: Context,
  call: Call,
  step: 'second_factor' | 'change_password' | 'attributes' | 'terms',
) => {
  const { browser, flow: opened, form, login_id } = await openStep(context, call, step)
  const flow = chooseLogin(opened, login_id)
  const next = await decide(context, browser, flow)
  if (isStale(next, login_id)) return advance(context, browser, opened, 'post')
  if (!('login' in next) || next.login?.id !== login_id) throw new PageError('expired', 400)
  if (next.step !== step) {
    const current = await findFlow(context, browser, opened.handle)
    return advance(context, browser, chooseLogin(current, login_id), 'post')
  }
  return { browser, flow, form, login: next.login }
}

/** Loads a stored flow again and continues with the step that is due now. */
export const resume = async (
  context: Context,
  browser: BrowserSession,
  { handle }: StoredFlow,
): Promise<Response> => advance(context, browser, await findFlow(context, browser, handle), 'post')

/**
 * Ends a flow: sends a code to the client, or redirects a flow without a client to its last page. A flow in
 * which a form waits for a confirmation goes on at /account/continue, which ends the flow.
 */
const issue = async (
  context: Context,
  { call }: BrowserSession,
  flow: Flow | StoredFlow,
  login: BrowserLogin,
): Promise<Response> => {
  if (!isLogin(login)) throw new PageError('expired', 400)
  const { request, client } = flow
  if (request.confirm?.intent && 'handle' in flow) return seeOther(`/account/continue?request=${flow.handle}`)
  const issued =
    client &&
    composeCode(context, {
      client_id: client.client_id,
      login,
      redirect_uri: request.redirect_uri,
      scope: formatScope(offeredScopes(flow, login.held)),
      resources: request.resources?.join(' '),
      nonce: request.nonce,
      code_challenge: request.code_challenge,
      auth_time: login.auth_time,
      acr: answeredAcr(request.acr_values, login.acr),
      amr: login.amr,
      client_info: call,
    })
  // An existing login may answer the request at once. In that case nothing is written if the code fits into a
  // URL, because the code then contains the grant itself.
  if (issued?.stored || flow.pending || flow.approved)
    await context.store.write(tx => endFlow(context, tx, call, flow, login, issued?.stored))
  return issued
    ? answerClient(context, call, flow, { code: issued.code })
    : seeOther(request.back ?? '/account')
}

/** Makes the changes at the end of a flow. When two requests end the same flow, only one succeeds. */
const endFlow = async (
  context: Context,
  tx: Transaction,
  call: Call,
  flow: Flow,
  login: BrowserLogin & CodeLogin,
  code: StoredCode | undefined,
): Promise<void> => {
  const { client, pending, approved } = flow
  if (pending && !(await consumePending(tx, pending.request_hash))) throw new PageError('expired', 400)
  if (!client && isProven(flow)) await recordLogin(context, tx, login, call)
  if (client && approved) await allow(context, tx, call, flow, client, login)
  if (code) await storeCode(tx, code)
}

/**
 * Stores a user's consent. Records `client.first_used` if no user of the organization has consented to the
 * dynamic client yet, so that administrators learn of a client that none of them has registered.
 */
const allow = async (
  context: Context,
  tx: Transaction,
  call: Call,
  flow: Flow,
  client: Client,
  { user_id, organization_id, email, held }: BrowserLogin,
): Promise<void> => {
  const { client_id } = client
  if (isDynamic(client)) {
    if (flow.document) await insertDynamicClient(tx, flow.document)
    await noteUse(tx, client_id, context.clock.now())
    if (!(await hasConsents(tx, client_id, organization_id)))
      await recordDynamic(context, tx, client, 'client.first_used', {
        actor: { id: user_id, email },
        organization_id,
        client_info: call,
        subject_id: user_id,
      })
  }
  const consent = { user_id, client_id, organization_id, scopes: consentScopes(flow, held) }
  await grantConsent(tx, { ...consent, since: consentsSince(client) }, context.clock.now())
}

/**
 * Ends a flow with an error. A client gets the error. A flow without a client comes from an account page:
 * `login_required` means that another user than that of the page has signed in, and leads back to the page.
 *
 * @throws PageError 403 `not_allowed` for another error without a client; 400 `expired` when another request
 * has ended the flow of the client
 */
export const refuseAuthorization = async (
  context: Context,
  call: Call,
  flow: Flow,
  code: OAuthErrorCode,
): Promise<Response> => {
  const { pending, client, request } = flow
  const isLate = pending && !(await context.store.write(tx => consumePending(tx, pending.request_hash)))
  if (!client) {
    const { back = '/account' } = request
    if (code === 'login_required') return seeOther(withoutNotice(back))
    throw new PageError('not_allowed', 403, { retry_url: sameOrganization(back, '/account') })
  }
  if (isLate) throw new PageError('expired', 400)
  return answerError(context, call, flow, new OAuthError(code))
}
