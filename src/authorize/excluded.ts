import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { PageError } from '#src/pages/error-page.ts'
import { advance, refuseAuthorization, settle } from './advance.ts'
import { chooseLogin, openStep } from './flow.ts'

/**
 * Tells the client that the user is not admitted. If an administrator has admitted the user since the page
 * was shown, the flow continues instead.
 */
export const postExcluded =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow: opened, login_id } = await openStep(context, call, 'excluded')
    const { flow, next } = await settle(context, browser, chooseLogin(opened, login_id))
    if (next.step !== 'excluded') return advance(context, browser, flow, 'post')
    if (next.login.id !== login_id) throw new PageError('expired', 400)
    return refuseAuthorization(context, call, flow, 'access_denied')
  }
