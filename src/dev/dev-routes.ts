import { seeOther, wantsPage } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { AppError, notFound } from '#src/lib/app-error.ts'
import { hashSecret, sameHash } from '#src/lib/secrets.ts'
import { withErrorPage } from '#src/pages/page-routes.ts'
import { controls, type DevState } from './controls.ts'
import { FAKE_OPENID, fakeOpenIdOf } from './fake-openid.ts'
import { FAKE_SAML, fakeSamlOf } from './fake-saml.ts'
import { guidePage, isGuide } from './guide.ts'
import { homeAccess } from './home/access.ts'
import { isHome, openHome } from './home/index.ts'
import { LOG } from './home/log.ts'
import { MAILBOX } from './home/mailbox.ts'
import { devPage } from './home/page.ts'
import { TOOLS } from './home/tools.ts'
import { CONTROL_HEADER, type hostCheckOf, isLoopbackAddress } from './host-check.ts'
import { PICK, pick } from './picker.ts'

/**
 * Answers a request below /dev/ or for the guide. `send` handles a request like a request from the network:
 * the request is recorded and can get a fault. If it gets none, `handle` answers it. Without `handle`, the
 * server answers it.
 */
export type DevRoutes = (call: Call, url: URL, send: Send) => Promise<Response> | Response
type Handle = (request: Request) => Promise<Response> | Response
type Send = (request: Request, handle?: Handle) => Promise<Response>

/** Opens the pages and controls of development mode. The first request to one of them imports this file. */
export const openDevRoutes = (
  state: DevState,
  check: ReturnType<typeof hostCheckOf>,
  options: { token: string; remote: boolean; exposed: boolean },
): DevRoutes => {
  const { context } = state
  const { token, remote, exposed } = options
  const picked = withErrorPage(context, pick(context))
  const upstream = fakeOpenIdOf(context.config.url)
  const samlUpstream = fakeSamlOf(context)
  const expected = hashSecret(token)
  const isToken = (given: string) => sameHash(hashSecret(given), expected)
  const guard = controlGuard(isToken, remote)
  const access = homeAccess(token, options)
  const home = openHome(state, access)
  /**
   * Passes a request to a fake provider. A fake provider accepts anyone, so the control token is required
   * when other machines can reach the server.
   */
  const provide = async (call: Call, url: URL, send: Send, provider: Handle): Promise<Response> => {
    const { headers, method } = call.request
    const isOwn = () => isToken(headers.get(CONTROL_HEADER) ?? '')
    if (!exposed || isOwn() || access.isOpen(call, url)) return send(call.request, provider)
    if (method === 'GET' && wantsPage(call.request)) return devPage(context, access.page)
    throw needsToken()
  }

  return (call, url, send) => {
    if (isGuide(url.pathname)) return guidePage(context, url.pathname)
    check.requireOwnOrigin(call.request, url)
    if (isHome(url.pathname))
      return home(call, url, (path, init) => send(new Request(context.config.url + path, init)))
    if (url.pathname === PICK && !exposed) return picked({ request: call.request, params: {} })
    if (url.pathname.startsWith(`${FAKE_OPENID}/`)) return provide(call, url, send, upstream)
    if (url.pathname.startsWith(`${FAKE_SAML}/`)) return provide(call, url, send, samlUpstream)
    const page = pages[call.path]
    if (page && call.request.method === 'GET' && wantsPage(call.request)) return seeOther(page)
    return control(state, call, guard)
  }
}

/**
 * Controls that answer browsers with a page and programs with JSON: the path of each control and its page.
 */
const pages: Record<string, string> = {
  '/dev/mail': MAILBOX,
  '/dev/requests': LOG,
  '/dev/tokens': LOG,
  '/dev/clock': TOOLS,
  '/dev/faults': TOOLS,
}

type Guard = (call: Call) => void

const needsToken = () =>
  new AppError('invalid_token', 'The controls need the token that this server printed when it started.')

/**
 * Admits callers that have the control token. If `remote` is not set, the caller must also be on this
 * machine. The IP address alone does not prove this, because requests through a tunnel or a container's
 * network also seem to come from this machine.
 *
 * @throws AppError 404 for a caller on another machine, so that the answer does not reveal the controls; 401
 *   without the token
 */
const controlGuard =
  (isToken: (given: string) => boolean, remote: boolean): Guard =>
  call => {
    if (!remote && !isLoopbackAddress(call.ip_address)) throw notFound('This path')
    const [, given = ''] = /^Bearer (\S+)$/i.exec(call.request.headers.get('authorization') ?? '') ?? []
    if (!isToken(given)) throw needsToken()
  }

const control = (state: DevState, call: Call, guard: Guard): Response | Promise<Response> => {
  guard(call)
  const found = controls[`${call.request.method} ${call.path}`]
  if (!found) throw notFound('The control')
  return found(state, call)
}
