import { hash } from 'node:crypto'
import { anonymousActor } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { findAccount } from '#src/directory/identity-providers/account-store.ts'
import { readProvider } from '#src/directory/identity-providers/store.ts'
import { listFactors } from '#src/directory/users/factors/store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import { findUser, type UserRow } from '#src/directory/users/store.ts'
import { withCookies } from '#src/http/cookies.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { UserId } from '#src/lib/ids.ts'
import { errorPage, PageError } from '#src/pages/error-page.ts'
import { recognizeDevice } from '#src/sign-in/known-browsers.ts'
import { openAction, type PostLoginAction, runAction, sealAction } from '#src/sign-in/post-login-actions.ts'
import { type NewLogin, signIn, stepUp } from '#src/sign-in/sign-in.ts'
import type { Transaction } from '#src/storage/store.ts'
import { advance } from './advance.ts'
import { type BrowserLogin, isLogin, owedBy } from './eligible-logins.ts'
import type { BrowserSession, StoredFlow } from './flow.ts'
import { isFirstFactor, rememberedIn } from './remembered.ts'
import { loginPage } from './step-pages.ts'
import { type ChosenLogin, type FirstFactorProof, type Pending, updatePending } from './store.ts'

/** The `acr` and `amr` of an authentication: https://openid.net/specs/openid-connect-core-1_0.html#IDToken */
interface AuthenticationMethod {
  acr: string
  amr: string[]
}

/**
 * The login or first factor with which the flow goes on. `login` is set when a login began, or when a factor
 * was added to an existing login.
 */
interface Outcome {
  kind: 'accepted'
  chosen: ChosenLogin & Partial<Pick<Pending, 'enrolled' | 'recovered_by'>>
  login?: NewLogin
  cookies?: string[]
}

/** A user who authenticated within a flow, by any method. */
interface AuthenticationResult extends AuthenticationMethod {
  user: { id: UserId }
  /**
   * Verifies that the proof is still valid, and uses up a proof that works once. Runs in the write that
   * begins the login or stores the first factor. Changes to the account belong in `action`, which waits for
   * the second factor.
   */
  confirm?: (tx: Transaction) => Promise<unknown>
  action?: PostLoginAction
  /**
   * The linked account with which the user signed in at a provider. When the login begins, the user must
   * still be able to sign in with this account.
   */
  account?: FirstFactorProof['account']
  /**
   * Time of the authentication in milliseconds. Undefined means now, and 0 means that the time is unknown.
   */
  auth_time?: number | undefined
  /**
   * Start of the login in milliseconds. If a login replaces another login, such as after a change of
   * password, it gets the start of the replaced login.
   */
  signed_in_at?: number
  /** Time (ms) by which the login must end. */
  until?: number | undefined
  /** The user signed in with a recovery code because the passkey was lost, and has to add a new passkey. */
  recovers?: boolean
  /**
   * The user was created, or got a first credential, in this HTTP request. The login is the user's first one,
   * even if `last_login` is set.
   */
  is_first?: true | undefined
  /**
   * Returns the page to show in place of the next step. Set only for an authentication that needs no further
   * factor.
   */
  show?: () => Promise<Response>
}

/**
 * Starts the login and continues the flow with it. If the user has to prove or add another factor, the login
 * and the post-login action wait for that factor (O-69). If the page asked another user to confirm their
 * identity, the login page is shown again with an error.
 */
export const proceedAs = (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  { confirm, user, recovers, show, ...rest }: AuthenticationResult,
): Promise<Response> => {
  if (isAnother(flow, user)) {
    const data = { error: { code: 'other_account' } } as const
    return loginPage(context, browser, flow, undefined, { data, status: 403 })
  }
  const begin = async (tx: Transaction) => {
    await confirm?.(tx)
    // A first factor other than a recovery code ends a recovery that began earlier in this flow, because the
    // owner may have replaced the recovery codes since then.
    const then = recoveredBy(flow, recovers ? user.id : null)
    return completeAuthentication(context, tx, browser, then, user.id, rest)
  }
  return applyResult(context, browser, flow, begin, show)
}

/**
 * Returns the flow with `recovered_by`: the user who has proven a recovery code in place of a lost passkey,
 * or null.
 */
export const recoveredBy = (flow: StoredFlow, recovered_by: UserId | null): StoredFlow => ({
  ...flow,
  pending: { ...flow.pending, recovered_by },
})

/** True when the page asked one user to confirm their identity and another user answered. */
export const isAnother = ({ request }: StoredFlow, user: { id: UserId }): boolean =>
  request.confirm !== undefined && request.hinted_user_id !== user.id

