/** Tests protected resources (RFC 9728), such as MCP servers, with each adapter. */
import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { Elysia } from 'elysia'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { protect as protectElysia } from '#src/resource-server/elysia.ts'
import { getClaims, protect as protectExpress } from '#src/resource-server/express.ts'
import { getClaims as getFastifyClaims, protect as protectFastify } from '#src/resource-server/fastify.ts'
import { protect as protectHono } from '#src/resource-server/hono.ts'
import { createVerifier } from '#src/resource-server/index.ts'
import { protect, requireScopes } from '#src/resource-server/mcp.ts'
import { createTestIssuer } from '#src/resource-server/testing.ts'

const RESOURCE = 'https://mcp.example/v1/mcp'
const METADATA = '/.well-known/oauth-protected-resource/v1/mcp'
const issuer = await createTestIssuer()
const { audience: _, ...trust } = issuer
const verifier = createVerifier({ ...trust, resource: RESOURCE, realm: 'acme' })
const tokenFor = (scope: string, claims = {}) =>
  issuer.token({ aud: RESOURCE, org_id: 'acme', scope, ...claims })
const options = { scopes: ['read'], scopesSupported: ['read', 'write'], name: 'Tools', open: ['/healthz'] }

type Ask = (path: string, init?: RequestInit) => Promise<Response>
type Target = { name: string; throws: boolean; start: () => Promise<{ ask: Ask; stop: () => unknown }> }

const viaFetch = (handle: (request: Request) => Response | Promise<Response>) => ({
  ask: async (path: string, init?: RequestInit) => handle(new Request(`https://mcp.example${path}`, init)),
  stop: () => undefined,
})
const viaPort = (port: number, stop: () => unknown) => ({
  ask: (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init),
  stop,
})

const targets: Target[] = [
  {
    name: 'fetch',
    throws: true,
    start: async () =>
      viaFetch(
        protect(
          verifier,
          (request, claims) => {
            if (request.url.endsWith('/write')) requireScopes(claims ?? raise(), ['write'])
            return Response.json(claims?.sub ?? 'open')
          },
          options,
        ),
      ),
  },
  {
    name: 'hono',
    throws: true,
    start: async () => {
      const app = new Hono()
        .use(protectHono(verifier, options))
        .all('/v1/mcp', c => c.json(c.var.claims.sub))
        .all('/v1/mcp/write', c => {
          requireScopes(c.var.claims, ['write'])
          return c.json('')
        })
        .get('/healthz', c => c.json('open'))
      return viaFetch(request => app.fetch(request))
    },
  },
  {
    name: 'elysia',
    throws: true,
    start: async () => {
      const app = new Elysia()
        .use(protectElysia(verifier, options))
        .all('/v1/mcp', ({ claims }) => Response.json(claims?.sub))
        .all('/v1/mcp/write', ({ claims }) => requireScopes(claims ?? raise(), ['write']))
        .get('/healthz', () => Response.json('open'))
      return viaFetch(request => app.handle(request))
    },
  },
  {
    name: 'express',
    throws: false,
    start: async () => {
      const app = express()
      app.use(protectExpress(verifier, options))
      app.all('/v1/mcp', (req, res) => void res.json(getClaims(req).sub))
      app.get('/healthz', (_, res) => void res.json('open'))
      const server = app.listen(0, '127.0.0.1')
      await once(server, 'listening')
      return viaPort((server.address() as AddressInfo).port, () => server.close())
    },
  },
  {
    name: 'fastify',
    throws: false,
    start: async () => {
      const app = fastify()
      await app.register(protectFastify, { verifier, ...options })
      app.all('/v1/mcp', async request => JSON.stringify(getFastifyClaims(request).sub))
      app.get('/healthz', async () => JSON.stringify('open'))
      await app.listen({ port: 0, host: '127.0.0.1' })
      return viaPort((app.server.address() as AddressInfo).port, () => app.close())
    },
  },
]

const raise = () => {
  throw new Error('no claims')
}
const bearer = (token: string) => ({ method: 'POST', headers: { authorization: `Bearer ${token}` } })
const challengeOf = ({ headers }: Response) => headers.get('www-authenticate') ?? ''
const named = `resource_metadata="https://mcp.example${METADATA}"`

