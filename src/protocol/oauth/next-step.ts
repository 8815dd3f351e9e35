import { CLOCK_SKEW } from '#src/lib/duration.ts'
import type { Prompt } from './authorize-request.ts'

/**
 * A login of this browser, or a first factor that was proven in this flow. The user belongs to the requested
 * organization.
 */
export type EligibleLogin = {
  readonly id: string
  readonly user_id: string
  /** Time of the last authentication in milliseconds. 0 when the time is unknown. */
  readonly auth_time: number
  /** False when the user may no longer sign in. */
  readonly enabled: boolean
  readonly must_change_password: boolean
  /** The user has to add a factor, because a factor is required or the user asked to add a factor. */
  readonly enrol_due: boolean
  /** The user may add a factor. */
  readonly may_enrol: boolean
  /** The user has to prove a second factor, for this login or for the requested acr. */
  readonly factor_due: boolean
  /** The client does not admit the user (`allowed_roles`, `allowed_groups`). */
  readonly is_excluded: boolean
  /** The user lacks attributes that the organization requires. */
  readonly attributes_due: boolean
  /** The user has not accepted the terms of the organization in their current version. */
  readonly terms_due: boolean
  /** The login used a password, and the user may be offered a passkey. */
  readonly offer_due: boolean
  /** The user has granted this client all requested scopes before. */
  readonly has_consented: boolean
}

/** Facts that determine the next step of an authorization, loaded again at every step. */
export type FlowFacts<Login extends EligibleLogin> = {
  readonly prompts: readonly Prompt[]
  /** True when the user asked to choose among the logins. */
  readonly choose: boolean
  /** Seconds. */
  readonly max_age: number | undefined
  /** Milliseconds. */
  readonly now: number
  /** Logins in the order of their start, the latest login first. */
  readonly logins: readonly Login[]
  /** Id of the login that the user chose in this flow, by authenticating or from the list. */
  readonly chosen_login_id: string | undefined
  /**
   * True when the user authenticated the chosen login within this flow. prompt=login and max_age=0 require
   * this.
   */
  readonly is_authenticated: boolean
  /** User id from the verified id_token_hint. */
  readonly hinted_user_id: string | undefined
  /**
   * True when the client requires consent. False for an application that an administrator trusts
   * (first-party). The users of such an application are asked only if `prompt=consent` or `always_ask`
   * requires it.
   */
  readonly consent_required: boolean
  /**
   * True for a public client with a private-use scheme, and for a dynamic client with a loopback redirect
   * URI. Another program on the device can pose as such a client, so earlier consent does not count.
   */
  readonly always_ask: boolean
  /** Id of the user who gave consent within this flow. */
  readonly consent_given_by: string | undefined
}

export type NextStep<Login extends EligibleLogin> =
  /**
   * `login` is the login that the user has to authenticate again. Undefined when a new login has to begin.
   */
  | { readonly step: 'login'; readonly login: Login | undefined }
  | { readonly step: 'select_account'; readonly logins: readonly Login[] }
  | {
      readonly step:
        | 'second_factor'
        | 'enrol'
        | 'change_password'
        | 'excluded'
        | 'attributes'
        | 'terms'
        | 'offer_passkey'
        | 'consent'
      readonly login: Login
    }
  | { readonly step: 'issue'; readonly login: Login }
  | {
      readonly step: 'refuse'
      readonly error:
        | 'login_required'
        | 'consent_required'
        | 'interaction_required'
        | 'access_denied'
        | 'unmet_authentication_requirements'
    }

/** The error that a request with prompt=none gets, by the step that the user would have to take. */
const refusals = {
  login: 'login_required',
  select_account: 'interaction_required',
  change_password: 'interaction_required',
  enrol: 'interaction_required',
  second_factor: 'interaction_required',
  excluded: 'access_denied',
  attributes: 'interaction_required',
  terms: 'interaction_required',
  offer_passkey: 'interaction_required',
  consent: 'consent_required',
} as const

/**
 * Maximum age, in seconds, of a recent authentication. Users need a recent authentication to change their
 * password, factors, profile or linked accounts, to download or delete their data, and for some admin calls.
 * Five minutes suffice to finish a change. A thief who finds the open browser later can no longer make a
 * change.
 */
export const FRESH = 5 * 60

type Authenticated = Pick<EligibleLogin, 'auth_time'>

/**
 * Returns the age of an authentication in milliseconds. Returns infinity for a time that is more than
 * `CLOCK_SKEW` in the future: the clock was set back, so the age is unknown.
 */
