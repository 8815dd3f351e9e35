import type { Server } from 'bun'
import { Elysia } from 'elysia'
import { browserRoutes } from '#src/authorize/routes.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import { tokenRoutes } from '#src/oauth/routes.ts'
import { accentAsset } from '#src/pages/accent.ts'
import { asset, touchIcon } from '#src/pages/assets.ts'
import { errorPage, wantsPage } from '#src/pages/boundary.ts'
import { accountRoutes } from './account/routes.ts'
import { authenticate } from './admin/authenticate.ts'
import { openApiDocument } from './admin/openapi.ts'
import type { ReferencePage } from './admin/reference.ts'
import { ADMIN_PREFIX, adminRoutes } from './admin/routes.ts'
import type { Config } from './config.ts'
import { consoleRoutes } from './console/routes.ts'
import type { Context, Core, LoginStep, SigningKeys } from './context.ts'
import { originOf } from './directory/clients/store.ts'
import { organizationAsset } from './directory/organizations/assets.ts'
import { userPicture } from './directory/users/picture.ts'
import { federationRoutes } from './federation/routes.ts'
import { openSamlKey } from './federation/saml/key.ts'
import { asAppError, errorAnswer, json } from './http/answer.ts'
import { type Call, callOf, openCall } from './http/call.ts'
import { type AdminRoute, serveRoute } from './http/guard.ts'
import { type MethodTable, methodTable, unmatchedError } from './http/method-table.ts'
import { taggedObject } from './http/preconditions.ts'
import { logRequest } from './http/request-log.ts'
import { mount } from './http/routes.ts'
import { DAY, SECOND } from './lib/duration.ts'
import { VERSION } from './lib/version.ts'
import { metricsPage, observe, openProcessMetrics } from './operations/metrics.ts'
import { openKeys } from './tokens/keys.ts'

/** A server before it listens: its context, routes and request handler. */
export interface App {
  context: Context
  /** All admin routes, which the tests of permissions and tenancy iterate over. */
  routes: AdminRoute[]
  /** All paths as declared, such as `/api/v1/admin/users/:id`. */
  paths: string[]
  /** Returns the declared path of a route, such as `/oauth/token` or `/api/v1/admin/users/:id`. */
  routeOf(path: string): string | undefined
  fetch(request: Request, server?: Pick<Server<unknown>, 'requestIP'>): Response | Promise<Response>
}

/** Hooks of tracing and of development mode. */
export interface AppOptions {
  /** Wraps the signing keys, for tracing. */
  wrapKeys?: ((keys: SigningKeys) => SigningKeys) | undefined
  /** Development mode: returns the page to show instead of the login form, or undefined for the form. */
  loginPage?: ((context: Context, step: LoginStep) => Promise<Response | undefined>) | undefined
  /** Returns the content of `/metrics`, if it is more than this server's own. */
  metrics?: (() => Promise<string>) | undefined
}

