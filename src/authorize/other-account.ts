import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { resume } from './advance.ts'
import { listBrowserLogins } from './eligible-logins.ts'
import { openStep } from './flow.ts'
import { chooseAgain } from './store.ts'

/**
 * Leaves a step when the user wants to use another account. Continues at the account chooser. If this browser
 * has no other login, or the request names its user, continues at the login page. Drops the proofs of this
 * flow, because they belong to the user who leaves.
 */
export const postOtherAccount =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow, login_id } = await openStep(context, call, 'other_account')
    const { organization, pending, request } = flow
    await chargeBrowser(context, call, { organization_id: organization.id, kind: 'commit' })
    const logins = await listBrowserLogins(context, browser, {
      ...flow,
      pending: { ...pending, proof: null },
    })
    const hasOther = logins.some(({ id, enabled }) => enabled && id !== login_id)
    const choose = hasOther && request.hinted_user_id === undefined
    await context.store.write(tx => chooseAgain(tx, pending, choose))
    return resume(context, browser, flow)
  }
