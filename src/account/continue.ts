import { advance, decide } from '#src/authorize/advance.ts'
import { isLogin } from '#src/authorize/eligible-logins.ts'
import { isProven } from '#src/authorize/flow.ts'
import { openStepPage } from '#src/authorize/step-pages.ts'
import { consumePending } from '#src/authorize/store.ts'
import type { Context } from '#src/context.ts'
import { type Call, withRequest } from '#src/http/call.ts'
import { PageError } from '#src/pages/error-page.ts'
import type { PageHandler } from '#src/pages/page-routes.ts'
import { sameOrganization } from '#src/pages/way-back.ts'
import { recordLogin } from '#src/sign-in/sign-in.ts'
import { accountToken, viewerOf } from './viewer.ts'

/**
 * Handles a stored form after the user has confirmed who they are. The form is handled only once. The user
 * and the browser must be those that posted the form. The form gets a new CSRF token, because the old token
 * was checked when the form was posted and is not stored.
 *
 * @param forms the handlers by path
 */
export const getContinue =
  (context: Context, forms: Readonly<Record<string, PageHandler>>) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow } = await openStepPage(context, call)
    const { confirm, back } = flow.request
    const next = await decide(context, browser, flow)
    const path = confirm?.intent?.path ?? ''
    const form = forms[path]
    if (!form || next.step !== 'issue' || !isLogin(next.login) || !browser.login_hash)
      return advance(context, browser, flow, 'post')
    const { login } = next
    const viewer = await viewerOf(context, browser.login_hash, login)
    await context.store.write(async tx => {
      if (!(await consumePending(tx, flow.pending.request_hash)))
        throw new PageError('expired', 400, { ...(back && { retry_url: back }) })
      if (isProven(flow)) await recordLogin(context, tx, login, call)
    })
    const fields = { ...confirm?.intent?.fields, csrf_token: accountToken(context, viewer) }
    // The handler gets a request for the form's own path instead of /account/continue. If another
    // confirmation is needed, the handler stores the path of its request.
    const page = sameOrganization(back ?? '', path)
    return form(withRequest(call, path, postOf(context, call, page, fields)), {})
  }

const postOf = (
  { config }: Context,
  { request }: Call,
  page: string,
  fields: Record<string, string>,
): Request => {
  const headers = new Headers(request.headers)
  headers.set('origin', config.url)
  headers.set('content-type', 'application/x-www-form-urlencoded')
  const body = new URLSearchParams(fields).toString()
  return new Request(new URL(page, config.url), { method: 'POST', headers, body })
}
