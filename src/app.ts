import type { Server } from 'bun'
import { Elysia } from 'elysia'
import { browserRoutes } from '#src/authorize/routes.ts'
import { tokenRoutes } from '#src/oauth/routes.ts'
import { accentAsset } from '#src/pages/accent.ts'
import { asset } from '#src/pages/assets.ts'
import { errorPage, wantsPage } from '#src/pages/boundary.ts'
import { themeAsset } from '#src/pages/themes.ts'
import { accountRoutes } from './account/routes.ts'
import { authenticate } from './admin/authenticate.ts'
import { openApiDocument } from './admin/openapi.ts'
import { ADMIN_PREFIX, adminRoutes } from './admin/routes.ts'
import type { Config } from './config.ts'
import type { Context, Core, Keys, LoginStep } from './context.ts'
import { originOf } from './directory/clients/store.ts'
import { organizationAsset } from './directory/organizations/assets.ts'
import { federationRoutes } from './federation/routes.ts'
import { asAppError, errorAnswer, json } from './http/answer.ts'
import { type Call, callOf, openCall } from './http/call.ts'
import { type AdminRoute, serve } from './http/guard.ts'
import { logRequest } from './http/request-log.ts'
import { mount } from './http/routes.ts'
import { AppError } from './lib/app-error.ts'
import { DAY, SECOND } from './lib/duration.ts'
import { VERSION } from './lib/version.ts'
import { metricsPage, observe, openProcessMetrics } from './operations/metrics.ts'
import { openKeys } from './tokens/keys.ts'

export interface App {
  context: Context
  /** Every admin route there is: the tests of permissions and tenancy walk it. */
  routes: AdminRoute[]
  /** Every path, as it is written in its route. */
  paths: string[]
  /** The path of a route as it is written, such as `/oauth/token` or `/api/v1/admin/users/:id`. */
  routeOf(path: string): string | undefined
  fetch(request: Request, server?: Pick<Server<unknown>, 'requestIP'>): Response | Promise<Response>
}

export interface AppOptions {
  /** What tracing lays around the keys. */
  wrapKeys?: ((keys: Keys) => Keys) | undefined
  /** What development mode shows in the place of the login form, if anything. */
  loginPage?: ((context: Context, step: LoginStep) => Promise<Response | undefined>) | undefined
}

/** The one place where all parts meet. */
export const createApp = async (
  core: Core,
  { wrapKeys = keys => keys, loginPage }: AppOptions = {},
): Promise<App> => {
  const context: Context = {
    ...core,
    keys: wrapKeys(await openKeys(core)),
    authenticate: request => authenticate(context, request),
    allowsOrigin: (client_id, origin) => originOf(core.store, client_id, origin),
    ...(loginPage && { loginPage: step => loginPage(context, step) }),
  }

  openProcessMetrics(core.store.metrics)
  const routes = adminRoutes(context)
  let methods: MethodTable = []
  const refuse = (call: Call, cause?: unknown) => unmatched(context, methods, call, cause)
  // First: a handler of errors holds for the routes that come after it.
  const elysia = new Elysia({ strictPath: true })
    .onError(({ code, error, request }) => refuse(callOf(request), code === 'NOT_FOUND' ? undefined : error))
    .use(operationalRoutes(context, routes))
    .use(tokenRoutes(context))
    .use(browserRoutes(context))
    .use(federationRoutes(context))
    .use(accountRoutes(context))
    .use(
      mount(
        Object.fromEntries(
          routes.map(route => [`${route.method} ${ADMIN_PREFIX}${route.path}`, serve(context, route)]),
        ),
      ),
    )

  methods = methodTable(elysia.routes)
  elysia.compile()
  const dispatch = ({ isHead, call }: Asked) => {
    if (call.path.includes('%') && !isDecodable(call.path)) return unmatched(context, [], call)
    if (!isWalked.test(call.path)) return elysia.fetch(call.request)
    if (isPart(call.request)) return unmatched(context, [], call)
    return isHead ? refuse(call) : elysia.fetch(call.request)
  }
  return {
    context,
    routes,
    paths: methods.map(({ path }) => path),
    routeOf: path => methods.find(({ pattern }) => pattern.test(path))?.path,
    fetch: (request, server) => answer(context, dispatch, request, server),
  }
}

