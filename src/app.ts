import type { Server } from 'bun'
import type { Config } from './config.ts'
import type { Context, Core, LoginStep, SigningKeys } from './context.ts'
import { errorAnswer, refusalFor, wantsPage } from './http/answer.ts'
import { type Call, openCall } from './http/call.ts'
import type { AdminRoute } from './http/guard.ts'
import { type MethodTable, PATHS_WITH_EFFECTS, unmatchedError } from './http/method-table.ts'
import { logRequest } from './http/request-log.ts'
import { type OpenSection, openSections } from './http/sections.ts'
import { AppError } from './lib/app-error.ts'
import { DAY, SECOND } from './lib/duration.ts'
import { loadOnce } from './lib/load-once.ts'
import { observe, openProcessMetrics } from './operations/metrics.ts'
import { sections } from './sections.ts'
import { openKeys } from './tokens/keys.ts'

/** A server before it listens: its context, routes and request handler. */
export interface App {
  context: Context
  /**
   * Takes the path of a request. Returns the path that its route declares, such as
   * `/saml/:provider/metadata`. Returns undefined for an unknown path, and for a path whose routes are not
   * loaded yet.
   */
  routeOf(path: string): string | undefined
  /** Loads all routes. Returns their paths as declared, and the routes of the admin API. */
  all(): Promise<{ paths: string[]; routes: AdminRoute[] }>
  fetch(request: Request, server?: Pick<Server<unknown>, 'requestIP'>): Response | Promise<Response>
}

/** Options for tracing, development mode and several workers. */
export interface AppOptions {
  /** Wraps the signing keys, for tracing. */
  wrapKeys?: ((keys: SigningKeys) => SigningKeys) | undefined
  /** Development mode: returns the page to show instead of the login form. Undefined shows the login form. */
  loginPage?: ((context: Context, step: LoginStep) => Promise<Response | undefined>) | undefined
  /** Development mode: creates the RSA key at the first call that needs it, which shortens the start. */
  late_keys?: boolean
  /** Returns the content of `/metrics` for several workers together. Default: the metrics of this process. */
  metrics?: (() => Promise<string>) | undefined
}

/** Composes the application from the rooms of `src` (src/README.md). */
export const createApp = async (
  core: Core,
  {
    wrapKeys = keys => keys,
    loginPage,
    late_keys = false,
    metrics = async () => core.store.metrics.render(),
  }: AppOptions = {},
): Promise<App> => {
  const context: Context = {
    ...core,
    keys: wrapKeys(await openKeys(core, late_keys)),
    authenticate: late(async () => {
      const { authenticate } = await import('./admin/authenticate.ts')
      return request => authenticate(context, request)
    }),
    samlKey: late(async () => (await import('./federation/saml/key.ts')).openSamlKey(core)),
    upstreams: new Map(),
    allowsOrigin: late(async () => {
      const { originOf } = await import('./directory/clients/store.ts')
      return (client_id, origin) => originOf(core.store, client_id, origin)
    }),
    ...(loginPage && { loginPage: step => loginPage(context, step) }),
  }

  openProcessMetrics(core.store.metrics)
  const refuse = (methods: MethodTable, call: Call, cause?: unknown) =>
    unmatched(context, methods, call, cause)
  const { sectionOf, openAll } = openSections(sections(context, metrics), refuse)
  const isSecure = isReachedByTls(context.config)
  const dispatch = ({ isHead, call }: OpenedRequest) => {
    if (call.path.includes('%') && !isDecodable(call.path)) return refuse([], call)
    const hasEffects = PATHS_WITH_EFFECTS.test(call.path)
    if (hasEffects && isSubresource(call.request)) return refuse([], call)
    const section = sectionOf(call.path)
    const serve = ({ methods, fetch }: OpenSection) =>
      hasEffects && isHead ? refuse(methods, call) : fetch(call.request)
    return section.opened
      ? serve(section.opened)
      : section.open().then(serve, error => refuse([], call, error))
  }
  return {
    context,
    routeOf: path => sectionOf(path).opened?.methods.find(({ pattern }) => pattern.test(path))?.path,
    all: async () => {
      const paths = (await openAll()).flatMap(({ methods }) => methods.map(({ path }) => path))
      return { paths, routes: (await import('./admin/routes.ts')).adminRoutes(context) }
    },
    fetch: (request, server) => answer(context, dispatch, request, server, isSecure),
  }
}

/**
 * Returns a function that imports its code with `load` at the first call. After a failed import the next call
 * tries again.
 */
