import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { type Factor, listFactors } from '#src/directory/users/factors/store.ts'
import { findUser } from '#src/directory/users/store.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { levelWith } from '#src/protocol/oidc/acr.ts'
import { challengeOf, creationOptions, requestOptions } from '#src/sign-in/passkeys.ts'
import { offerSecret, setUpOf } from '#src/sign-in/totp.ts'
import type { BrowserLogin } from './eligible-logins.ts'
import { type BrowserSession, isProven, roundOf, type StoredFlow, stepToken } from './flow.ts'
import { isFirstFactor, rememberDays } from './remembered.ts'
import { exitOf, type Retry, show } from './step-pages.ts'

const queryParameter = ({ call }: BrowserSession, name: string): string | null =>
  new URL(call.request.url).searchParams.get(name)

type Method = 'totp' | 'passkey' | 'recovery'

/**
 * True when the organization requires passkeys. A user who has lost the passkey then proves a recovery code
 * instead, and adds a new passkey. Without the code the user would be locked out. When only the client
 * (`acr_values=phr`) or only the console (`console_acr`) needs a passkey, the code is refused, because other
 * logins of the user need no passkey.
 */
export const mayRecover = ({ organization }: StoredFlow): boolean => settingsOf(organization).passkey_required

/**
 * Returns the methods with which the user can reach the level that the login needs. A recovery code is
 * accepted if an authenticator app would reach that level. If only a passkey reaches the level, a recovery
 * code is accepted if {@link mayRecover} returns true.
 */
const methodsFor = (flow: StoredFlow, { factors, level }: BrowserLogin): Method[] => {
  const methods: Method[] = (['passkey', 'totp'] as const).filter(
    type => factors.includes(type) && levelWith(type) >= level,
  )
  return level <= levelWith('totp') || mayRecover(flow) ? [...methods, 'recovery'] : methods
}

/**
 * Returns the days for which the page offers to remember the browser. Returns undefined in the cases of
 * {@link rememberDays}. Also returns undefined when the organization requires a passkey, when a change of the
 * account waits for the second factor, and when the first factor was neither a password nor a provider,
 * because even a remembered browser then needs the second factor.
 */
export const daysFor = (flow: StoredFlow, login: BrowserLogin): number | undefined => {
  const { passkey_required } = settingsOf(flow.organization)
  const isChange = flow.pending.proof?.action !== undefined
  return passkey_required || isChange || !isFirstFactor(login) ? undefined : rememberDays(flow)
}

/**
 * Renders the second-factor page. `using` is the method to show. It comes from the posted form. If no form
 * was posted, it comes from the query.
 */
export const secondFactorPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: BrowserLogin,
  retry?: Retry<'second-factor'>,
  using = queryParameter(browser, 'method'),
): Promise<Response> => {
  const methods = methodsFor(flow, login)
  const method = methods.find(name => name === using) ?? methods[0] ?? 'recovery'
  const passkeys = (await context.store.read(q => listFactors(q, login.user_id))).filter(isPasskey)
  const challenge = challengeOf(context, 'second_factor', roundOf(flow))
  return show(
    context,
    'second-factor',
    browser,
    flow,
    {
      action: '/oauth/second-factor',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'second_factor', login.id),
      user: pageUserOf(login),
      method,
      others: methods
        .filter(name => name !== method)
        .map(name => ({ method: name, url: `/oauth/second-factor?request=${flow.handle}&method=${name}` })),
      ...exitOf(context, flow, login.id),
      ...(method !== 'recovery' && { remember_days: daysFor(flow, login) }),
      ...(method === 'passkey' && { options: requestOptions(context.config, challenge, passkeys) }),
      // A page that accepts no recovery code links to the security page. The login to the security page
      // accepts a recovery code, and on the security page the user can replace a lost factor.
      ...(!methods.includes('recovery') && {
        replace_url: `/account/security?organization=${flow.organization.slug}`,
      }),
    },
    retry,
  )
}

