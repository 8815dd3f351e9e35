import type { Context } from '#src/context.ts'
import { type Factor, listFactors } from '#src/directory/users/factors/store.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { levelWith } from '#src/protocol/oidc/acr.ts'
import { challengeOf, creationOptions, offersPasskeys, requestOptions } from '#src/sign-in/passkeys.ts'
import { offerSecret, setUpOf } from '#src/sign-in/totp.ts'
import type { BrowserLogin } from './eligible-logins.ts'
import { type BrowserSession, isProven, roundOf, type StoredFlow, stepToken } from './flow.ts'
import { exitOf, type Retry, show } from './step-pages.ts'

const queryParameter = ({ call }: BrowserSession, name: string): string | null =>
  new URL(call.request.url).searchParams.get(name)

type Method = 'totp' | 'passkey' | 'recovery'

/**
 * Returns the methods that the user has and that reach the level. A recovery code stands in for an
 * authenticator app.
 */
const methodsFor = ({ factors, level }: BrowserLogin): Method[] => {
  const methods: Method[] = (['passkey', 'totp'] as const).filter(
    type => factors.includes(type) && levelWith(type) >= level,
  )
  return level <= levelWith('totp') ? [...methods, 'recovery'] : methods
}

/** Second-factor page; `using` is the method whose form was posted. */
export const secondFactorPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: BrowserLogin,
  retry?: Retry<'second-factor'>,
  using = queryParameter(browser, 'method'),
): Promise<Response> => {
  const methods = methodsFor(login)
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
      ...(method === 'passkey' && { options: requestOptions(context.config, challenge, passkeys) }),
      // Recovery codes do not reach this level, but they open the page where a lost factor is replaced.
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

/** The TOTP secret that the page of this round offers. */
export const secretFor = (context: Context, flow: StoredFlow, { user_id }: BrowserLogin): string =>
  offerSecret(context, `${roundOf(flow)}\0${user_id}`)

/**
 * Enrolment page: the choice of a kind where there are several, then its setup. `using` is the kind whose
 * form was posted.
 */
export const enrolPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: BrowserLogin,
  retry?: Retry<'enrol-totp'> | Retry<'enrol-passkey'>,
  using = queryParameter(browser, 'kind'),
): Promise<Response> => {
  const { config } = context
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
    ...exit,
    ...(kinds.length > 1 && { cancel_url: address }),
  }
  if (kind === 'totp') {
    const set_up = setUpOf(secretFor(context, flow, login), flow.organization.display_name, login.username)
    return show(context, 'enrol-totp', browser, flow, { ...form, ...set_up }, retry as Retry<'enrol-totp'>)
  }
  const passkeys = (await context.store.read(q => listFactors(q, login.user_id))).filter(isPasskey)
  const challenge = challengeOf(context, 'enrol', roundOf(flow))
  const options = creationOptions(
    config,
    challenge,
    flow.organization.display_name,
    { ...login, id: login.user_id },
    passkeys,
  )
  return show(context, 'enrol-passkey', browser, flow, { ...form, options }, retry as Retry<'enrol-passkey'>)
}
