import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { acceptTerms } from '#src/directory/users/terms.ts'
import type { Call } from '#src/http/call.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { advance, openDueStep, resume } from './advance.ts'
import { termsPage } from './terms-page.ts'

/**
 * Stores that the user accepts the terms of the organization. The accepted version is the one that the page
 * showed, because the user has read no other version.
 */
export const postTerms =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openDueStep(context, call, 'terms')
    if (opened instanceof Response) return opened
    const { browser, flow, form, login } = opened
    const { terms } = settingsOf(flow.organization)
    // The terms have changed since the page was shown: the next page has the new version.
    if (!terms || form.get('version') !== terms.version) return resume(context, browser, flow)
    if (!form.has('accept')) return termsPage(context, browser, flow, login, true)
    const { user_id: id, email, organization_id } = login
    await chargeBrowser(context, call, { organization_id, kind: 'commit' })
    await context.store.write(tx =>
      acceptTerms(context, tx, { id, email, organization_id }, terms.version, call),
    )
    return advance(context, browser, flow, 'post')
  }
