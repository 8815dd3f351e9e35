/** The five ways to use the package, behind one face: mount a guarded route, send it requests. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Elysia } from 'elysia'
import express from 'express'
import { type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { Hono } from 'hono'
import type { AccessError, Rules, Verifier } from '#src/resource-server/index.ts'

/** The package under test: its sources, or what was packed of them. */
export type Sdk = {
  core: typeof import('#src/resource-server/index.ts')
  client: typeof import('#src/resource-server/client.ts')
  testing: typeof import('#src/resource-server/testing.ts')
  elysia: typeof import('#src/resource-server/elysia.ts')
  hono: typeof import('#src/resource-server/hono.ts')
  express: typeof import('#src/resource-server/express.ts')
  fastify: typeof import('#src/resource-server/fastify.ts')
}

/**
 * The route answers `{ claims }`, which is null without claims; handlers answer 418 with `handled: <code>`.
 */
export type Route = { verifier: Verifier; rules?: Rules; ownHandlers?: boolean }
export type Mounted = { send(request: Request): Promise<Response>; close(): Promise<void> }
export type Target = { name: string; mount(sdk: Sdk, route: Route): Promise<Mounted> }

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
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    return {
      send: ({ url, headers }) => fetch(url.replace(ORIGIN, `http://127.0.0.1:${port}`), { headers }),
      close: async () => {
        server.closeAllConnections()
        server.close()
      },
    }
  },
}

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
    return {
      async send({ url, headers }) {
        const response = await app.inject({ url, headers: Object.fromEntries(headers) })
        return new Response(response.body, {
          status: response.statusCode,
          headers: response.headers as HeadersInit,
        })
      },
      close: () => app.close(),
    }
  },
}

export const targets: readonly Target[] = [core, elysia, hono, expressTarget, fastifyTarget]
