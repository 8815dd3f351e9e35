import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { PASSWORD } from '#src/sign-in/log-in.ts'
import { confirmProof, provePassword } from '#src/sign-in/password.ts'
import { proceedAs } from './authentication-result.ts'
import { openStep } from './flow.ts'
import { confirmingUser, loginPage } from './step-pages.ts'

/** Handles the login form: `username`, `password`, `csrf_token`. */
export const postLogin =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow, form } = await openStep(context, call, 'login')
    const confirming = await confirmingUser(context, browser, flow)
    const username = confirming?.username ?? form.get('username') ?? ''
    const password = form.get('password')
    if (!username || !password) {
      const data = { username, error: { code: 'missing' } } as const
      return loginPage(context, browser, flow, undefined, { data, status: 400 })
    }
    const { user, refusal } = await provePassword(context, {
      organization_id: flow.organization.id,
      identifier: username,
      password,
      client_info: call,
    })
    if (!refusal)
      return proceedAs(context, browser, flow, { user, ...PASSWORD, confirm: tx => confirmProof(tx, user) })
    const { status, headers, ...error } = refusal
    return loginPage(context, browser, flow, undefined, { data: { username, error }, status, headers })
  }