describe.each(targets)('$name', ({ start, throws }) => {
  const run = (name: string, body: (ask: Ask) => Promise<void>) =>
    test(name, async () => {
      const { ask, stop } = await start()
      try {
        await body(ask)
      } finally {
        await stop()
      }
    })

  run('SDK-50 the metadata document is public, without null and offline_access', async ask => {
    const answer = await ask(METADATA)
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
    expect(await answer.json()).toEqual({
      resource: RESOURCE,
      authorization_servers: [verifier.issuer],
      bearer_methods_supported: ['header'],
      scopes_supported: ['read', 'write'],
      resource_name: 'Tools',
    })
    const preflight = await ask(METADATA, { method: 'OPTIONS' })
    expect(preflight.headers.get('access-control-allow-headers')).toContain('mcp-protocol-version')
    expect((await ask(`${METADATA}/x`)).status).toBe(401)
    const posted = await ask(METADATA, { method: 'POST' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })

  run('SDK-51 without a good token 401 names the document and the scopes', async ask => {
    const missing = await ask('/v1/mcp', { method: 'POST' })
    expect([missing.status, challengeOf(missing)]).toEqual([
      401,
      `Bearer realm="${verifier.issuer}", ${named}, scope="read"`,
    ])
    for (const token of [
      'x',
      await tokenFor('read', { aud: 'https://other.example' }),
      await tokenFor('read', { aud: 'web-app' }),
      await tokenFor('read', { org_id: 'other' }),
    ]) {
      const refused = await ask('/v1/mcp', bearer(token))
      expect([refused.status, challengeOf(refused)]).toEqual([401, expect.stringContaining(named)])
      expect(challengeOf(refused)).toContain('error="invalid_token"')
    }
    const good = await ask('/v1/mcp', bearer(await tokenFor('read')))
    expect([good.status, await good.json()]).toEqual([200, expect.any(String)])
  })

  run('SDK-52 a token that lacks scopes is 403 with all that are needed', async ask => {
    const lacking = await ask('/v1/mcp', bearer(await tokenFor('write')))
    expect([lacking.status, challengeOf(lacking)]).toEqual([403, expect.stringContaining('scope="read"')])
    expect(challengeOf(lacking)).toContain('error="insufficient_scope"')
    expect(challengeOf(lacking)).toContain(named)
    if (!throws) return
    const further = await ask('/v1/mcp/write', bearer(await tokenFor('read')))
    expect([further.status, challengeOf(further)]).toEqual([403, expect.stringContaining('scope="write"')])
    expect(challengeOf(further)).toContain(named)
  })

  run('SDK-53 every spelling of a path is guarded, except the open paths', async ask => {
    expect(await (await ask('/healthz')).json()).toBe('open')
    for (const path of [
      '/v1/mcp',
      '/V1/MCP',
      '/v1/mc%70',
      '/v1/mcp/',
      '//v1/mcp',
      '/healthz/',
      '/HEALTHZ',
      '/',
    ])
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const { status } = await ask(path, { method })
        expect([path, method, status]).toEqual([path, method, 401])
      }
  })
})

/**
 * Sends a path unchanged, because `fetch` would normalize the path. Returns the answer's first line and body.
 */
const askRaw = async (port: number, path: string, host: string) => {
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return answer.replace(/\r\n.*\r\n\r\n/s, ' ')
}

describe.each([{}, { systemRouter: false }, { aot: false }])('Elysia with %j', settings => {
  const open = ['/healthz', '/files/logo', '/bare/']
  const guarded = ['/before', '/secret', '/text', '/files/x', '/tools/a/b', '/all/x', '/mounted/x']
  const startApp = () =>
    new Elysia(settings)
      .get('/before', 'secret')
      .get('/early/:first/:second', () => 'secret')
      .use(protectElysia(verifier, { open }))
      .get('/healthz', 'open')
      .get('/bare', 'open')
      .get('/files/:name', ({ params }) => (params.name === 'logo' ? 'open' : 'secret'))
      .get('/secret', () => 'secret')
      .get('/text', 'secret')
      .get('/tools/:first/:second', () => 'secret')
      .get('/all/*', () => 'secret')
      .mount('/mounted', () => new Response('secret'))
      .listen({ port: 0, hostname: '127.0.0.1' })

  test('SDK-53 an open path opens no route of another path', async () => {
    const app = startApp()
    const port = app.server?.port ?? 0
    try {
      for (const path of [...open, '/healthz?x=1'])
        expect(await askRaw(port, path, 'mcp.example')).toBe('HTTP/1.1 200 OK open')
      // After a host of up to three characters, Elysia skips the first slash of the path.
      const hidden = guarded.flatMap(path => [`/healthz?${path}`, `/healthz#${path}`])
      // Bun's router uses the path as the client sent it. The URL of the request has the normalized path.
      const dotted = [
        '/tools/../healthz',
        '/tools/%2e%2e/healthz',
        '/early/../healthz',
        '/files/..\\\\healthz',
        '/all/../healthz',
        '/all/a/../../healthz',
      ]
      for (const path of [...guarded, ...hidden, ...dotted])
        for (const host of ['mcp.example', 'x', 'x:1', 'x/healthz?', '[::1]']) {
          const answer = await askRaw(port, path, host)
          expect([path, host, answer]).not.toEqual([path, host, expect.stringMatching(/secret|HTTP\/1.1 5/)])
        }
      for (const path of hidden) {
        const answer = await app.handle(new Request(`http://x${path}`))
        expect([path, await answer.text()]).not.toEqual([path, 'secret'])
      }
    } finally {
      await app.stop(true)
    }
  })
})

test("SDK-53 an open path opens no parameter route of Bun's router", async () => {
  const guarded = protect(verifier, ({ url }) => new Response(`handled ${url}`), { open: ['/healthz'] })
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    routes: { '/:name': guarded, '/tools/:name/:more': guarded },
    fetch: guarded,
  })
  const port = server.port ?? 0
  try {
    expect(await askRaw(port, '/healthz', 'mcp.example')).toBe(
      'HTTP/1.1 200 OK handled http://mcp.example/healthz',
    )
    for (const path of ['/tools/../healthz', '/tools/%2e%2e/healthz', '/tools/..\\../healthz'])
      expect(await askRaw(port, path, 'mcp.example')).toStartWith('HTTP/1.1 401 ')
    expect(await askRaw(port, '/tools', 'mcp.example/healthz?')).toStartWith('HTTP/1.1 401 ')
  } finally {
    await server.stop(true)
  }
})

