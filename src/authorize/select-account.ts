import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { clearCookie, withCookies } from '#src/http/cookies.ts'
import { PageError } from '#src/pages/error-page.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { beginLogOut, logOut } from '#src/sessions/service.ts'
import type { Queries } from '#src/storage/store.ts'
import { advance, resume } from './advance.ts'
import { decideAmong } from './due-step.ts'
import { isLogin, listBrowserLogins } from './eligible-logins.ts'
import { type BrowserSession, openStep, type StoredFlow } from './flow.ts'
import { chooseAgain, updatePending } from './store.ts'

/**
 * Handles the account chooser. `login` is an offered login or `other`. `forget` names a login to end. A
 * second choice replaces the first choice, because the user may go back to this page.
 */
export const postSelectAccount =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow: opened, form } = await openStep(context, call, 'select_account')
    const forgotten = form.get('forget')
    if (forgotten !== undefined) return forget(context, browser, opened, forgotten)
    // The owner may have replaced the recovery codes since a recovery began, so a choice ends the recovery.
    const nothing = { login_id: null, selected: false, proof: null, recovered_by: null }
    const flow = { ...opened, pending: { ...opened.pending, ...nothing } }
    const logins = await listBrowserLogins(context, browser, flow)
    const next = decideAmong(context, flow, logins)
    if (next.step !== 'select_account') throw new PageError('expired', 400)
    const picked = form.get('login')
    const login = next.logins.filter(isLogin).find(({ id }) => id === picked)
    if (!login && picked !== 'other') throw new PageError('bad_request', 400)
    const chosen = { ...nothing, login_id: login?.id ?? null, selected: true }
    await context.store.write(async tx => {
      if (!(await updatePending(tx, flow.pending.request_hash, chosen))) throw new PageError('expired', 400)
    })
    return advance(context, browser, { ...flow, pending: { ...flow.pending, ...chosen } }, 'post', logins)
  }

/**
 * Signs a user out of this browser and shows the chooser again, or the login page if no login is left.
 * Ignores a login that has ended, or that belongs to another browser or organization.
 */
const forget = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login_id: string,
): Promise<Response> => {
  const { call, login_hash } = browser
  const heldIn = async (q: Queries) => {
    const held = login_hash ? await listLogins(context, q, login_hash) : []
    const ended = held.filter(
      ({ id, organization_id }) => id === login_id && organization_id === flow.organization.id,
    )
    return { held, ended }
  }
  await beginLogOut(context, (await context.store.read(heldIn)).ended, call)
  const isLast = await context.store.write(async tx => {
    const { held, ended } = await heldIn(tx)
    if (ended.length === 0) return false
    await logOut(context, tx, ended, call)
    await chooseAgain(tx, flow.pending, true)
    return held.length === 1
  })
  const { config, cookies } = context
  return withCookies(await resume(context, browser, flow), isLast ? [clearCookie(config, cookies.login)] : [])
}
