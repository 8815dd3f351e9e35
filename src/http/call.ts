import type { Core } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { clientAddress } from './client-address.ts'
import { deviceHash, findCookie } from './cookies.ts'
import { chooseLocale } from './locale.ts'

/**
 * A request with its id and its client. Address, user agent and language are read only when they are needed.
 */
export interface Call extends ClientInfo {
  readonly request: Request
  readonly request_id: string
  /** Path without the query, not decoded. */
  readonly path: string
  /**
   * `ui_locales` of the authorization request that this call continues; empty until that request is loaded.
   */
  ui_locales: readonly string[]
  /** Name of the client of the authorization request that this call continues. */
  application?: string | undefined
  /**
   * Path and query of the page whose form this call posts; undefined until the form is opened. The Referer
   * does not always name this page, because after a refused post the URL in the browser lacks the query.
   */
  page?: string | undefined
  /** True when page.js has found that the browser's device has a built-in authenticator. */
  readonly has_passkeys: boolean
  /** Language of the answer, and of mail that the call causes. */
  readonly locale: string
}

/**
 * Format of the IANA time zone. page.js puts the time zone into a cookie, because no request header contains
 * it.
 */
const ZONE = /^[A-Za-z0-9_+/-]{1,64}$/

/**
 * Name of the property by which a request refers to its call. A WeakMap would be slower, and would add work
 * to each garbage collection.
 */
const CALL = Symbol('call')

interface OpenedRequest extends Request {
  [CALL]?: Call
}

/**
 * Maximum characters of a user agent, because events, sessions and logins store it. Browsers send about 120.
 */
const MAX_USER_AGENT = 512

const NO_LOCALES: readonly string[] = []

/** A class, because creating an object literal with this many getters takes ten times as long. */
class OpenedCall implements Call {
  readonly request: Request
  /** Never taken from a header, because a client could repeat the id of another request. */
  readonly request_id = Bun.randomUUIDv7()
  readonly path: string
  ui_locales = NO_LOCALES
  application: string | undefined
  page: string | undefined
  readonly #core: Core
  readonly #socket: string
  #ip_address: string | undefined

  constructor(core: Core, request: Request, socket: string) {
    this.request = request
    this.path = pathOf(request.url)
    this.#core = core
    this.#socket = socket
  }

  get ip_address() {
    this.#ip_address ??= clientAddress(
      this.#socket,
      this.request.headers.get('x-forwarded-for'),
      this.#core.proxies,
    )
    return this.#ip_address
  }

  get user_agent() {
    return (this.request.headers.get('user-agent') ?? '').slice(0, MAX_USER_AGENT)
  }

  get time_zone() {
    return findCookie(this.request, 'time_zone')?.match(ZONE)?.[0]
  }

  get has_passkeys() {
    return findCookie(this.request, 'passkeys') === '1'
  }

  get device_hash() {
    return deviceHash(this.#core, this.request)
  }

  // The language that the user has chosen comes before the `ui_locales` of a client, because a client can
  // only guess the language.
  get locale() {
    const chosen = findCookie(this.request, this.#core.cookies.language) ?? ''
    return chooseLocale([chosen, ...this.ui_locales], this.request.headers.get('accept-language'))
  }
}

/**
 * Opens the call of a request. `callOf` returns this call for the same request object. `socket` is the
 * address of the connection. It is read before the call is opened, because a closed connection has none.
 */
export const openCall = (core: Core, request: Request, socket = ''): Call => {
  const call = new OpenedCall(core, request, socket)
  ;(request as OpenedRequest)[CALL] = call
  return call
}

/**
 * Returns a copy of the call with this path and request, for a form that is processed after a confirmation.
 * The copy has no `page`.
 */
export const withRequest = (call: Call, path: string, request: Request): Call => ({
  request,
  path,
  request_id: call.request_id,
  ui_locales: call.ui_locales,
  application: call.application,
  ip_address: call.ip_address,
  user_agent: call.user_agent,
  time_zone: call.time_zone,
  has_passkeys: call.has_passkeys,
  device_hash: call.device_hash,
  locale: call.locale,
})

/**
 * Returns the call that `openCall` opened for this request. Throws when no call was opened for the request.
 */
export const callOf = (request: Request): Call => {
  const call = (request as OpenedRequest)[CALL]
  if (!call) throw new Error('The request has no call: openCall did not see it.')
  return call
}

const pathOf = (url: string): string => {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}
