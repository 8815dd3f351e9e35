import { afterAll, describe, expect, test } from 'bun:test'
import { listen } from '#src/cli/listen.ts'
import { controls } from '#src/dev/controls.ts'
import { openLogger } from '#src/lib/log.ts'
import type { SeedInput } from '#src/seed/schema.ts'
import { start } from '#src/testing/start.ts'
import type { SeedClient } from '#src/testing/types.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { developmentOf } from '#test/support/development.ts'

const lines: Json[] = []
const log = openLogger('info', line => void lines.push(JSON.parse(line)))
const app = await startApp({ port: 0 }, { log })
const served = listen(app.context.config, log, app.fetch)
const web = {
  client_id: 'web',
  type: 'public',
  grant_types: ['authorization_code'],
  scopes: ['openid'],
  redirect_uris: ['http://127.0.0.1:4711/callback'],
  web_origins: ['http://127.0.0.1:4711'],
} as const satisfies SeedClient
const dev = await start({ seed: { clients: [{ ...web }] } as SeedInput })
afterAll(async () => {
  await Promise.all([served.stop(), dev.stop()])
})

/** Matches the runtime's error page and its content: directories, source lines, stacks. */
const LEAK =
  /bunfs|__bunfallback|bun-error|fallback.*script|\bat .*\.ts:\d+|Something went wrong!|Welcome to Bun/i

const ask = async (port: number, method: string, path: string, init: RequestInit = {}) => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, redirect: 'manual', ...init })
  const body = await answer.text()
  return { status: answer.status, headers: answer.headers, body }
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const paths = app.paths.map(path => path.replace(/:\w+/g, 'x').replace('*', 'x'))
const below = [
  ...new Set(Object.keys(controls).map(line => line.split(' ')[1] ?? '')),
  '/dev/pick',
  '/dev/nowhere',
  ...['authorize', 'token', 'userinfo', 'jwks', '.well-known/openid-configuration', 'nowhere'].map(
    name => `/dev/openid/${name}`,
  ),
  ...['metadata', 'sso', 'nowhere'].map(name => `/dev/saml/${name}`),
]
/**
 * Requests for each method. GET, HEAD and OPTIONS: a plain request, and a request with preflight headers.
 * Other methods: a plain request, and requests with malformed bodies and credentials.
 */
const kinds = (method: string): RequestInit[] => {
  const origin = 'http://127.0.0.1:4711'
  const preflight = { origin, 'access-control-request-method': 'POST' }
  if (['GET', 'HEAD', 'OPTIONS'].includes(method)) return [{}, { headers: preflight }]
  const of = (type: string, body: string): RequestInit => ({
    headers: { 'content-type': type, authorization: 'Basic %%%' },
    body,
  })
  return [
    {},
    of('application/x-www-form-urlencoded', 'request=%E0%A4%A&redirect_uri=x&grant_type=%'),
    of('application/json', '{"broken":'),
    of('multipart/form-data; boundary=x', '--x'),
  ]
}

describe('H-57 every method at every path is answered by the server, never by the error page of the runtime', () => {
  test.each([
    ['serve', served.port, paths],
    ['dev', dev.port, [...paths, ...below]],
  ])('H-57 %s', async (_, port, all) => {
    expect(all.length).toBeGreaterThan(80)
    const token = { authorization: `Bearer ${dev.control_token}` }
    const bad: unknown[] = []
    for (const path of all)
      for (const method of methods)
        for (const init of kinds(method)) {
          const headers = { ...(path.startsWith('/dev/') && token), ...init.headers }
          const { status, body } = await ask(port, method, path, { ...init, headers })
          if (status >= 500 || LEAK.test(body) || body.includes(process.cwd()))
            bad.push([method, path, init, status, body.slice(0, 200)])
        }
    expect(bad).toEqual([])
  })
})

