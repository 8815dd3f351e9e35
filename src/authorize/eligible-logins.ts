import type { Config } from '#src/config.ts'
import type { Context, Core } from '#src/context.ts'
import { permissionsOf } from '#src/directory/access.ts'
import { isAdmitted } from '#src/directory/admission.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import { missingAttributes } from '#src/directory/users/attribute-form.ts'
import { MAX_FACTORS } from '#src/directory/users/factors/service.ts'
import { listFactors } from '#src/directory/users/factors/store.ts'
import { findUser } from '#src/directory/users/store.ts'
import { owesTerms } from '#src/directory/users/terms.ts'
import type { Call } from '#src/http/call.ts'
import { DAY } from '#src/lib/duration.ts'
import { CONSOLE_CLIENT, type UserId } from '#src/lib/ids.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import type { EligibleLogin } from '#src/protocol/oauth/next-step.ts'
import { isSubset } from '#src/protocol/oauth/scope.ts'
import {
  type FactorType,
  levelOf,
  levelWith,
  type RequiredFactor,
  requiredFactor,
  wantedLevel,
} from '#src/protocol/oidc/acr.ts'
import { findLoginsAtClient, type Login } from '#src/sessions/login-store.ts'
import { supportedAcrs } from '#src/sign-in/passkeys.ts'
import type { Queries, Store } from '#src/storage/store.ts'
import type { CodeLogin } from '#src/tokens/codes.ts'
import { consentScopes } from './consent-scopes.ts'
import { consentsSince } from './consent-store.ts'
import { type BrowserSession, type Flow, isLoginId, type SubjectId } from './flow.ts'
import { isFirstFactor, rememberedIn } from './remembered.ts'
import type { FirstFactorProof } from './store.ts'

/** The user of a step: a login, or a proven first factor whose login begins with the second factor. */
export type StepUser = Pick<
  Login,
  | 'user_id'
  | 'organization_id'
  | 'auth_time'
  | 'signed_in_at'
  | 'acr'
  | 'amr'
  | 'username'
  | 'email'
  | 'first_name'
  | 'last_name'
  | 'enabled'
  | 'password_temporary'
  | 'password_changed_at'
  | 'passkey_declined_at'
> & {
  id: SubjectId
  /** Time (ms) by which the login must end. */
  expires_at: number | undefined
}

/** True for a login. False for a proven first factor, for which no code can be issued yet. */
export const isLogin = <S extends Pick<StepUser, 'id'>>(subject: S): subject is S & CodeLogin =>
  isLoginId(subject.id)

/** A login with the facts that decide its next step. The next factor has to reach `level`. */
export type BrowserLogin = StepUser &
  EligibleLogin & {
    factors: readonly FactorType[]
    level: number
    /** The user's roles, loaded only if a scope of the request's APIs needs a role. */
    held: ReadonlySet<string>
  }

/**
 * Lists the logins of this browser whose user belongs to the requested organization (M-03). A login in
 * another organization does not count, because each organization decides who its users are. A first factor
 * that was proven in this flow is listed too, until the second factor is proven (O-69).
 */
