import type { Context } from '#src/context.ts'
import { type Factor, findPasskey, usePasskey } from '#src/directory/users/factors/store.ts'
import { findUser, type UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { enqueueNotice, factorFacts } from '#src/mail/outbox.ts'
import { PageError } from '#src/pages/error-page.ts'
import { failLogin } from '#src/sign-in/failed-login.ts'
import { chargeBrowser, isKnownIn } from '#src/sign-in/known-browsers.ts'
import {
  challengeOf,
  handleOf,
  type ProvenPasskey,
  parseAssertion,
  verifyAssertion,
} from '#src/sign-in/passkeys.ts'
import { waitFor } from '#src/sign-in/password.ts'
import { checkThrottle, passwordsFrom } from '#src/sign-in/throttle.ts'
import { proceedAs } from './authentication-result.ts'
import { type BrowserSession, openStep, roundOf, type StoredFlow } from './flow.ts'
import { loginPage } from './step-pages.ts'
import { consumeRound } from './store.ts'

/**
 * Signs in with a passkey alone. `credential` is its assertion as JSON. The assertion names the user. The
 * user's organization is checked after the signature, so that the time of the answer does not reveal whose
 * passkey it is.
 */
export const postPasskey =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow, form } = await openStep(context, call, 'login')
    const wait = await waitOf(context, call, flow.organization.id)
    if (wait > 0) {
      const { status, headers, seconds } = waitFor('throttled', wait)
      const data = { error: { code: 'throttled', seconds } } as const
      return loginPage(context, browser, flow, undefined, { data, status, headers })
    }
    const { user, refused, proven } = await prove(context, flow, form.get('credential'))
    if (refused !== undefined) return refusePasskey(context, browser, flow, { user, refused })
    const { passkey, sign_count, amr } = proven
    const proceed = proceedAs(context, browser, flow, {
      user,
      acr: 'phr',
      amr,
      confirm: async tx => {
        // If two copies of the form arrive at the same time, `consumeRound` refuses the second one. Without
        // this refusal, `usePasskey` could report that the passkey was copied.
        if (!(await consumeRound(tx, flow.pending))) throw new PageError('expired', 400)
        const use = await usePasskey(tx, {
          id: passkey.id,
          sign_count,
          now: context.clock.now(),
          alone: true,
        })
        if (use === 'copied') throw new CopiedPasskey()
        if (use !== 'used') throw new PageError('expired', 400)
      },
    })
    return proceed.catch(error => {
      if (!(error instanceof CopiedPasskey)) throw error
      return refusePasskey(context, browser, flow, { user, refused: 'copied_passkey', copied: passkey })
    })
  }

/** Thrown to roll the write back, so that the round stays unused and the page that is shown again works. */
class CopiedPasskey extends Error {
  override readonly name = 'CopiedPasskey'
}

/**
 * Returns the milliseconds for which this network has to wait. Returns 0 if a user of the organization has
 * signed in with this browser before.
 */
const waitOf = (context: Context, call: Call, organization_id: OrganizationId): Promise<number> =>
  context.store.read(async q => {
    const wait = await checkThrottle(context, q, [passwordsFrom(call.ip_address)])
    return wait > 0 && (await isKnownIn(q, organization_id, call)) ? 0 : wait
  })

/**
 * Records the failure and, when the passkey was copied, notifies its owner. The page shows the same error for
 * every failure.
 */
const refusePasskey = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  { user, refused, copied }: { user?: UserRow | undefined; refused: string; copied?: Factor },
): Promise<Response> => {
  const { call } = browser
  const organization_id = flow.organization.id
  await chargeBrowser(context, call, { organization_id, kind: 'commit' })
  await context.store.write(async tx => {
    await failLogin(context, tx, [passwordsFrom(call.ip_address)], {
      organization_id,
      user_id: user?.id,
      username_attempted: user?.username ?? '',
      failure_reason: refused,
      client_info: call,
    })
    if (user && copied) await enqueueNotice(context, tx, 'passkey_copied', user, call, factorFacts([copied]))
  })
  const data = { error: { code: 'passkey' } } as const
  return loginPage(context, browser, flow, undefined, { data, status: 401 })
}

type PasskeyResult =
  | { user: UserRow; proven: ProvenPasskey & { passkey: Factor }; refused?: never }
  | { user?: UserRow; proven?: never; refused: string }

/**
 * Verifies the assertion and returns its user, or the reason of the failure. The work is the same for known
 * and unknown passkeys. The audit log of this organization does not name a user of another organization.
 */
const prove = async (
  context: Context,
  flow: StoredFlow,
  json: string | undefined,
): Promise<PasskeyResult> => {
  const assertion = parseAssertion(json)
  if (!assertion) return { refused: 'unknown_passkey' }
  const passkey = await context.store.read(q => findPasskey(q, assertion.id))
  const challenge = challengeOf(context, 'login', roundOf(flow))
  const proof = await verifyAssertion(context, assertion, passkey, challenge, { alone: true })
  const user = await context.store.read(q => findUser(q, flow.organization.id, passkey?.user_id ?? ''))
  if (!passkey || !user) return { refused: 'unknown_passkey' }
  if (!proof || handleOf(assertion) !== user.id) return { refused: 'wrong_passkey', user }
  if (!user.enabled) return { refused: 'user_disabled', user }
  return { user, proven: { passkey, ...proof } }
}
