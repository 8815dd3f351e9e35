import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { acceptTerms } from '#src/directory/users/terms.ts'
import type { Call } from '#src/http/call.ts'
import { PageError } from '#src/pages/error-page.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { advance, decide, isStale, resume } from './advance.ts'
import { chooseLogin, openStep } from './flow.ts'
import { termsPage } from './terms-page.ts'

/**
 * Stores that the user accepts the terms of the organization. The accepted version is the one that the page
 * showed, because the user has read no other version.
 */
export const postTerms =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow: opened, form, login_id } = await openStep(context, call, 'terms')
    const flow = chooseLogin(opened, login_id)
    const next = await decide(context, browser, flow)
    if (isStale(next, login_id)) return advance(context, browser, opened, 'post')
    if (next.step !== 'terms' || next.login.id !== login_id) throw new PageError('expired', 400)
    const { terms } = settingsOf(flow.organization)
    // The terms have changed since the page was shown: the next page has the new version.
    if (!terms || form.get('version') !== terms.version) return resume(context, browser, flow)
    if (!form.has('accept')) return termsPage(context, browser, flow, next.login, true)
    const { user_id: id, email, organization_id } = next.login
    await chargeBrowser(context, call, { organization_id, kind: 'commit' })
    await context.store.write(tx =>
      acceptTerms(context, tx, { id, email, organization_id }, terms.version, call),
    )
    return advance(context, browser, flow, 'post')
  }