const completeAuthentication = async (
  context: Context,
  tx: Transaction,
  { call, login_hash }: BrowserSession,
  flow: StoredFlow,
  user_id: UserId,
  {
    acr,
    amr,
    action,
    account,
    auth_time,
    signed_in_at,
    until,
    is_first,
  }: AuthenticationMethod &
    Pick<AuthenticationResult, 'account' | 'auth_time' | 'signed_in_at' | 'until' | 'is_first'> & {
      action?: PostLoginAction | undefined
    },
): Promise<Outcome> => {
  const { organization } = flow
  const { request_hash, recovered_by } = flow.pending
  const user = await findUser(tx, organization.id, user_id)
  if (!user) throw new PageError('expired', 400)
  const origin = account && (await originOf(tx, user, account))
  if (account && (!origin || (account.origin ?? origin) !== origin)) throw new PageError('expired', 400)
  const factors = (await listFactors(tx, user_id)).map(({ type }) => type)
  // A remembered browser does not replace the second factor for a change of the account: its cookie
  // identifies a browser, not a person.
  const isSpared =
    !action && isFirstFactor({ amr }) && (await rememberedIn(context, tx, call, flow)).has(user_id)
  const { factor_due, enrol_due } = owedBy(context, flow, { acr, user_id }, factors, isSpared)
  if (factor_due || enrol_due) {
    const { password_changed_at } = user
    const waiting = {
      ...(action && { action: sealAction(context, request_hash, user, action) }),
      ...(account && { account: { provider_id: account.provider_id, subject: account.subject, origin } }),
      ...(until !== undefined && { until }),
      ...(auth_time !== undefined && { auth_time }),
      ...(is_first && { is_first }),
    }
    const proof = { user_id, acr, amr, password_changed_at, at: context.clock.now(), ...waiting }
    if (flow.pending.proof?.user_id !== user_id) await recordFirstFactor(context, tx, flow, user, amr, call)
    return { kind: 'accepted', chosen: { login_id: null, selected: false, proof, recovered_by } }
  }
  if (until !== undefined && until <= context.clock.now()) throw new PageError('expired', 400)
  if (action) await runAction(context, tx, user, action, call)
  const means = { acr, amr, auth_time, signed_in_at, until }
  const login = await signIn(context, tx, { user, organization, ...means, client_info: call, login_hash })
  const cookies = await recognizeDevice(context, tx, is_first ? { ...user, last_login: null } : user, call)
  return {
    kind: 'accepted',
    chosen: { login_id: login.login_id, selected: false, proof: null, recovered_by },
    login,
    cookies,
  }
}

/**
 * Records that someone has proven the first factor of a login that needs a second factor. Without this event,
 * a stolen password could be tried without a trace. The event has no actor, because the user is not
 * authenticated yet.
 */
const recordFirstFactor = (
  context: Context,
  tx: Transaction,
  { client }: StoredFlow,
  user: UserRow,
  amr: string[],
  client_info: ClientInfo,
): Promise<void> => {
  const metadata = { client_id: client?.client_id ?? '', amr }
  const by = { actor: anonymousActor, client_info }
  return recordUser(context, tx, by, 'user.first_factor_proven', user, metadata)
}

/**
 * Returns a hash of the provider's settings if the account is linked to the user and the provider is enabled;
 * otherwise undefined. A login may wait for the second factor for half an hour. In this time the user may
 * unlink the account, or an administrator may disable the provider or move it to another issuer.
 */
const originOf = async (
  tx: Transaction,
  user: UserRow,
  account: NonNullable<AuthenticationResult['account']>,
): Promise<string | undefined> => {
  const provider = await readProvider(tx, account.provider_id)
  const isWayIn = provider?.enabled && (await findAccount(tx, account))?.user_id === user.id
  return isWayIn ? hash('sha256', JSON.stringify(provider.settings), 'base64url') : undefined
}

/**
 * Continues after the user of this step has proven or added another factor. Starts the login, or adds the
 * factor to the existing login.
 */
export const completeWithFactor = async (
  context: Context,
  tx: Transaction,
  browser: BrowserSession,
  flow: StoredFlow,
  subject: BrowserLogin,
  further: AuthenticationMethod,
): Promise<Outcome> => {
  const { acr } = further
  const amr = [...new Set([...subject.amr, ...further.amr])]
  // A recovery code does not raise the level of an existing login. It is a first factor that waits for the
  // new passkey, so everything that invalidates a first factor also ends the recovery.
  if (!isLogin(subject) || flow.pending.recovered_by === subject.user_id) {
    const { proof, request_hash } = flow.pending
    const action = proof ? openAction(context, request_hash, proof) : undefined
    const { account, auth_time, is_first } = proof ?? {}
    const until = subject.expires_at
    return completeAuthentication(context, tx, browser, flow, subject.user_id, {
      acr,
      amr,
      action,
      account,
      auth_time,
      until,
      is_first,
    })
  }
  if (!browser.login_hash) throw new PageError('expired', 400)
  const login = await stepUp(context, tx, {
    login_id: subject.id,
    login_hash: browser.login_hash,
    acr,
    amr,
  })
  if (!login) throw new PageError('expired', 400)
  const { pending } = flow
  const selected = pending.login_id === login.login_id ? pending.selected : true
  const chosen = { login_id: login.login_id, selected, proof: null }
  return { kind: 'accepted', chosen, login }
}

/** A refused proof. The flow stays unchanged; the write is committed, because it may have recorded events. */
interface Refused {
  kind: 'refused'
  answer(): Promise<Response>
}

/**
 * Runs `begin` in a write, stores the chosen login and answers with `show`. When `begin` refuses the proof,
 * the answer of the refusal is sent.
 */
export const applyResult = async (
  context: Context,
  { call, login_hash }: BrowserSession,
  flow: StoredFlow,
  begin: (tx: Transaction) => Promise<Outcome | Refused>,
  show = (browser: BrowserSession, chosen: StoredFlow) => advance(context, browser, chosen, 'post'),
): Promise<Response> => {
  const { pending } = flow
  const outcome = await context.store.write(async tx => {
    const begun = await begin(tx)
    if (begun.kind === 'accepted' && !(await updatePending(tx, pending.request_hash, begun.chosen)))
      throw new PageError('expired', 400)
    return begun
  })
  if (outcome.kind === 'refused') return outcome.answer()
  const { chosen, login, cookies = [] } = outcome
  const browser = { call, login_hash: login?.login_hash ?? login_hash }
  const answer = await show(browser, { ...flow, pending: { ...pending, ...chosen } }).catch(error =>
    errorPage(context, call, error),
  )
  // The new cookie is sent even when the next step fails, because the old cookie no longer works.
  return withCookies(answer, login ? [login.cookie, ...cookies] : [])
}
