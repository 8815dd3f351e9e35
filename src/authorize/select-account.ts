import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { PageError } from '#src/pages/boundary.ts'
import { advance, decideAmong } from './advance.ts'
import { isLogin, listBrowserLogins } from './eligible-logins.ts'
import { openStep } from './flow.ts'
import { updatePending } from './store.ts'

/**
 * Handles the account picker: `login` is an offered login or `other`. Going back to the picker replaces the
 * choice.
 */
export const postSelectAccount =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow: opened, form } = await openStep(context, call, 'select_account')
    const flow = { ...opened, pending: { ...opened.pending, login_id: null, selected: false, proof: null } }
    const logins = await listBrowserLogins(context, browser, flow)
    const next = decideAmong(context, flow, logins)
    if (next.step !== 'select_account') throw new PageError('expired', 400)
    const picked = form.get('login')
    const login = next.logins.filter(isLogin).find(({ id }) => id === picked)
    if (!login && picked !== 'other') throw new PageError('bad_request', 400)
    const chosen = { login_id: login?.id ?? null, selected: true, proof: null }
    await context.store.write(async tx => {
      if (!(await updatePending(tx, flow.pending.request_hash, chosen))) throw new PageError('expired', 400)
    })
    return advance(context, browser, { ...flow, pending: { ...flow.pending, ...chosen } }, 'post', logins)
  }
