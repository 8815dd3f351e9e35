import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Elysia, t } from 'elysia'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { gatehouse as elysiaGatehouse, SECURITY_SCHEME, securityScheme } from '#src/resource-server/elysia.ts'
import {
  auth as expressAuth,
  logout as expressLogout,
  getClaims as getExpressClaims,
} from '#src/resource-server/express.ts'
import { gatehouse as fastifyGatehouse, getClaims as getFastifyClaims } from '#src/resource-server/fastify.ts'
import { auth as honoAuth } from '#src/resource-server/hono.ts'
import { type Claims, createVerifier, type Verifier } from '#src/resource-server/index.ts'
import { createLogoutReceiver } from '#src/resource-server/logout.ts'
import { createTestIssuer } from '#src/resource-server/testing.ts'

const issuer = await createTestIssuer()
const verifier = createVerifier(issuer)
const authorization = `Bearer ${await issuer.token()}`

const json = { 'content-type': 'application/json' }
const post = (path: string, headers: Record<string, string>, body = '{') =>
  new Request(`http://localhost${path}`, { method: 'POST', headers, body })

for (const aot of [true, false]) {
  const app = new Elysia({ aot })
    .use(elysiaGatehouse(verifier))
    .post('/parsed', ({ body, claims }) => ({ body, sub: claims.sub }), {
      auth: true,
      body: t.Object({ a: t.Number() }),
    })
    .get('/query', ({ query }) => query, { optionalAuth: true, query: t.Object({ a: t.Number() }) })
    .get('/open', () => 'open')

  test(`elysia, aot ${aot}: 401 comes before an error about the body`, async () => {
    // If ahead-of-time compilation is off, Elysia answers malformed JSON with 500, even if the request has no
    // token.
    for (const body of [aot ? '{' : '[]', '{}', '{"a":1}']) {
      expect((await app.handle(post('/parsed', json, body))).status).toBe(401)
    }
    expect((await app.handle(post('/parsed', { ...json, authorization }, '{}'))).status).toBe(422)
    expect((await app.handle(post('/parsed', { ...json, authorization }, '{"a":1}'))).status).toBe(200)
  })

  test(`elysia, aot ${aot}: optional routes refuse a bad token before the query, open routes are unaffected`, async () => {
    const get = (path: string, headers = {}) =>
      app.handle(new Request(`http://localhost${path}`, { headers }))
    expect((await get('/query', { authorization: 'Bearer x' })).status).toBe(401)
    expect((await get('/query')).status).toBe(422)
    expect(await (await get('/open', { authorization: 'Bearer x' })).text()).toBe('open')
  })
}

test('elysia leaves the body to a handler that reads the request itself', async () => {
  const app = new Elysia()
    .use(elysiaGatehouse(verifier))
    .post('/raw', async ({ request }) => request.text(), { auth: true })
  expect(await (await app.handle(post('/raw', { ...json, authorization }))).text()).toBe('{')
})

test('elysia: the OpenAPI operation has its security', () => {
  const app = new Elysia()
    .use(elysiaGatehouse(verifier))
    .get('/a', () => '', { auth: { scopes: ['orders:read'] }, detail: { tags: ['orders'] } })
    .get('/b', () => '', { optionalAuth: true })
  expect(app.routes.map(route => route.hooks.detail)).toEqual([
    { tags: ['orders'], security: [{ gatehouse: ['orders:read'] }] },
    { security: [{ gatehouse: [] }, {}] },
  ])
  expect({ [SECURITY_SCHEME]: securityScheme(verifier) }).toEqual({
    gatehouse: {
      type: 'openIdConnect',
      openIdConnectUrl: 'https://id.example.test/.well-known/openid-configuration',
    },
  })
})

