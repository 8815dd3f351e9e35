import type { Context } from '#src/context.ts'
import { countRecoveryCodes } from '#src/directory/users/factors/store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { listWaysIn } from '#src/directory/users/ways-in-store.ts'
import type { Call } from '#src/http/call.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import { PageError } from '#src/pages/error-page.ts'
import { confirmProof, proveByName } from '#src/sign-in/password.ts'
import { isRecoveryCode, redeemRecoveryCode } from '#src/sign-in/recovery-codes.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { proceedAs } from './authentication-result.ts'
import { type BrowserSession, openStep, type StoredFlow, stepToken } from './flow.ts'
import { confirmingUser, openStepPage, type Retry, show } from './step-pages.ts'

/** RFC 8176 has no value for recovery codes; they are one-time passwords (`otp`). */
const RECOVERY_CODE = { acr: '1', amr: ['otp'] }

/** Stands in for an unknown user, so that the work is the same as for a known user. */
const NOBODY = { id: 'usr_', password_hash: null } as const

/**
 * True for a user who has no password and can sign in with a passkey alone. For other users, such as those
 * who sign in through a provider, the code is a second factor.
 */
const mayRecover = async (q: Queries, user: Pick<UserRow, 'id' | 'password_hash'>): Promise<boolean> => {
  const ways = (await listWaysIn(q, user)).map(({ by }) => by)
  return ways.includes('passkey') && !ways.includes('password')
}

const page = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  retry?: Retry<'recover'>,
): Promise<Response> => {
  const username = (await confirmingUser(context, browser, flow))?.username ?? flow.request.login_hint
  return show(
    context,
    'recover',
    browser,
    flow,
    {
      action: '/oauth/recover',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'recover'),
      login_url: `/oauth/login?request=${flow.handle}`,
      ...(username !== undefined && { username }),
    },
    retry,
  )
}

export const getRecover =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow } = await openStepPage(context, call)
    return page(context, browser, flow)
  }

/**
 * Handles `username` and `recovery_code` of a user without a password who has lost the passkey. The code is
 * one factor, and the login begins after a new passkey is added. Other users are refused as if the code were
 * wrong.
 */
export const postRecover =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow, form } = await openStep(context, call, 'recover')
    const confirming = await confirmingUser(context, browser, flow)
    const username = confirming?.username ?? (form.get('username') ?? '').trim()
    const code = form.get('recovery_code') ?? ''
    if (!username || !code)
      return page(context, browser, flow, { data: { username, error: { code: 'missing' } }, status: 400 })
    const { user, refusal } = await proveByName(
      context,
      { organization_id: flow.organization.id, identifier: username, client_info: call },
      {
        work: 'commit',
        check: async found => {
          const person = found ?? NOBODY
          const [isRight, isAllowed] = await context.store.read(q =>
            Promise.all([isRecoveryCode(context, q, person.id, code), mayRecover(q, person)]),
          )
          return isRight && isAllowed ? undefined : 'wrong_recovery_code'
        },
      },
    )
    if (refusal) {
      const { status, headers, ...error } = refusal
      return page(context, browser, flow, { data: { username, error }, status, headers })
    }
    return proceedAs(context, browser, flow, {
      user,
      ...RECOVERY_CODE,
      recovers: true,
      confirm: tx => useCode(context, tx, user, code, call),
    })
  }

const useCode = async (
  context: Context,
  tx: Transaction,
  proven: UserRow,
  code: string,
  call: Call,
): Promise<void> => {
  const user = await confirmProof(tx, proven)
  if (!(await mayRecover(tx, user)) || !(await redeemRecoveryCode(context, tx, user.id, code)))
    throw new PageError('expired', 400)
  const count = String(await countRecoveryCodes(tx, user.id))
  await enqueueNotice(context, tx, 'recovery_code_used', user, call, { count })
}