const late = <A extends unknown[], R>(load: () => Promise<(...args: A) => Promise<R>>) => {
  const loaded = loadOnce(load)
  return async (...args: A): Promise<R> => (await loaded())(...args)
}

/** True when the percent escapes of the path are valid UTF-8. Elysia's router throws for other escapes. */
const isDecodable = (path: string): boolean => {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

/**
 * True when a page loads the URL as a part of itself, such as an image, font or stylesheet. Paths with
 * effects refuse such a request. A tenant's CSS can make the browser load a URL when an attribute of the
 * page has a certain value. If this URL led to the tenant's identity provider, for example, the tenant would
 * learn the value.
 * https://www.w3.org/TR/fetch-metadata/#sec-fetch-dest-header
 */
const isSubresource = ({ headers }: Request): boolean =>
  !['document', 'iframe', 'frame', 'empty'].includes(headers.get('sec-fetch-dest') ?? 'document')

interface OpenedRequest {
  call: Call
  isHead: boolean
}

/** Opens the call, adds the headers of every answer, counts the answer, and writes its log line. */
const answer = (
  context: Context,
  dispatch: (opened: OpenedRequest) => Response | Promise<Response>,
  request: Request,
  server: Pick<Server<unknown>, 'requestIP'> | undefined,
  isSecure: boolean,
): Response | Promise<Response> => {
  const started = performance.now()
  const isHead = request.method === 'HEAD'
  const url = routableUrl(request.url)
  const normalized = isHead
    ? new Request(url, { headers: request.headers })
    : url === request.url
      ? request
      : new Request(url, request)
  const socket = server?.requestIP(request)?.address
  const call = openCall(context, normalized, socket)
  // The runtime sends no body in answer to HEAD, and cancels a stream. It takes `Content-Length` from the
  // body, so the response keeps it.
  const finish = (response: Response): Response => {
    response.headers.set('x-request-id', call.request_id)
    response.headers.set('x-content-type-options', 'nosniff')
    if (isSecure) response.headers.set('strict-transport-security', HSTS)
    const ms = Math.round((performance.now() - started) * 1000) / 1000
    observe(context.store.metrics, call.path, response.status, ms)
    logRequest(context.log, call, { method: request.method, status: response.status, ms })
    return response
  }
  // A synchronous answer is not awaited. An await would double the time that the answer with the key set
  // takes.
  const found = server && !socket ? errorAnswer(call, hungUp()) : dispatch({ call, isHead })
  return found instanceof Response ? finish(found) : found.then(finish)
}

/**
 * The refusal of a request whose connection was reset before its address was read. Without the address, the
 * events would not show where the request came from. The client cannot read the answer.
 */
const hungUp = () => new AppError('invalid_request', 'The connection was closed.')

/**
 * One year, so that a browser that seldom visits the server is protected too:
 * https://www.rfc-editor.org/rfc/rfc6797#section-6.1
 */
const HSTS = `max-age=${(365 * DAY) / SECOND}`

/**
 * True when browsers reach the server over TLS. Browsers ignore HSTS over plain http. Localhost is excluded,
 * because HSTS applies to all ports of a host, and other ports of localhost serve plain http.
 */
const isReachedByTls = ({ url, tls_cert }: Config): boolean =>
  (url.startsWith('https:') || tls_cert !== undefined) && !/^https?:\/\/localhost(?:[:/]|$)/.test(url)

/**
 * Returns the URL in a form that the router accepts. The host becomes `localhost` when the Host header makes
 * the URL invalid or too short. Elysia looks for the path from the twelfth character on, so it would miss the
 * path of `http://id/…`. The replacement has no other effect, because the server takes its own address from
 * the settings.
 */
const routableUrl = (url: string): string => {
  const path = url.indexOf('/', 8)
  if (path <= 10 || !URL.canParse(url)) return `http://localhost${url.replace(/^\w+:\/\/[^/]*/, '')}`
  return url
}

/**
 * Answers a request that no route handled: 405 with `Allow` when the path exists under other methods,
 * otherwise 404. An error that no route caught (`cause`) is answered with its own status.
 */
const unmatched = (
  context: Context,
  methods: MethodTable,
  call: Call,
  cause?: unknown,
): Response | Promise<Response> => {
  const error = cause === undefined ? unmatchedError(methods, call) : cause
  return wantsPage(call.request)
    ? import('./pages/error-page.ts').then(({ errorPage }) => errorPage(context, call, error))
    : errorAnswer(call, refusalFor(context, call, error, 'unhandled'))
}