test('H-57 the preflight of a browser client is the same with and without development mode', async () => {
  await create(app, '/clients', { ...web, name: 'Web' })
  const headers = { origin: 'http://127.0.0.1:4711', 'access-control-request-method': 'POST' }
  const preflight = async (port: number) => {
    const { status, body, headers: said } = await ask(port, 'OPTIONS', '/oauth/token', { headers })
    return [status, body, said.get('access-control-allow-origin'), said.get('access-control-allow-methods')]
  }
  const expected = [204, '', '*', 'POST']
  expect(await preflight(served.port)).toEqual(expected)
  expect(await preflight(dev.port)).toEqual(expected)
})

const form = 'application/x-www-form-urlencoded'
test.each([
  ['GET', '/oauth/logout?id_token_hint=a&id_token_hint=b', undefined, '', 400, 'A parameter is sent twice.'],
  ['POST', '/oauth/logout', 'application/json', '{}', 415, `The content type must be ${form}.`],
  ['POST', '/oauth/authorize', 'text/plain', 'client_id=web', 415, `The content type must be ${form}.`],
  ['POST', '/oauth/login', form, 'request=%E0%A4%A', 400, 'A parameter is malformed.'],
])('the log has the reason for the request id of a page: %s %s, %s', async (...request) => {
  const [method, path, type, body, status, reason] = request
  const own = await startApp({}, { log })
  const headers = { accept: 'text/html', ...(type && { 'content-type': type }) }
  const call = () => own.call(path, { method, headers, ...(method === 'POST' && { body }) })
  const before = await own.events()
  const answer = await call()
  const request_id = answer.headers.get('x-request-id')
  expect([answer.status, (await answer.text()).includes(String(request_id))]).toEqual([status, true])
  const refused = () => lines.filter(({ event }) => event === 'page_refused')
  expect(refused().filter(line => line.request_id === request_id)).toMatchObject([{ level: 40, reason }])
  expect(await own.events()).toEqual(before)
  // Strangers cannot fill the disk.
  const logged = refused().length
  for (let i = 0; i < 100; i++) await call()
  expect(refused().length - logged).toBeLessThan(70)
})

describe('H-57 a handler that throws', () => {
  const fails = () => {
    throw new Error('a secret cause')
  }
  const rejects = async () => fails()

  const isOwn = ({ status, body, headers }: Awaited<ReturnType<typeof ask>>) => {
    const { error, request_id } = JSON.parse(body)
    expect([status, error, headers.get('content-type')]).toEqual([
      500,
      'server_error',
      'application/json; charset=utf-8',
    ])
    expect(body).not.toContain('secret')
    const causes = lines.filter(line => line.request_id === request_id && line.level === 50)
    expect(causes.map(({ err }) => err.message)).toEqual(['a secret cause'])
  }

  test.each([
    ['throws', fails],
    ['rejects', rejects],
  ])('H-57 serve: %s, at once and after the handler was changed', async (_, handler) => {
    const { config } = app.context
    const listener = listen({ ...config, port: 0 }, log, handler)
    isOwn(await ask(listener.port, 'GET', '/'))
    listener.answer(() => new Response('well'))
    expect((await ask(listener.port, 'GET', '/')).body).toBe('well')
    listener.answer(handler)
    isOwn(await ask(listener.port, 'GET', '/'))
    await listener.stop()
  })

  test('H-57 dev: outside and below /dev/', async () => {
    const answer = developmentOf(app.context, fails)
    const listener = listen({ ...app.context.config, port: 0 }, log, answer)
    isOwn(await ask(listener.port, 'GET', '/oauth/token'))
    const { read } = app.context.store
    Object.assign(app.context.store, { read: rejects })
    try {
      isOwn(
        await ask(listener.port, 'GET', '/dev/users', { headers: { authorization: 'Bearer control-token' } }),
      )
    } finally {
      Object.assign(app.context.store, { read })
      await listener.stop()
    }
  })
})
