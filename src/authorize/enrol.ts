import type { Context } from '#src/context.ts'
import { addFactor, MAX_FACTORS, type UnnamedFactor } from '#src/directory/users/factors/service.ts'
import { countRecoveryCodes, findPasskey, listFactors } from '#src/directory/users/factors/store.ts'
import type { Call } from '#src/http/call.ts'
import { iso } from '#src/lib/text.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { translator } from '#src/pages/translate.ts'
import { acrOf, levelOf, levelWith } from '#src/protocol/oidc/acr.ts'
import { challengeOf, verifyRegistration } from '#src/sign-in/passkeys.ts'
import { confirmProof } from '#src/sign-in/password.ts'
import { issueRecoveryCodes } from '#src/sign-in/recovery-codes.ts'
import { sealSecret, stepOf } from '#src/sign-in/totp.ts'
import { advance, decide, isStale, resume } from './advance.ts'
import { applyResult, completeWithFactor } from './authentication-result.ts'
import type { BrowserLogin } from './eligible-logins.ts'
import { enrolPage, hasNoPassword, offerPasskeyPage, secretFor } from './factor-pages.ts'
import { chooseLogin, findFlow, openStep, roundOf, type StoredFlow } from './flow.ts'
import { show } from './step-pages.ts'
import { consumeRound, findPending } from './store.ts'

/**
 * Handles the form that adds a factor: the first `code` of an authenticator app, or the `credential` of a new
 * passkey. The factor is named after its maker. If the maker is unknown, it is named after its kind. Users
 * can rename it on the security page. The login counts the new factor as proven.
 */
export const postEnrol =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow: opened, form, login_id } = await openStep(context, call, 'enrol')
    const flow = chooseLogin(opened, login_id)
    const next = await decide(context, browser, flow)
    if ((next.step !== 'enrol' && next.step !== 'offer_passkey') || next.login.id !== login_id) {
      // Another copy of the form may have enrolled the factor after this request was read.
      const current = await findFlow(context, browser, opened.handle)
      if (isStale(next, login_id) || current.pending.enrolled)
        return advance(context, browser, current, 'post')
      throw new PageError('expired', 400)
    }
    const { login, step } = next
    const using = form.has('credential') ? 'passkey' : 'totp'
    const isOffered = step === 'offer_passkey'
    const retry = (code: 'code' | 'passkey') => {
      const refused = { data: { error: { code } }, status: 400 }
      return isOffered
        ? offerPasskeyPage(context, browser, flow, login, refused)
        : enrolPage(context, browser, flow, login, refused, using)
    }
    // The page offers only factors that reach the required level (`login.level`), and only a passkey in the
    // step `offer_passkey`. A form with another factor does not come from the page.
    if (levelWith(using) < login.level || (isOffered && using === 'totp'))
      throw new PageError('bad_request', 400)
    const factor = await newFactor(context, flow, login, form, isOffered)
    if (!factor) return retry(using === 'totp' ? 'code' : 'passkey')

    let codes: string[] | undefined
    return applyResult(
      context,
      browser,
      flow,
      async tx => {
        const user = await confirmProof(tx, { ...login, id: login.user_id })
        // The first of two copies of the form enrols the factor. The second copy leads to the next step.
        const stored = await findPending(tx, { ...flow.pending, now: context.clock.now() })
        if (stored?.round !== flow.pending.round)
          return { kind: 'refused', answer: () => resume(context, browser, flow) }
        const { credential_id } = factor
        if (credential_id && (await findPasskey(tx, credential_id)))
          return { kind: 'refused', answer: () => retry('passkey') }
        if (!(await consumeRound(tx, flow.pending))) throw new PageError('expired', 400)
        const factors = await listFactors(tx, user.id)
        // For a user at the limit, `decide` allows only a required factor. This check refuses the second of
        // two forms that arrive at once.
        if (factors.length >= MAX_FACTORS && login.factors.length < MAX_FACTORS)
          throw new PageError('not_allowed', 403)
        const by = { actor: { id: user.id, email: user.email }, client_info: call }
        const kind = translator(call.locale)(`enrol.kind.${factor.type}`)
        const taken = factors.map(({ name }) => name)
        await addFactor(context, tx, user, { ...factor, name: freeName(factor.name ?? kind, taken) }, by)
        // Only a user without recovery codes gets new codes, because they would replace the codes that a user
        // has saved.
        const hasCodes = (await countRecoveryCodes(tx, user.id)) > 0
        codes = hasCodes ? undefined : await issueRecoveryCodes(context, tx, user.id)
        const acr = acrOf(Math.max(levelWith(factor.type), levelOf(login.acr)))
        const amr = factor.type === 'totp' ? ['otp', 'mfa'] : [factor.synced ? 'swk' : 'hwk', 'mfa']
        const outcome = await completeWithFactor(context, tx, browser, flow, login, { acr, amr })
        return { ...outcome, chosen: { ...outcome.chosen, enrolled: true } }
      },
      async (then, chosen) => {
        if (!codes) return advance(context, then, chosen, 'post')
        const data = {
          user: pageUserOf(login),
          codes,
          address: context.config.url,
          created_at: iso(context.clock.now()),
          action: '/oauth/enrol',
          request: flow.handle,
        }
        return show(context, 'recovery-codes', then, chosen, data, undefined)
      },
    )
  }

/** Returns the name with the lowest number that makes it unique among the user's factors: `1Password 2`. */
const freeName = (name: string, taken: readonly string[]): string => {
  let free = name
  for (let count = 2; taken.includes(free); count++) free = `${name} ${count}`
  return free
}

const newFactor = async (
  context: Context,
  flow: StoredFlow,
  login: BrowserLogin,
  form: ReadonlyMap<string, string>,
  isOffered: boolean,
): Promise<UnnamedFactor | undefined> => {
  const credential = form.get('credential')
  if (credential !== undefined) {
    const alone = isOffered || (await hasNoPassword(context, flow, login))
    const challenge = challengeOf(context, 'enrol', roundOf(flow))
    return verifyRegistration(context, credential, challenge, { alone })
  }
  const secret = secretFor(context, flow, login)
  const step = stepOf(secret, form.get('code') ?? '', context.clock.now())
  if (step === undefined) return undefined
  return { type: 'totp', secret: sealSecret(context, login.user_id, secret), last_step: step }
}