export const listBrowserLogins = async (
  context: Context,
  { call, login_hash }: BrowserSession,
  flow: Flow,
): Promise<BrowserLogin[]> => {
  const { request, client, organization, pending } = flow
  const asking = client?.consent_required ? client : undefined
  const [remembered, logins, proven] = await context.store.read(q =>
    Promise.all([
      rememberedIn(context, q, call, flow),
      login_hash
        ? findLoginsAtClient(q, {
            browser_hash: login_hash,
            now: context.clock.now(),
            client_id: asking?.client_id ?? '',
            since: asking ? consentsSince(asking) : 0,
          })
        : [],
      pending?.proof ? findProven(q, flow, pending.proof) : [],
    ]),
  )
  const candidate = async (subject: StepUser, factors: FactorType[]): Promise<BrowserLogin> => {
    const consented = logins.find(({ user_id }) => user_id === subject.user_id)?.consented
    const isSpared = remembered.has(subject.user_id) && !waits(subject, pending) && isFirstFactor(subject)
    const owes = owedBy(context, flow, subject, factors, isSpared)
    const enrol_due = owes.enrol_due || (request.enrol === true && !pending?.enrolled)
    const held = await rolesFor(context, flow, subject)
    return {
      ...subject,
      ...owes,
      factors,
      held,
      enrol_due,
      may_enrol: enrol_due && (await mayEnrol(context, flow, subject, factors)),
      must_change_password: !waits(subject, pending) && mustChangePassword(context, organization, subject),
      is_excluded: client ? !(await context.store.read(q => isAdmitted(q, client, subject.user_id))) : false,
      attributes_due: await owesAttributes(context, organization, subject),
      terms_due: await owesTerms(context, organization, subject.user_id),
      offer_due: await isOfferDue(context, call, flow, subject, factors),
      has_consented: consented !== undefined && isSubset(consentScopes(flow, held), consented),
    }
  }
  const waiting = await Promise.all(proven.map(({ subject, factors }) => candidate(subject, factors)))
  const begun = logins
    .filter(login => login.organization_id === organization.id)
    .map(({ factors, consented: _, ...login }) => candidate(login, factors))
  return [...waiting.filter(owesFactor), ...(await Promise.all(begun))]
}

const rolesFor = ({ store }: Context, { apis }: Flow, { user_id }: StepUser): Promise<ReadonlySet<string>> =>
  apis.some(({ scopes }) => scopes.some(({ role }) => role !== null))
    ? store.read(q => effectiveRoles(q, user_id)).then(roles => new Set(roles.map(({ name }) => name)))
    : Promise.resolve(new Set())

/** True when a change, such as a new password, waits until the user of a proven first factor is signed in. */
const waits = (subject: StepUser, pending: Flow['pending']): boolean =>
  !isLogin(subject) && pending?.proof?.action !== undefined

/**
 * True when the user may add a factor. Every user may add the factor or passkey that the organization
 * requires, and a passkey that replaces a lost passkey. To add any other factor, the user needs
 * `profile:update` and must have fewer than `MAX_FACTORS` factors. False when {@link isOutOfReach}.
 */
const mayEnrol = async (
  { config, store }: Context,
  flow: Flow,
  { user_id }: StepUser,
  factors: readonly FactorType[],
): Promise<boolean> => {
  if (isOutOfReach(config, flow)) return false
  const { length } = factors
  const required = requiredLevel(flow)
  if (required > 1 && !factors.some(type => levelWith(type) >= required)) return true
  if (isRecovered(flow, user_id)) return true
  return length < MAX_FACTORS && mayChangeProfile(store, user_id)
}

const mayChangeProfile = async (store: Store, user_id: UserId): Promise<boolean> =>
  permissionsOf(await store.read(q => effectiveRoles(q, user_id))).has('profile:update')

/**
 * Milliseconds until a passkey is offered again after "Not now". People who see an offer at each login
 * dismiss it unread.
 */
const OFFER_AGAIN = 30 * DAY

/**
 * True when server and browser support passkeys, and a passkey may be offered to the user. The user must have
 * typed a password, and must have proven the second factor if there is one. The user must have no passkey,
 * must be allowed to add a factor, and must not have declined the offer lately. False in flows that confirm
 * the user, and in flows that add a factor or have added one. False in development mode, so that tests see
 * the same pages in every browser.
 */
const isOfferDue = (
  { config, store, clock, loginPage }: Context,
  call: Call,
  { request, pending }: Flow,
  { user_id, acr, amr, passkey_declined_at }: StepUser,
  factors: readonly FactorType[],
): Promise<boolean> => {
  const isPossible = loginPage === undefined && call.has_passkeys && offersPasskeys(config)
  const isRuledOut =
    !isPossible ||
    request.confirm ||
    request.enrol ||
    pending?.enrolled ||
    !amr.includes('pwd') ||
    factors.includes('passkey') ||
    (factors.length > 0 && levelOf(acr) < levelWith('totp')) ||
    (passkey_declined_at !== null && clock.now() - passkey_declined_at < OFFER_AGAIN) ||
    factors.length >= MAX_FACTORS
  return isRuledOut ? Promise.resolve(false) : mayChangeProfile(store, user_id)
}