/** Composes the application from its rooms. */
export const createApp = async (
  core: Core,
  { wrapKeys = keys => keys, loginPage, metrics = async () => core.store.metrics.render() }: AppOptions = {},
): Promise<App> => {
  const context: Context = {
    ...core,
    keys: wrapKeys(await openKeys(core)),
    authenticate: request => authenticate(context, request),
    samlKey: openSamlKey(core),
    upstreams: new Map(),
    allowsOrigin: (client_id, origin) => originOf(core.store, client_id, origin),
    ...(loginPage && { loginPage: step => loginPage(context, step) }),
  }

  openProcessMetrics(core.store.metrics)
  const routes = adminRoutes(context)
  let methods: MethodTable = []
  const refuse = (call: Call, cause?: unknown) => unmatched(context, methods, call, cause)
  // The error handler comes first: Elysia applies it only to routes added after it.
  const elysia = new Elysia({ strictPath: true })
    .onError(({ code, error, request }) => refuse(callOf(request), code === 'NOT_FOUND' ? undefined : error))
    .use(operationalRoutes(context, routes, metrics))
    .use(tokenRoutes(context))
    .use(browserRoutes(context))
    .use(federationRoutes(context))
    .use(accountRoutes(context))
    .use(consoleRoutes(context))
    .use(
      mount(
        Object.fromEntries(
          routes.map(route => [
            `${route.method} ${ADMIN_PREFIX}${route.path}`,
            serveRoute(context, route, taggedObject(routes, route)),
          ]),
        ),
      ),
    )

  methods = methodTable(elysia.routes)
  elysia.compile()
  const dispatch = ({ isHead, call }: OpenedRequest) => {
    if (call.path.includes('%') && !isDecodable(call.path)) return unmatched(context, [], call)
    if (!PATHS_WITH_EFFECTS.test(call.path)) return elysia.fetch(call.request)
    if (isSubresource(call.request)) return unmatched(context, [], call)
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

/** True unless a percent escape of the path is broken or not UTF-8; Elysia's router throws on those. */
const isDecodable = (path: string): boolean => {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

/** Paths whose GET may use up a value or issue a code. A HEAD request must not have that effect. */
const PATHS_WITH_EFFECTS = /^\/(?:oauth|saml|account)\b/

/**
 * True when a page loads the URL as an image, font or stylesheet, which no route here is. A tenant's CSS may
 * load from this origin; without this check its attribute selectors could trigger effects that the tenant
 * observes, such as a request to its identity provider.
 * https://www.w3.org/TR/fetch-metadata/#sec-fetch-dest-header
 */
const isSubresource = ({ headers }: Request): boolean =>
  !['document', 'iframe', 'frame', 'empty'].includes(headers.get('sec-fetch-dest') ?? 'document')

interface OpenedRequest {
  call: Call
  isHead: boolean
}

/** Opens the call, adds the request id to the answer and logs one line. */
const answer = (
  context: Context,
  dispatch: (opened: OpenedRequest) => Response | Promise<Response>,
  request: Request,
  server: Pick<Server<unknown>, 'requestIP'> | undefined,
): Response | Promise<Response> => {
  const started = performance.now()
  const isHead = request.method === 'HEAD'
  const url = routableUrl(request.url)
  const normalized = isHead
    ? new Request(url, { headers: request.headers })
    : url === request.url
      ? request
      : new Request(url, request)
  const call = openCall(context, normalized, server && { requestIP: () => server.requestIP(request) })
  const finish = (found: Response): Response => {
    if (isHead) void found.body?.cancel()
    const response = isHead ? new Response(null, found) : found
    response.headers.set('x-request-id', call.request_id)
    response.headers.set('x-content-type-options', 'nosniff')
    if (isReachedByTls(context.config)) response.headers.set('strict-transport-security', HSTS)
    const ms = Math.round((performance.now() - started) * 1000) / 1000
    observe(context.store.metrics, call.path, response.status, ms)
    logRequest(context.log, call, { method: request.method, status: response.status, ms })
    return response
  }
  // A synchronous answer is not awaited, because an await costs about as much as the key set itself.
  const found = dispatch({ call, isHead })
  return found instanceof Response ? finish(found) : found.then(finish)
}

/** One year: https://www.rfc-editor.org/rfc/rfc6797#section-6.1 */
const HSTS = `max-age=${(365 * DAY) / SECOND}`

/**
 * True when browsers use TLS. Localhost is exempt: HSTS would apply to all its ports, also those of plain
 * http.
 */
const isReachedByTls = ({ url, tls_cert }: Config): boolean =>
  (url.startsWith('https:') || tls_cert !== undefined) && !/^https?:\/\/localhost(?:[:/]|$)/.test(url)

/**
 * Returns the URL, with the host `localhost` when the Host header makes it invalid or shorter than Elysia
 * expects. Elysia looks for the path from the twelfth character on, which misses that of `http://id/…`. The
 * server's own address always comes from the settings.
 */
const routableUrl = (url: string): string => {
  const path = url.indexOf('/', 8)
  if (path <= 10 || !URL.canParse(url)) return `http://localhost${url.replace(/^\w+:\/\/[^/]*/, '')}`
  return url
}

const operationalRoutes = (context: Context, routes: AdminRoute[], metrics: () => Promise<string>) => {
  let document: string | undefined
  const describeApi = () =>
    (document ??= JSON.stringify(openApiDocument(routes, context.config.url, VERSION)))
  let reference: Promise<ReferencePage> | undefined
  return mount({
    'GET /': () =>
      new Response(null, { status: 303, headers: { location: `${context.config.url}/account` } }),
    // https://www.w3.org/TR/change-password-url/
    'GET /.well-known/change-password': () =>
      new Response(null, {
        status: 302,
        headers: { location: `${context.config.url}/account/change-password` },
      }),
    // https://www.w3.org/TR/passkey-endpoints/
    'GET /.well-known/passkey-endpoints': ({ request }) =>
      offersPasskeys(context.config)
        ? json({
            enroll: `${context.config.url}/account/security/add`,
            manage: `${context.config.url}/account/security`,
          })
        : unmatched(context, [], callOf(request)),
    'GET /favicon.ico': touchIcon,
    'GET /apple-touch-icon.png': touchIcon,
    'GET /robots.txt': () =>
      new Response('User-agent: *\nDisallow: /\n', {
        headers: { 'content-type': 'text/plain; charset=utf-8' },
      }),
    'GET /healthz': () => json({ status: 'ok' }),
    'GET /readyz': async () =>
      (await context.store.ready())
        ? json({ status: 'ready' })
        : json({ status: 'unavailable' }, 503, { 'retry-after': '1' }),
    'GET /metrics': async ({ request }) =>
      (await metricsPage(context, request, metrics)) ?? unmatched(context, [], callOf(request)),
    'GET /api/v1/openapi.json': () => {
      return new Response(describeApi(), { headers: { 'content-type': 'application/json; charset=utf-8' } })
    },
    'GET /api/v1/docs': async () => {
      reference ??= import('./admin/reference.ts').then(({ referencePage }) =>
        referencePage(JSON.parse(describeApi())),
      )
      reference.catch(() => {
        reference = undefined
      })
      const { html, policy } = await reference
      return new Response(html, {
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': policy,
          'cache-control': 'no-cache',
          'referrer-policy': 'no-referrer',
          'x-frame-options': 'DENY',
        },
      })
    },
    'GET /assets/*': async ({ request }) => {
      const call = callOf(request)
      return (
        asset(call.path) ??
        accentAsset(call.path) ??
        context.themes.asset(call.path) ??
        (await organizationAsset(context, call.path)) ??
        (await userPicture(context, call.path)) ??
        unmatched(context, [], call)
      )
    },
  })
}

/**
 * Answers a request that no route handled, or an error that no boundary caught: 405 with `Allow` when the
 * path exists under other methods, otherwise 404.
 */
const unmatched = (context: Context, methods: MethodTable, call: Call, cause?: unknown): Response => {
  const refusal = cause === undefined ? unmatchedError(methods, call) : asAppError(cause)
  if (refusal.status >= 500)
    context.log.error({ request_id: call.request_id, err: refusal.cause ?? refusal }, 'unhandled')
  return wantsPage(call.request) ? errorPage(context, call, refusal) : errorAnswer(call, refusal)
}
