import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { PageError } from '#src/pages/error-page.ts'
import { formatScope } from '#src/protocol/oauth/scope.ts'
import { advance, isStale, refuseAuthorization, settle } from './advance.ts'
import { shownScopes } from './consent-scopes.ts'
import { withDocument } from './document.ts'
import { chooseLogin, openStep } from './flow.ts'
import type { FlowRequest } from './store.ts'

/**
 * Handles the user's decision. The server grants the stored request, not the posted fields. The posted fields
 * must agree with the stored request (O-65), so that a changed form grants nothing that the user did not see.
 */
export const postConsent =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow: opened, form, login_id, content } = await openStep(context, call, 'consent')
    const decision = form.get('decision')
    if (decision !== 'approve' && decision !== 'deny') throw new PageError('bad_request', 400)
    if (!agrees(form, opened.request)) throw new PageError('bad_request', 400)
    const { flow, next, logins } = await settle(context, browser, chooseLogin(opened, login_id))
    // A user whose login became too old while the page was open may still deny. To approve, the user signs
    // in again.
    const isDue = next.step === 'consent' && next.login.id === login_id
    // The page is out of date: the user has signed out since, or another step is due.
    if (!isDue && !isStale(next, login_id)) throw new PageError('expired', 400)
    // A denial is not stored: the user may decide otherwise at the next request.
    if (decision === 'deny') {
      const described = await withDocument(context, call, flow, next.login)
      return refuseAuthorization(context, call, described, 'access_denied')
    }
    const approved = isDue && content === shownScopes(flow, next.login.held)
    return advance(context, browser, { ...flow, approved }, 'post', logins)
  }

const agrees = (form: ReadonlyMap<string, string>, request: FlowRequest): boolean => {
  const { client_id, redirect_uri, code_challenge, scopes, state = '', nonce } = request
  const expected = { client_id, redirect_uri, code_challenge, scope: formatScope(scopes) }
  return (
    Object.entries(expected).every(([name, value]) => form.get(name) === value) &&
    asPosted(form.get('state') ?? '') === asPosted(state) &&
    (!form.has('nonce') || asPosted(form.get('nonce') ?? '') === asPosted(nonce ?? ''))
  )
}

/**
 * Normalizes a text for a comparison with a posted hidden field. In such a field browsers replace line
 * breaks with CRLF, and NUL with U+FFFD. `state` may contain line breaks and NUL (O-25).
 */
const asPosted = (text: string): string => text.replace(/\r\n?|\n/g, '\n').replaceAll('\0', '\ufffd')