/** True when the user lacks a required attribute. */
const owesAttributes = (
  { store }: Context,
  organization: Organization,
  { user_id }: StepUser,
): Promise<boolean> => {
  const required = settingsOf(organization).user_attributes.filter(definition => definition.required)
  if (required.length === 0) return Promise.resolve(false)
  return store
    .read(q => findUser(q, organization.id, user_id))
    .then(user => user !== undefined && missingAttributes(required, user.attributes).length > 0)
}

const owesFactor = ({ factor_due, enrol_due }: EligibleLogin): boolean => factor_due || enrol_due

/** Returns the level that the organization requires for this request, 1 to 3. */
const requiredLevel = ({ organization, client }: Flow): number => {
  const { mfa_required, passkey_required, console_acr } = settingsOf(organization)
  const ofEach = passkey_required ? levelWith('passkey') : mfa_required ? levelWith('totp') : 1
  return client?.client_id === CONSOLE_CLIENT ? Math.max(ofEach, levelOf(console_acr ?? '')) : ofEach
}

/**
 * True when the organization requires a passkey, but browsers offer none at the URL of the server. The URL
 * has changed since the organization made the setting.
 */
const isOutOfReach = (config: Pick<Config, 'url'>, flow: Flow): boolean =>
  requiredLevel(flow) > levelWith('totp') && !offersPasskeys(config)

/** Returns which factor a user with this login and these factors still has to prove or add in this flow. */
export const owedBy = (
  { config }: Core,
  flow: Flow,
  { acr, user_id }: Pick<StepUser, 'acr' | 'user_id'>,
  factors: readonly FactorType[],
  remembered: boolean,
): RequiredFactor => {
  const required = requiredLevel(flow)
  // The step `enrol` is refused at once. The step `second_factor` would use up a recovery code before that.
  if (isOutOfReach(config, flow) && levelOf(acr) < required)
    return { level: required, factor_due: false, enrol_due: true }
  return requiredFactor({
    acr,
    factors,
    wanted: wantedLevel(flow.request.acr_values, supportedAcrs(config)),
    required,
    recovered: isRecovered(flow, user_id),
    remembered,
  })
}

/** True when this user has proven a recovery code in place of a lost passkey in this flow. */
const isRecovered = ({ pending }: Flow, user_id: UserId): boolean => pending?.recovered_by === user_id

/**
 * Returns a list with the user of a proven first factor. The list is empty in three cases: the password, the
 * recovery codes or the address were replaced after the proof, the logins of the user were ended after the
 * proof, or the user is disabled or deleted.
 */
const findProven = async (q: Queries, { organization }: Flow, proof: FirstFactorProof) => {
  const user = await findUser(q, organization.id, proof.user_id)
  if (!user?.enabled || user.password_changed_at !== proof.password_changed_at) return []
  const subject: StepUser = {
    ...user,
    ...proof,
    id: user.id,
    auth_time: proof.auth_time ?? proof.at,
    signed_in_at: proof.at,
    expires_at: proof.until,
  }
  return [{ subject, factors: (await listFactors(q, user.id)).map(({ type }) => type) }]
}

// A temporary password must be replaced in every login. An expired password must be replaced only in a login
// with this password.
const mustChangePassword = (
  { clock }: Context,
  organization: Organization,
  { password_temporary, password_changed_at, amr }: StepUser,
): boolean => {
  const { max_age_days } = settingsOf(organization).password_policy
  const max_age = (max_age_days ?? Number.POSITIVE_INFINITY) * DAY
  return password_temporary || (amr.includes('pwd') && clock.now() - password_changed_at > max_age)
}
