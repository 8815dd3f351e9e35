import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import type { StepUser } from './eligible-logins.ts'
import { type BrowserSession, type StoredFlow, stepToken } from './flow.ts'
import { exitOf, show } from './step-pages.ts'

/**
 * Asks the user to accept the terms of the organization. `isRefused` is true when the user has sent the form
 * without a tick in the box.
 */
export const termsPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: StepUser,
  isRefused = false,
): Promise<Response> => {
  const { terms } = settingsOf(flow.organization)
  if (!terms) throw new PageError('expired', 400)
  return show(
    context,
    'terms',
    browser,
    flow,
    {
      action: '/oauth/terms',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'terms', login.id),
      user: pageUserOf(login),
      terms,
      ...exitOf(context, flow, login.id),
    },
    isRefused ? { data: { error: { code: 'missing' } }, status: 400 } : undefined,
  )
}