const isPasskey = ({ type }: Factor): boolean => type === 'passkey'

/** Returns the kinds of factor that reach the level and that this server offers. */
const kindsFor = (context: Context, { level }: BrowserLogin) =>
  (['passkey', 'totp'] as const).filter(
    type => levelWith(type) >= level && (type === 'totp' || offersPasskeys(context.config)),
  )

/**
 * Returns the TOTP secret that the enrolment page offers. The secret is independent of the round: users who
 * have scanned it may have to prove another factor before they send the first code.
 */
export const secretFor = (context: Context, { pending }: StoredFlow, { user_id }: BrowserLogin): string =>
  offerSecret(context, `${pending.request_hash}\0${user_id}`)

/**
 * Renders the enrolment page. If there are several kinds of factor, the user first chooses one of them.
 * `using` is the kind to set up. It comes from the posted form. If no form was posted, it comes from the
 * query.
 */
export const enrolPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: BrowserLogin,
  retry?: Retry<'enrol-totp'> | Retry<'enrol-passkey'>,
  using = queryParameter(browser, 'kind'),
): Promise<Response> => {
  const page = { action: '/oauth/enrol', request: flow.handle }
  const address = `${page.action}?request=${flow.handle}`
  const exit = exitOf(context, flow, login.id)
  const user = pageUserOf(login)
  const kinds = kindsFor(context, login)
  const kind = kinds.find(name => name === using) ?? (kinds.length === 1 ? kinds[0] : undefined)
  if (!kind) {
    const choices = kinds.map(name => ({ kind: name, url: `${address}&kind=${name}` }))
    const reason = flow.request.enrol ? 'chosen' : isProven(flow) ? 'required' : 'step_up'
    return show(context, 'enrol', browser, flow, { ...page, user, reason, choices, ...exit }, undefined)
  }
  const form = {
    ...page,
    csrf_token: stepToken(context, flow, 'enrol', login.id),
    user,
    adding: kind,
    ...exit,
    ...(kinds.length > 1 && { cancel_url: address }),
  }
  if (kind === 'totp') {
    const set_up = setUpOf(secretFor(context, flow, login), flow.organization.display_name, login.username)
    return show(context, 'enrol-totp', browser, flow, { ...form, ...set_up }, retry as Retry<'enrol-totp'>)
  }
  const options = await optionsFor(context, flow, login, await hasNoPassword(context, flow, login))
  return show(context, 'enrol-passkey', browser, flow, { ...form, options }, retry as Retry<'enrol-passkey'>)
}

/** True for a user without a password. A new passkey of this user must suffice for a login on its own. */
export const hasNoPassword = async (
  { store }: Context,
  { organization }: StoredFlow,
  { user_id }: BrowserLogin,
): Promise<boolean> => (await store.read(q => findUser(q, organization.id, user_id)))?.password_hash === null

const optionsFor = async (
  context: Context,
  flow: StoredFlow,
  login: BrowserLogin,
  alone: boolean,
): Promise<string> =>
  creationOptions(
    context.config,
    challengeOf(context, 'enrol', roundOf(flow)),
    flow.organization.display_name,
    { ...login, id: login.user_id },
    (await context.store.read(q => listFactors(q, login.user_id))).filter(isPasskey),
    alone ? 'required' : 'preferred',
  )

/** Offers a passkey to a user who has typed a password. */
export const offerPasskeyPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: BrowserLogin,
  retry?: Retry<'offer-passkey'>,
): Promise<Response> =>
  show(
    context,
    'offer-passkey',
    browser,
    flow,
    {
      action: '/oauth/enrol',
      later_action: '/oauth/offer-passkey',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'enrol', login.id),
      user: pageUserOf(login),
      options: await optionsFor(context, flow, login, true),
      ...exitOf(context, flow, login.id),
    },
    retry,
  )