test('SDK-53 express: an open path is the path of the whole application, not of the router', async () => {
  const router = express.Router().use(protectExpress(verifier, options))
  const app = express().use('/v1', router)
  router.get('/healthz', (_, res) => void res.json('secret'))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  expect((await fetch(`http://127.0.0.1:${port}/v1/healthz`)).status).toBe(401)
  server.close()
})

test('SDK-50 a resource with a slash at its end has its metadata at both paths', async () => {
  const resource = `${RESOURCE}/`
  const slashed = createVerifier({ ...trust, resource, realm: 'acme' })
  const ignored = { ignoreTrailingSlash: true }
  const apps = [fastify(), fastify(ignored), fastify({ routerOptions: ignored })]
  // Fastify runs no hook for an unknown path when the plugin is registered in a scope below the root.
  for (const app of apps)
    await app.register(async scope => void (await scope.register(protectFastify, { verifier: slashed })))
  const handle = protect(slashed, () => new Response('secret'))
  for (const path of [METADATA, `${METADATA}/`]) {
    const answer = await handle(new Request(`https://mcp.example${path}`))
    expect([answer.status, (await answer.json()).resource]).toEqual([200, resource])
    for (const app of apps) expect((await app.inject(path)).json().resource).toBe(resource)
  }
  const challenge = (await handle(new Request(resource))).headers.get('www-authenticate')
  expect(challenge).toContain(`resource_metadata="https://mcp.example${METADATA}"`)
  const plain = protect(verifier, () => new Response('secret'))
  expect((await plain(new Request(`https://mcp.example${METADATA}/`))).status).toBe(401)
  for (const app of apps) await app.close()
})

test('SDK-54 a verifier with an audience, or a resource without an address, guards nothing', () => {
  expect(() => protect(createVerifier(issuer), () => new Response())).toThrow('resource')
  const urn = createVerifier({ ...trust, resource: 'urn:example:api', realm: 'acme' })
  expect(() => protect(urn, () => new Response())).toThrow('resource')
})
