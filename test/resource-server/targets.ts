/**
 * Gives the core and each adapter the same interface, which mounts a guarded route and sends requests to the
 * route.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Elysia } from 'elysia'
import express from 'express'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { Hono } from 'hono'
import type { AccessError, Rules, Verifier } from '#src/resource-server/index.ts'
import type { LogoutReceiver } from '#src/resource-server/logout.ts'

/** The package under test: its sources, or the packed package. */
export type Sdk = {
  core: typeof import('#src/resource-server/index.ts')
  client: typeof import('#src/resource-server/client.ts')
  logout: typeof import('#src/resource-server/logout.ts')
  testing: typeof import('#src/resource-server/testing.ts')
  elysia: typeof import('#src/resource-server/elysia.ts')
  hono: typeof import('#src/resource-server/hono.ts')
  express: typeof import('#src/resource-server/express.ts')
  fastify: typeof import('#src/resource-server/fastify.ts')
}

/**
 * The route answers `{ claims }`. `claims` is null if there are no claims. `ownHandlers` adds handlers that
 * answer a refusal with 418 and `handled: <code>`.
 */
export type Route = { verifier: Verifier; rules?: Rules; ownHandlers?: boolean }
export type Mounted = { send(request: Request): Promise<Response>; close(): Promise<void> }
export type Target = {
  name: string
  mount(sdk: Sdk, route: Route): Promise<Mounted>
  /**
   * Mounts the receiver at `/logout` and at `/parsed`. At `/parsed` the framework parses the form before it
   * calls the receiver.
   */
  mountLogout(sdk: Sdk, receiver: LogoutReceiver): Promise<Mounted>
}

const ORIGIN = 'http://localhost'
export const requestFor = (headers: HeadersInit, path = '/') => new Request(`${ORIGIN}${path}`, { headers })

const handled = (error: AccessError) => ({ handled: error.code })
const inProcess = (send: (request: Request) => Promise<Response> | Response): Mounted => ({
  send: async request => send(request),
  close: async () => {},
})

const core: Target = {
  name: 'core',
  async mount(_, { verifier, rules, ownHandlers }) {
    const handle = (error: AccessError) => Response.json(handled(error), { status: 418 })
    const options = { ...rules, ...(ownHandlers ? { onUnauthorized: handle, onForbidden: handle } : {}) }
    return inProcess(async request => {
      const { claims, response } = await verifier.guard(request, options)
      return response ?? Response.json({ claims: claims ?? null })
    })
  },
  mountLogout: async (_, receiver) => inProcess(receiver.handle),
}

const elysia: Target = {
  name: 'elysia',
  async mount(sdk, { verifier, rules: { optional, ...rules } = {}, ownHandlers }) {
    const handle = (error: AccessError) => Response.json(handled(error), { status: 418 })
    const plugin = sdk.elysia.gatehouse(
      verifier,
      ownHandlers ? { onUnauthorized: handle, onForbidden: handle } : {},
    )
    const app = new Elysia().use(plugin)
    if (optional) app.get('/', ({ claims }) => ({ claims: claims ?? null }), { optionalAuth: rules })
    else app.get('/', ({ claims }) => ({ claims }), { auth: rules })
    return inProcess(app.handle)
  },
  async mountLogout(sdk, receiver) {
    const app = new Elysia()
      .onBeforeHandle(({ body }) => void body)
      .use(sdk.elysia.logout(receiver, '/logout'))
      .use(sdk.elysia.logout(receiver, '/parsed'))
    return inProcess(app.handle)
  },
}

const hono: Target = {
  name: 'hono',
  async mount(sdk, { verifier, rules, ownHandlers }) {
    const handle = (error: AccessError) => Response.json(handled(error), { status: 418 })
    const options = { ...rules, ...(ownHandlers ? { onUnauthorized: handle, onForbidden: handle } : {}) }
    const app = new Hono().get('/', sdk.hono.auth(verifier, options), c =>
      c.json({ claims: c.var.claims ?? null }),
    )
    return inProcess(app.fetch)
  },
  async mountLogout(sdk, receiver) {
    const app = new Hono().post('/logout', sdk.hono.logout(receiver))
    app.use('/parsed', async (c, next) => {
      await c.req.parseBody()
      await next()
    })
    return inProcess(app.post('/parsed', sdk.hono.logout(receiver)).fetch)
  },
}

/** Listens on a free port. */
async function listen(app: express.Express): Promise<Mounted> {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    send: async ({ url, method, headers, body }) =>
      fetch(url.replace(ORIGIN, `http://127.0.0.1:${port}`), {
        method,
        headers,
        ...(body && { body: await new Response(body).text() }),
      }),
    close: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const expressTarget: Target = {
  name: 'express',
  async mount(sdk, { verifier, rules, ownHandlers }) {
    const handle = (error: AccessError, _: express.Request, res: express.Response) =>
      res.status(418).json(handled(error))
    const options = { ...rules, ...(ownHandlers ? { onUnauthorized: handle, onForbidden: handle } : {}) }
    const app = express().get('/', sdk.express.auth(verifier, options), (req, res) => {
      res.json({ claims: req.claims ?? null })
    })
    return listen(app)
  },
  async mountLogout(sdk, receiver) {
    const app = express().post('/logout', sdk.express.logout(receiver))
    return listen(app.post('/parsed', express.urlencoded(), sdk.express.logout(receiver)))
  },
}

const inject = (app: FastifyInstance): Mounted => ({
  async send({ url, method, headers, body }) {
    const response = await app.inject({
      url,
      method: method as 'POST',
      headers: Object.fromEntries(headers),
      ...(body && { body: await new Response(body).text() }),
    })
    return new Response(response.body, {
      status: response.statusCode,
      headers: response.headers as HeadersInit,
    })
  },
  close: () => app.close(),
})

const fastifyTarget: Target = {
  name: 'fastify',
  async mount(sdk, { verifier, rules, ownHandlers }) {
    const handle = (error: AccessError, _: FastifyRequest, reply: FastifyReply) => {
      reply.code(418)
      return handled(error)
    }
    const app = fastify()
    const handlers = ownHandlers ? { onUnauthorized: handle, onForbidden: handle } : {}
    await app.register(sdk.fastify.gatehouse, { verifier, ...handlers })
    app.get('/', { config: { auth: rules ?? true } }, async request => ({ claims: request.claims }))
    return inject(app)
  },
  async mountLogout(sdk, receiver) {
    const app = fastify()
    await app.register(sdk.fastify.logout, { receiver, path: '/logout' })
    app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, async () => ({}))
    await app.register(sdk.fastify.logout, { receiver, path: '/parsed' })
    return inject(app)
  },
}

export const targets: readonly Target[] = [core, elysia, hono, expressTarget, fastifyTarget]
