import type { Prompt } from './authorize-request.ts'

/**
 * A login of this browser whose user belongs to the organization that the request names; others are never
 * listed.
 */
export type EligibleLogin = {
  readonly id: string
  readonly user_id: string
  /** When the user last proved who they are, in milliseconds; 0 when that is not known. */
  readonly auth_time: number
  /** Whether the user may still log in. */
  readonly enabled: boolean
  readonly must_change_password: boolean
  /** A factor is demanded that the user does not have, or the person asked to add one. */
  readonly enrol_due: boolean
  /** Whether this user may add a factor; asked where one is due. */
  readonly may_enrol: boolean
  /** A second factor is still to be proven, for this login or for the acr that the request asks for. */
  readonly factor_due: boolean
  /** The user granted this client all the requested scopes before. */
  readonly has_consented: boolean
}

/** All that decides how an authorization goes on; read afresh at every step, never carried along. */
export type FlowFacts<Login extends EligibleLogin> = {
  readonly prompts: readonly Prompt[]
  /** Seconds. */
  readonly max_age: number | undefined
  /** Milliseconds. */
  readonly now: number
  /** The latest sign-in first. */
  readonly logins: readonly Login[]
  /** The login that this flow settled on: just proven, or picked from the list. */
  readonly chosen_login_id: string | undefined
  /**
   * Whether that login was proven within this flow, after it began: what prompt=login and max_age=0 ask for.
   */
  readonly is_authenticated: boolean
  /** The subject of the verified id_token_hint, as a user id. */
  readonly hinted_user_id: string | undefined
  /** Whether the client has to ask at all. */
  readonly consent_required: boolean
  /**
   * A public client with a private-use scheme: who is asking cannot be known, so earlier consent counts for
   * nothing.
   */
  readonly always_ask: boolean
  /** The user who approved within this flow. */
  readonly consent_given_by: string | undefined
}

export type NextStep<Login extends EligibleLogin> =
  /** `login` is the one whose user has to prove themselves again, when there is one. */
  | { readonly step: 'login'; readonly login: Login | undefined }
  | { readonly step: 'select_account'; readonly logins: readonly Login[] }
  | {
      readonly step: 'second_factor' | 'enrol' | 'change_password' | 'consent'
      readonly login: Login
    }
  | { readonly step: 'issue'; readonly login: Login }
  | {
      readonly step: 'refuse'
      readonly error:
        | 'login_required'
        | 'consent_required'
        | 'interaction_required'
        | 'unmet_authentication_requirements'
    }

/** What a request that may show nothing answers where a person would have to act. */
const refusals = {
  login: 'login_required',
  select_account: 'interaction_required',
  change_password: 'interaction_required',
  enrol: 'interaction_required',
  second_factor: 'interaction_required',
  consent: 'consent_required',
} as const

/** What changes who gets in asks for a proof that is no older, in seconds. */
export const FRESH = 5 * 60

export const isFresh = ({ auth_time }: Pick<EligibleLogin, 'auth_time'>, now: number): boolean =>
  now - auth_time <= FRESH * 1000

/**
 * The one rule for how an authorization goes on: login, select_account, second_factor, change_password, enrol,
 * consent, issue, in this order, each only while it is due. What changes who gets in (a new password, a further factor) is done
 * by whoever has proven themselves within this flow or just before it, never by a cookie found or stolen; and nothing of it
 * before the second factor is proven.
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
    // That login has ended, or someone else than the hinted user logged in: asking again would go in circles.
    const isSomeoneElse = usable.some(({ id }) => id === chosen_login_id)
    return isSomeoneElse ? { step: 'refuse', error: 'login_required' } : { step: 'login', login: undefined }
  }

  const isProven = chosen !== undefined && facts.is_authenticated
  if (prompts.includes('login') && !isProven) return { step: 'login', login: chosen }
  if (!chosen && prompts.includes('select_account') && hinted.length > 1)
    return { step: 'select_account', logins: hinted }
  const login = chosen ?? hinted[0]
  if (!login || (!isProven && isStale(facts, login))) return { step: 'login', login }

  if (login.factor_due) return { step: 'second_factor', login }
  const change = dueChange(login)
  if (change === 'enrol' && !login.may_enrol)
    return { step: 'refuse', error: 'unmet_authentication_requirements' }
  // Where nothing may be shown, it is the change that is missing: a login alone would not do.
  const mayChange = isProven || isFresh(login, facts.now) || prompts.includes('none')
  if (change) return { step: mayChange ? change : 'login', login }
  return { step: isConsentDue(facts, login) ? 'consent' : 'issue', login }
}

/** A temporary password adds no factor: it is replaced first. */
const dueChange = ({ must_change_password, enrol_due }: EligibleLogin) =>
  must_change_password ? 'change_password' : enrol_due ? 'enrol' : undefined

const isStale = ({ max_age, now }: FlowFacts<EligibleLogin>, { auth_time }: EligibleLogin) =>
  max_age !== undefined && (max_age === 0 || now - auth_time > max_age * 1000)

const isConsentDue = (facts: FlowFacts<EligibleLogin>, { user_id, has_consented }: EligibleLogin) =>
  facts.consent_given_by !== user_id &&
  (facts.prompts.includes('consent') || facts.always_ask || (facts.consent_required && !has_consented))