const ageOf = ({ auth_time }: Authenticated, now: number): number =>
  auth_time > now + CLOCK_SKEW ? Number.POSITIVE_INFINITY : now - auth_time

/** True when the login was authenticated in the last `FRESH` seconds. */
export const isFresh = (login: Authenticated, now: number): boolean => ageOf(login, now) <= FRESH * 1000

/**
 * Returns the next step of an authorization: login, select_account, second_factor, excluded, change_password,
 * enrol, attributes, terms, offer_passkey, consent, issue, in this order. A step that is not required is
 * skipped. A passkey is offered only after an authentication within this flow. The order has two exceptions:
 * a user who asked to choose among the logins (`choose`) gets select_account first, and a selected login that
 * is older than `max_age` gets the step login again.
 *
 * The login and the second factor come first, so that a person who cannot complete both learns nothing about
 * the account and changes nothing in it. The steps change_password and enrol require an authentication within
 * this flow or within `FRESH` seconds, so that a stolen cookie is not enough.
 * https://openid.net/specs/openid-connect-core-1_0.html#AuthRequest
 */
export const nextStep = <Login extends EligibleLogin>(facts: FlowFacts<Login>): NextStep<Login> => {
  const next = dueStep(facts)
  if (!facts.prompts.includes('none') || next.step === 'issue' || next.step === 'refuse') return next
  return { step: 'refuse', error: refusals[next.step] }
}

const dueStep = <Login extends EligibleLogin>(facts: FlowFacts<Login>): NextStep<Login> => {
  const { prompts, chosen_login_id, hinted_user_id } = facts
  const usable = facts.logins.filter(login => login.enabled)
  const hinted =
    hinted_user_id === undefined ? usable : usable.filter(({ user_id }) => user_id === hinted_user_id)
  const chosen = hinted.find(({ id }) => id === chosen_login_id)
  if (chosen_login_id !== undefined && !chosen) {
    // Either the chosen login is no longer usable, or its user is not the user of the hint. In the second
    // case the request is refused, because asking for a login again would loop.
    const isSomeoneElse = usable.some(({ id }) => id === chosen_login_id)
    return isSomeoneElse ? { step: 'refuse', error: 'login_required' } : { step: 'login', login: undefined }
  }

  if (!chosen && facts.choose && hinted.length > 0) return { step: 'select_account', logins: hinted }
  const isProven = chosen !== undefined && facts.is_authenticated
  if (prompts.includes('login') && !isProven)
    return { step: 'login', login: chosen ?? (hinted_user_id === undefined ? undefined : hinted[0]) }
  if (!chosen && prompts.includes('select_account') && hinted.length > 1)
    return { step: 'select_account', logins: hinted }
  // Among several logins the latest login is used, because its user was the last one to sign in to this
  // browser. Asking the user at each request would defeat single sign-on. A client that wants the user to
  // choose sends `prompt=select_account`.
  const login = chosen ?? hinted[0]
  if (!login || (!isProven && isStale(facts, login))) return { step: 'login', login }

  if (login.factor_due) return { step: 'second_factor', login }
  if (login.is_excluded) return { step: 'excluded', login }
  const change = dueChange(login)
  if (change === 'enrol' && !login.may_enrol)
    return { step: 'refuse', error: 'unmet_authentication_requirements' }
  // With prompt=none the client gets the error of the due change, not login_required, because a login alone
  // would not help.
  const mayChange = isProven || isFresh(login, facts.now) || prompts.includes('none')
  if (change) return { step: mayChange ? change : 'login', login }
  if (login.attributes_due) return { step: 'attributes', login }
  if (login.terms_due) return { step: 'terms', login }
  if (login.offer_due && isProven) return { step: 'offer_passkey', login }
  return { step: isConsentDue(facts, login) ? 'consent' : 'issue', login }
}

/**
 * Returns the change that is due. A temporary password is replaced before a factor is added, because another
 * person knows the temporary password and could sign in with it until it is replaced.
 */
const dueChange = ({ must_change_password, enrol_due }: EligibleLogin) =>
  must_change_password ? 'change_password' : enrol_due ? 'enrol' : undefined

const isStale = ({ max_age, now }: FlowFacts<EligibleLogin>, login: EligibleLogin) =>
  max_age !== undefined && (max_age === 0 || ageOf(login, now) > max_age * 1000)

const isConsentDue = (facts: FlowFacts<EligibleLogin>, { user_id, has_consented }: EligibleLogin) =>
  facts.consent_given_by !== user_id &&
  (facts.prompts.includes('consent') || facts.always_ask || (facts.consent_required && !has_consented))
