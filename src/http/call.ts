import type { Server } from 'bun'
import type { Core } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { clientAddress } from './client-address.ts'
import { deviceHash, findCookie } from './cookies.ts'
import { chooseLocale } from './locale.ts'

type RequestIP = Pick<Server<unknown>, 'requestIP'>

/** A request with its id and client. Address and user agent are computed only when something records them. */
export interface Call extends ClientInfo {
  readonly request: Request
  readonly request_id: string
  /** Path without the query, not decoded. */
  readonly path: string
  /** `ui_locales` of the authorization request that this call continues; empty until it is loaded. */
  ui_locales: readonly string[]
  /** Name of the client of that authorization request. */
  application?: string | undefined
  /** True for a browser with an authenticator of its device, as page.js found. */
  readonly has_passkeys: boolean
  /** Language of the answer, and of mail that the call causes. */
  readonly locale: string
}

/** The form of an IANA time zone, which page.js puts into a cookie. */
const ZONE = /^[A-Za-z0-9_+/-]{1,64}$/

const calls = new WeakMap<Request, Call>()

/** Maximum characters of a user agent, which events, sessions and logins store; browsers send about 120. */
const MAX_USER_AGENT = 512

/** Opens the call of a request. `callOf` returns it for the same request object. */
export const openCall = (core: Core, request: Request, server: RequestIP | undefined): Call => {
  let ip_address: string | undefined
  const call: Call = {
    request,
    ui_locales: [],
    request_id: Bun.randomUUIDv7(),
    path: pathOf(request.url),
    get ip_address() {
      ip_address ??= clientAddress(
        server?.requestIP(request)?.address ?? '',
        request.headers.get('x-forwarded-for'),
        core.proxies,
      )
      return ip_address
    },
    get user_agent() {
      return (request.headers.get('user-agent') ?? '').slice(0, MAX_USER_AGENT)
    },
    get time_zone() {
      return findCookie(request, 'time_zone')?.match(ZONE)?.[0]
    },
    get has_passkeys() {
      return findCookie(request, 'passkeys') === '1'
    },
    get device_hash() {
      return deviceHash(core, request)
    },
    // The user's own choice wins over the `ui_locales` of a client.
    get locale() {
      const chosen = findCookie(request, core.cookies.language) ?? ''
      return chooseLocale([chosen, ...call.ui_locales], request.headers.get('accept-language'))
    },
  }
  calls.set(request, call)
  return call
}

/** Returns the call of a request that came through `openCall`; throws for any other. */
export const callOf = (request: Request): Call => {
  const call = calls.get(request)
  if (!call) throw new Error('a request that did not come through openCall')
  return call
}

const pathOf = (url: string): string => {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}
