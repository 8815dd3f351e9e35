import type { Context } from '#src/context.ts'
import { setPasskeyDeclined } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { PageError } from '#src/pages/error-page.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { advance, decide, resume } from './advance.ts'
import { chooseLogin, openStep } from './flow.ts'

/** Declines the offer of a passkey for a while. */
export const postOfferPasskey =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow: opened, login_id } = await openStep(context, call, 'enrol')
    const flow = chooseLogin(opened, login_id)
    const next = await decide(context, browser, flow)
    if (next.step !== 'offer_passkey') return advance(context, browser, opened, 'post')
    const { user_id, organization_id } = next.login
    if (next.login.id !== login_id) throw new PageError('expired', 400)
    await chargeBrowser(context, call, { organization_id, kind: 'commit' })
    await context.store.write(tx => setPasskeyDeclined(tx, user_id, context.clock.now()))
    return resume(context, browser, flow)
  }