test('fastify: the schema has the security of the route, and 404 stays 404', async () => {
  const app = fastify()
  const schemas: unknown[] = []
  await app.register(fastifyGatehouse, { verifier })
  app.addHook('onRoute', route => void schemas.push(route.schema))
  app.get(
    '/a',
    { exposeHeadRoute: false, config: { auth: { scopes: ['a'] } }, schema: { querystring: {} } },
    async () => '',
  )
  app.get('/open', { exposeHeadRoute: false }, async request => ({ claims: request.claims }))
  expect(schemas).toEqual([{ security: [{ gatehouse: ['a'] }], querystring: {} }, undefined])
  expect((await app.inject('/nowhere')).statusCode).toBe(404)
  expect((await app.inject('/open')).json()).toEqual({ claims: null })
})

test('H-53 fastify: a route with config.auth that the plugin cannot see stops the app from starting', async () => {
  const guarded = { config: { auth: true } } as const
  const scoped = fastify()
  scoped.register(async scope => {
    await scope.register(fastifyGatehouse, { verifier })
    scope.get('/inside', guarded, async () => 'in')
  })
  scoped.get('/outside', { ...guarded, exposeHeadRoute: false }, async () => 'open')
  await expect(scoped.ready()).rejects.toThrow(
    'config.auth has no effect on GET /outside: register the Gatehouse plugin before these routes, in the same or an enclosing scope',
  )

  const late = fastify()
  late.register(async scope => {
    scope.post('/early', guarded, async () => 'open')
  })
  late.register(fastifyGatehouse, { verifier })
  await expect(late.ready()).rejects.toThrow('config.auth has no effect on POST /early')
})

test('H-53 fastify: scopes with their own plugins, and open routes anywhere, start', async () => {
  const app = fastify()
  app.get('/open', async () => 'open')
  for (const prefix of ['/a', '/b'])
    app.register(
      async scope => {
        await scope.register(fastifyGatehouse, { verifier })
        scope.register(async inner => {
          inner.get('/in', { config: { auth: true } }, async request => getFastifyClaims(request).sub)
        })
      },
      { prefix },
    )
  app.get('/optional', { config: {} }, async () => 'open')
  const statuses = ['/open', '/optional', '/a/in', '/b/in'].map(
    async url => (await app.inject(url)).statusCode,
  )
  expect(await Promise.all(statuses)).toEqual([200, 200, 401, 401])
  expect((await app.inject({ url: '/b/in', headers: { authorization } })).statusCode).toBe(200)
})

test('fastify: 401 comes before the body is parsed', async () => {
  const app = fastify()
  await app.register(fastifyGatehouse, { verifier })
  app.post('/', { config: { auth: true } }, async request => getFastifyClaims(request).sub)
  const send = (headers = {}) =>
    app.inject({ method: 'POST', url: '/', headers: { ...json, ...headers }, body: '{' })
  expect((await send()).statusCode).toBe(401)
  expect((await send({ authorization })).statusCode).toBe(400)
})

test('fastify: a handler may answer by its return value or by the reply', async () => {
  for (const onUnauthorized of [
    async () => ({ own: true }),
    (_: unknown, __: unknown, reply: { send(body: unknown): unknown }) => reply.send({ own: true }),
  ]) {
    const app = fastify()
    await app.register(fastifyGatehouse, { verifier, onUnauthorized })
    app.get('/', { config: { auth: true } }, async () => 'in')
    expect((await app.inject('/')).json()).toEqual({ own: true })
  }
})

async function listen(app: express.Express) {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, [Symbol.dispose]: () => void server.close() }
}

test('express: claims without the middleware are a programming error, which the error handler gets', async () => {
  const app = express()
  app.get('/', (req, res) => void res.json(getExpressClaims(req)))
  app.use((error: Error, _: express.Request, res: express.Response, __: express.NextFunction) => {
    res.status(500).send(error.message)
  })
  using server = await listen(app)
  const response = await fetch(`http://127.0.0.1:${server.port}/`)
  expect([response.status, await response.text()]).toEqual([500, expect.stringContaining('auth(verifier)')])
})

