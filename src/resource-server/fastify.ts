import { subscribe } from 'node:diagnostics_channel'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { answerTo, authorize, findHandler, type Handlers, type Rules } from './access.ts'
import type { Claims } from './claims.ts'
import { AccessError } from './errors.ts'
import type { LogoutReceiver } from './logout.ts'
import { protection, type ResourceOptions } from './mcp.ts'
import { credentialsOf } from './node-request.ts'
import { securityOf } from './openapi.ts'
import type { Verifier } from './verifier.ts'

export { SECURITY_SCHEME, securityScheme } from './openapi.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Rules of the route, or `true` for any valid token. A route without `auth` is open. */
    auth?: Rules | true
  }
  interface FastifyRequest {
    /** null on open routes. Also null when the rules are optional and the request has no valid token. */
    claims: Claims | null
  }
}

/** The verifier, and replacements for the answers to refused requests. */
export type FastifyOptions = { verifier: Verifier } & Handlers<
  [request: FastifyRequest, reply: FastifyReply],
  unknown
>

type Routes = { all: Set<RouteOptions>; guarded: WeakSet<RouteOptions> }

/**
 * Routes of each app. The key is the root instance of the app. Hooks of the root instance collect the routes,
 * because the hooks of a plugin see only the routes of the plugin's own scope.
 */
const apps = new WeakMap<object, Routes>()

// Fastify publishes each new root instance on this diagnostics channel:
// https://fastify.dev/docs/latest/Reference/Hooks/#diagnostics-channel-hooks
subscribe('fastify.initialization', message => {
  const { fastify } = message as { fastify: FastifyInstance }
  const routes: Routes = { all: new Set(), guarded: new WeakSet() }
  apps.set(fastify, routes)
  fastify.addHook('onRoute', route => void routes.all.add(route))
})

/**
 * Finds the routes of an app. The prototype of a Fastify instance is the instance of the enclosing scope.
 * This chain of prototypes ends at the root instance.
 */
function routesOf(app: object | null): Routes {
  if (!app)
    throw new Error('Import the Gatehouse adapter before calling fastify(), because it must see every route')
  return apps.get(app) ?? routesOf(Object.getPrototypeOf(app))
}

function refuseUnguarded({ all, guarded }: Routes) {
  const open = [...all].filter(route => route.config?.auth && !guarded.has(route))
  if (open.length === 0) return
  const names = open.map(({ method, url }) => `${method} ${url}`).join(', ')
  throw new Error(
    `config.auth has no effect on ${names}: register the Gatehouse plugin before these routes, in the same or an enclosing scope`,
  )
}

/**
 * Plugin that guards the routes that have `config.auth`. The plugin checks a request before the body is read,
 * sets `request.claims`, and adds `schema.security` for OpenAPI. Register the plugin before the routes.
 *
 * @throws Error when `fastify()` was called before this module was imported; at the start of the app, when a
 *   route with `config.auth` was registered before the plugin or outside the plugin's scope
 *
 * @example
 * await app.register(gatehouse, { verifier })
 * app.get('/orders', { config: { auth: { scopes: ['orders:read'] } } }, request => getClaims(request).sub)
 */
export const gatehouse: FastifyPluginAsync<FastifyOptions> = async (app, { verifier, ...handlers }) => {
  const routes = routesOf(app)
  app.decorateRequest('claims', null)
  app.addHook('onReady', async () => refuseUnguarded(routes))
  app.addHook('onRoute', route => {
    routes.guarded.add(route)
    const auth = route.config?.auth
    if (auth) route.schema = Object.assign({ security: securityOf(auth) }, route.schema)
  })
  app.addHook('onRequest', async (request, reply) => {
    const auth = request.routeOptions.config?.auth
    if (!auth) return
    try {
      const rules = auth === true ? {} : auth
      request.claims = (await authorize(verifier, credentialsOf(request.raw), rules)) ?? null
    } catch (error) {
      if (!(error instanceof AccessError)) throw error
      const handler = findHandler(error, handlers)
      if (handler) {
        const answer = await handler(error, request, reply)
        return reply.sent ? reply : reply.send(answer)
      }
      const { status, headers, body } = answerTo(error, verifier.issuer)
      return reply.code(status).headers(headers).send(body)
    }
  })
}

/**
 * Plugin that makes the app a protected resource, such as an MCP server. The plugin serves the metadata
 * document, guards all paths except the open ones, and sets `request.claims`. It checks a request before the
 * body is read. Register the plugin before the routes, in place of `gatehouse`.
 *
 * @throws ConfigurationError when the verifier has no http(s) `resource`
 *
 * @example
 * await app.register(protect, { verifier, scopes: ['tools.read'] })
 */
export const protect: FastifyPluginAsync<{ verifier: Verifier } & ResourceOptions> = async (
  app,
  { verifier, ...options },
) => {
  const { check, metadataPaths } = protection(verifier, options)
  app.decorateRequest('claims', null)
  app.addHook('onRequest', async (request, reply) => {
    const path = request.url.replace(/[?#].*/s, '')
    const checked = await check({ ...credentialsOf(request.raw), method: request.method, path })
    if (!checked?.answer) {
      request.claims = checked?.claims ?? null
      return undefined
    }
    const { status, headers, body } = checked.answer
    return reply.code(status).headers(headers).send(body)
  })
  // The onRequest hook answers requests for the metadata document. The paths of the document still need
  // routes: if the plugin is registered in a scope below the root, Fastify runs no hook for an unknown path.
  // With `ignoreTrailingSlash` one route has both paths, and Fastify refuses a second one.
  const { ignoreTrailingSlash, routerOptions } = app.initialConfig
  const isOne = ignoreTrailingSlash || routerOptions?.ignoreTrailingSlash
  for (const url of isOne ? metadataPaths.slice(0, 1) : metadataPaths)
    app.route({ method: ['GET', 'OPTIONS'], url, handler: async () => undefined })
}

// The property `skip-override` makes the hooks apply outside the plugin's own scope. The package
// fastify-plugin sets the same property.
for (const plugin of [gatehouse, protect])
  Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'gatehouse',
  })

/**
 * Returns the claims of a guarded request.
 *
 * @throws Error when the route is open, or when its rules are optional and the request has no valid token
 */
export function getClaims(request: FastifyRequest): Claims {
  if (!request.claims) throw new Error('This request has no claims: set config.auth on its route')
  return request.claims
}

const FORM = 'application/x-www-form-urlencoded'

/**
 * Plugin that serves the application's logout URI. The plugin reads the form as text, even if the app has a
 * parser for forms. The receiver needs the text to refuse repeated fields.
 *
 * @example
 * app.register(logout, { receiver, path: '/backchannel-logout' })
 */
export const logout: FastifyPluginAsync<{ receiver: LogoutReceiver; path: string }> = async (
  app,
  { receiver, path },
) => {
  app.removeContentTypeParser(FORM)
  app.addContentTypeParser(FORM, { parseAs: 'string' }, async (_: FastifyRequest, text: string) => text)
  app.post(path, async (request, reply) => {
    const { status, headers, body } = await receiver.receive(request.body)
    return reply.code(status).headers(headers).send(body)
  })
}