/** Routing decodes the parameters of a path, and fails on an escape that is broken or not UTF-8. */
const isDecodable = (path: string): boolean => {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

/** Where a GET may use something up or issue a code: a HEAD must have no effect. */
const isWalked = /^\/(?:oauth|saml|account)\b/

/**
 * Whether a page asks for it as a picture, font or stylesheet: nothing there is one. A tenant's CSS may load from our own
 * origin alone; what it picks by the attributes of a page must not even there have an effect that the tenant sees, such as
 * our asking their provider. https://www.w3.org/TR/fetch-metadata/#sec-fetch-dest-header
 */
const isPart = ({ headers }: Request): boolean =>
  !['document', 'iframe', 'frame', 'empty'].includes(headers.get('sec-fetch-dest') ?? 'document')

interface Asked {
  call: Call
  isHead: boolean
}

/** Opens the call, gives every answer its request id, and logs one line. */
const answer = (
  context: Context,
  dispatch: (asked: Asked) => Response | Promise<Response>,
  request: Request,
  server: Pick<Server<unknown>, 'requestIP'> | undefined,
): Response | Promise<Response> => {
  const started = performance.now()
  const isHead = request.method === 'HEAD'
  const url = addressed(request.url)
  const asked = isHead
    ? new Request(url, { headers: request.headers })
    : url === request.url
      ? request
      : new Request(url, request)
  const call = openCall(context.config, asked, server && { requestIP: () => server.requestIP(request) })
  const finish = (found: Response): Response => {
    const response = isHead ? new Response(null, found) : found
    response.headers.set('x-request-id', call.request_id)
    response.headers.set('x-content-type-options', 'nosniff')
    if (isReachedByTls(context.config)) response.headers.set('strict-transport-security', HSTS)
    const ms = Math.round((performance.now() - started) * 1000) / 1000
    observe(context.store.metrics, call.path, response.status, ms)
    logRequest(context.log, call, { method: request.method, status: response.status, ms })
    return response
  }
  // What is answered at once is not awaited: the key set costs little more than the wait.
  const found = dispatch({ call, isHead })
  return found instanceof Response ? finish(found) : found.then(finish)
}

/** One year: https://www.rfc-editor.org/rfc/rfc6797#section-6.1 */
const HSTS = `max-age=${(365 * DAY) / SECOND}`

/** Not for localhost: the policy holds for all ports of a host, and other servers of a developer's machine speak http. */
const isReachedByTls = ({ url, tls_cert }: Config): boolean =>
  (url.startsWith('https:') || tls_cert !== undefined) && !/^https?:\/\/localhost(?:[:/]|$)/.test(url)

/**
 * The server's address comes from the settings alone. The URL that a Host header makes has to be valid and long enough for
 * Elysia, which looks for the path from the twelfth character on: it finds the path of `http://id/…` nowhere, or in the query.
 */
const addressed = (url: string): string => {
  const path = url.indexOf('/', 8)
  if (path <= 10 || !URL.canParse(url)) return `http://localhost${url.replace(/^\w+:\/\/[^/]*/, '')}`
  return url
}

const operationalRoutes = (context: Context, routes: AdminRoute[]) => {
  let document: string | undefined
  return mount({
    'GET /': () =>
      new Response(null, { status: 303, headers: { location: `${context.config.url}/account` } }),
    'GET /healthz': () => json({ status: 'ok' }),
    'GET /readyz': async () =>
      (await context.store.ready())
        ? json({ status: 'ready' })
        : json({ status: 'unavailable' }, 503, { 'retry-after': '1' }),
    'GET /metrics': ({ request }) => metricsPage(context, request) ?? unmatched(context, [], callOf(request)),
    'GET /api/v1/openapi.json': () => {
      document ??= JSON.stringify(openApiDocument(routes, context.config.url, VERSION))
      return new Response(document, { headers: { 'content-type': 'application/json; charset=utf-8' } })
    },
    'GET /assets/*': async ({ request }) => {
      const call = callOf(request)
      return (
        asset(call.path) ??
        accentAsset(call.path) ??
        themeAsset(context, call.path) ??
        (await organizationAsset(context, call.path)) ??
        unmatched(context, [], call)
      )
    },
  })
}

/** Paths with what they take; those that are fixed come first. */
type MethodTable = { path: string; pattern: RegExp; methods: Set<string> }[]

const methodTable = (routes: { method: string; path: string }[]): MethodTable => {
  const table = Map.groupBy(routes, ({ path }) => path)
  const pattern = (path: string) =>
    new RegExp(
      `^${path
        .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
        .replace(/:\w+/g, '[^/]+')
        .replace(/\*/g, '.*')}$`,
    )
  return [...table]
    .sort(([a], [b]) => Number(/[:*]/.test(a)) - Number(/[:*]/.test(b)))
    .map(([path, found]) => ({
      path,
      pattern: pattern(path),
      methods: new Set(found.map(({ method }) => method)),
    }))
}

/** What no route took: 405 with Allow when the path exists under other methods, 404 else; and what escaped a boundary. */
const unmatched = (context: Context, methods: MethodTable, call: Call, cause?: unknown): Response => {
  const refusal = cause === undefined ? notHere(methods, call) : asAppError(cause)
  if (refusal.status >= 500)
    context.log.error({ request_id: call.request_id, err: refusal.cause ?? refusal }, 'unhandled')
  return wantsPage(call.request) ? errorPage(context, call, refusal) : errorAnswer(call, refusal)
}

const notHere = (methods: MethodTable, call: Call): AppError => {
  for (const { pattern, methods: allowed } of methods)
    if (pattern.test(call.path)) {
      const allow = [...allowed].join(', ')
      return new AppError('method_not_allowed', `This path takes ${allow}.`, { headers: { allow } })
    }
  return new AppError('not_found', 'There is nothing at this path.')
}