test('express: other failures go to the error handler', async () => {
  const broken: Verifier = { ...verifier, verify: () => Promise.reject(new RangeError('broken')) }
  const app = express()
  const thrower = () => {
    throw new RangeError('handler')
  }
  app.get('/verify', expressAuth(broken), (_, res) => void res.send('in'))
  app.get('/handler', expressAuth(verifier, { onUnauthorized: thrower }), (_, res) => void res.send('in'))
  app.use((error: Error, _: express.Request, res: express.Response, __: express.NextFunction) => {
    res.status(500).send(error.message)
  })
  using server = await listen(app)
  const get = async (path: string) =>
    (await fetch(`http://127.0.0.1:${server.port}${path}`, { headers })).text()
  let headers: Record<string, string> = { authorization }
  expect(await get('/verify')).toBe('broken')
  headers = {}
  expect(await get('/handler')).toBe('handler')
})

test.each([
  ['urlencoded', express.urlencoded({ extended: false })],
  ['text', express.text({ type: '*/*' })],
  ['raw', express.raw({ type: '*/*' })],
])('express: a logout is received after express.%s()', async (_, parser) => {
  const ended: unknown[] = []
  const receiver = createLogoutReceiver({ ...issuer, onLogout: ({ sid }) => void ended.push(sid) })
  const app = express().post('/', parser, expressLogout(receiver))
  using server = await listen(app)
  const body = new URLSearchParams({ logout_token: await issuer.logoutToken({ sid: 's' }) })
  const { status } = await fetch(`http://127.0.0.1:${server.port}/`, { method: 'POST', body })
  expect([status, ended]).toEqual([200, ['s']])
})

test('express: a form that is too long for a logout token is refused, and not read to its end', async () => {
  const refused: string[] = []
  const onRefused = ({ code }: { code: string }) => void refused.push(code)
  const receiver = createLogoutReceiver({ ...issuer, onLogout: () => {}, onRefused })
  using server = await listen(express().post('/', expressLogout(receiver)))
  const form = new URLSearchParams({ logout_token: await issuer.logoutToken() })
  const statuses = []
  for (const length of [16_384, 16_385]) {
    form.set('padding', '')
    form.set('padding', 'x'.repeat(length - `${form}`.length))
    const init = { method: 'POST', body: `${form}` }
    statuses.push((await fetch(`http://127.0.0.1:${server.port}/`, init)).status)
  }
  expect([statuses, refused]).toEqual([[200, 400], ['token_missing']])
})

test('express: two Authorization headers are both refused', async () => {
  const app = express().get('/', expressAuth(verifier), (_, res) => void res.send('in'))
  using server = await listen(app)
  const outgoing = request({ host: '127.0.0.1', port: server.port })
  outgoing.setHeader('authorization', [authorization, authorization])
  outgoing.end()
  const [response] = await once(outgoing, 'response')
  expect(response.statusCode).toBe(401)
})

test('hono: an error that is not a refusal is rethrown', async () => {
  const broken: Verifier = { ...verifier, verify: () => Promise.reject(new RangeError('broken')) }
  const app = new Hono().get('/', honoAuth(broken), c => c.text('in'))
  app.onError((error, c) => c.text(error.message, 500))
  expect(await (await app.request('/', { headers: { authorization } })).text()).toBe('broken')
})

test('claims are typed by the rules: optional only where the rule says so', async () => {
  const request = new Request('http://localhost/', { headers: { authorization } })
  const must = await verifier.guard(request, { scopes: ['openid'] })
  const may = await verifier.guard(request, { optional: true })
  if (must.response || may.response) throw new Error('refused')
  const certain: Claims = must.claims
  // @ts-expect-error optional rules allow requests without claims
  const uncertain: Claims = may.claims
  expect(certain.sub).toBe(uncertain.sub)

  new Hono()
    .get('/', honoAuth(verifier, { roles: ['user'] }), c => c.text(c.var.claims.sub))
    // @ts-expect-error optional rules allow requests without claims
    .get('/', honoAuth(verifier, { optional: true }), c => c.text(c.var.claims.sub))
  new Elysia()
    .use(elysiaGatehouse(verifier))
    .get('/', ({ claims }) => claims.sub, { auth: true })
    // @ts-expect-error optional rules allow requests without claims
    .get('/may', ({ claims }) => claims.sub, { optionalAuth: true })
})
