import type { Context } from '#src/context.ts'
import { permissionsOf } from '#src/directory/access.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { findPasskey } from '#src/directory/users/factors/store.ts'
import type { Call } from '#src/http/call.ts'
import { PageError } from '#src/pages/error-page.ts'
import { sameOrganization } from '#src/pages/way-back.ts'
import { levelOf } from '#src/protocol/oidc/acr.ts'
import { challengeOf, parseAssertion, verifyAssertion } from '#src/sign-in/passkeys.ts'
import { confirmProof } from '#src/sign-in/password.ts'
import { rememberBrowser } from '#src/sign-in/remembered-browsers.ts'
import { type Presented, proveFactor } from '#src/sign-in/second-factor.ts'
import { advance, openDueStep, resume } from './advance.ts'
import { applyResult, completeWithFactor, recoveredBy } from './authentication-result.ts'
import type { BrowserLogin } from './eligible-logins.ts'
import { daysFor, mayRecover, secondFactorPage } from './factor-pages.ts'
import { isProven, roundOf, type StoredFlow } from './flow.ts'
import { consumeRound, findPending } from './store.ts'

/**
 * Handles the second factor: `code`, `recovery_code` or `credential` (the passkey's assertion as JSON).
 * `requiredFactor` (protocol/oidc/acr.ts) decides whether a login needs a second factor.
 */
export const postSecondFactor =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openDueStep(context, call, 'second_factor')
    if (opened instanceof Response) return opened
    const { browser, flow, form, login } = opened
    const presented = await presentedBy(context, flow, form)
    const using = 'passkey' in presented ? 'passkey' : 'code' in presented ? 'totp' : 'recovery'
    return applyResult(
      context,
      browser,
      flow,
      async tx => {
        const user = await confirmProof(tx, { ...login, id: login.user_id })
        // Two copies of the form may arrive at the same time. The code that the first copy used must not
        // count as a wrong code of the second copy.
        const stored = await findPending(tx, { ...flow.pending, now: context.clock.now() })
        if (stored?.round !== flow.pending.round)
          return { kind: 'refused', answer: () => resume(context, browser, flow) }
        const proof = await proveFactor(context, tx, user, presented, call)
        if (proof.refusal) {
          const { status, headers, seconds, ...refusal } = proof.refusal
          const code = refusal.code === 'throttled' ? 'throttled' : using
          const data = { error: { code, seconds }, remembers: form.has('remember') } as const
          const retry = { data, status, headers }
          return {
            kind: 'refused',
            answer: () => secondFactorPage(context, browser, flow, login, retry, using),
          }
        }
        const recovers = using === 'recovery' && mayRecover(flow)
        // The page offers only factors that reach the required level (`login.level`), so a form with a weaker
        // factor does not come from the page.
        if (levelOf(proof.acr) < login.level && !recovers) throw new PageError('bad_request', 400)
        if (!(await consumeRound(tx, flow.pending))) throw new PageError('expired', 400)
        const then = recovers ? recoveredBy(flow, login.user_id) : flow
        const outcome = await completeWithFactor(context, tx, browser, then, login, proof)
        const days = using === 'recovery' || !form.has('remember') ? undefined : daysFor(flow, login)
        if (days === undefined || !outcome.login) return outcome
        const cookie = await rememberBrowser(context, tx, user, days, call)
        return { ...outcome, cookies: [...(outcome.cookies ?? []), cookie] }
      },
      async (then, chosen) => {
        const end = using === 'recovery' ? await endOnSecurityPage(context, chosen, login) : chosen
        return advance(context, then, end, 'post')
      },
    )
  }

const REPAIR = '/account/security?notice=recovery_code_used'

/**
 * Returns the flow with the security page as its last page, because on this page a user who needed a recovery
 * code can remove a lost factor. Changes nothing if a client asked for the login, the request names a last
 * page (`back`) other than /account, the user has not authenticated in this flow, or the user may not change
 * factors. The last page is not stored, so it is /account again if another step is due before the end.
 */
const endOnSecurityPage = async (
  { store }: Context,
  flow: StoredFlow,
  { user_id }: BrowserLogin,
): Promise<StoredFlow> => {
  const { client, request } = flow
  const end = request.back ?? '/account'
  if (client || end.split('?')[0] !== '/account' || !isProven(flow)) return flow
  const roles = await store.read(q => effectiveRoles(q, user_id))
  return permissionsOf(roles).has('profile:update')
    ? { ...flow, request: { ...request, back: sameOrganization(end, REPAIR) } }
    : flow
}

/**
 * Returns the second factor that the form presents. The signature of a passkey is verified here, before the
 * write, because verification takes long.
 */
const presentedBy = async (
  context: Context,
  flow: StoredFlow,
  form: ReadonlyMap<string, string>,
): Promise<Presented> => {
  const recovery_code = form.get('recovery_code')
  if (recovery_code !== undefined) return { recovery_code }
  const code = form.get('code')
  if (code !== undefined) return { code }
  const assertion = parseAssertion(form.get('credential'))
  const passkey = assertion && (await context.store.read(q => findPasskey(q, assertion.id)))
  if (!passkey) return { passkey: undefined, proven: undefined }
  const challenge = challengeOf(context, 'second_factor', roundOf(flow))
  return {
    passkey,
    proven: await verifyAssertion(context, assertion, passkey, challenge, { alone: false }),
  }
}
