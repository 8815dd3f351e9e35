import type { Context } from '#src/context.ts'
import { findUser } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { PageError } from '#src/pages/error-page.ts'
import { chooseNewPassword } from '#src/sign-in/new-password.ts'
import { confirmProof } from '#src/sign-in/password.ts'
import { openDueStep } from './advance.ts'
import { proceedAs } from './authentication-result.ts'
import { isProven } from './flow.ts'
import { changePasswordPage } from './step-pages.ts'

/**
 * Replaces a temporary or expired password before anything is issued. Someone else may know this password.
 */
export const postChangePassword =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openDueStep(context, call, 'change_password')
    if (opened instanceof Response) return opened
    const { browser, flow, form, login } = opened
    const { organization_id, user_id } = login
    const user = await context.store.read(q => findUser(q, organization_id, user_id))
    if (!user) throw new PageError('expired', 400)
    // Asks for the current password if the user has not authenticated in this flow, because a stranger at a
    // signed-in browser must not set a password.
    const person = { user, ask_current: !isProven(flow), client_info: call }
    const { password_hash, retry } = await chooseNewPassword(context, flow.organization, form, person)
    if (retry) return changePasswordPage(context, browser, flow, login, retry)
    const { acr, amr, auth_time, signed_in_at, expires_at: until } = login
    return proceedAs(context, browser, flow, {
      user,
      acr,
      amr,
      auth_time,
      signed_in_at,
      until,
      account: flow.pending.proof?.account,
      recovers: flow.pending.recovered_by === user.id,
      confirm: tx => confirmProof(tx, user),
      action: { do: 'replace_password', password_hash },
    })
  }
