import { describe, expect, test } from 'bun:test'
import { openLogger } from '#src/lib/log.ts'
import { unavailable } from '#src/storage/errors.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, addUser, authorizeUrl, logInTo } from '#test/support/people.ts'

const lines: Json[] = []
const log = openLogger('info', line => void lines.push(JSON.parse(line)))
const app = await startApp({}, { log })
await addClient(app, 'shop')

test('RUN-19 healthz and readyz report the state; a failing store makes readyz 503', async () => {
  const ask = async (path: string) => {
    const answer = await app.call(path)
    return [answer.status, await answer.json(), answer.headers.get('retry-after')]
  }
  expect(await ask('/healthz')).toEqual([200, { status: 'ok' }, null])
  expect(await ask('/readyz')).toEqual([200, { status: 'ready' }, null])
  const { ready } = app.context.store
  Object.assign(app.context.store, { ready: async () => false })
  expect(await ask('/readyz')).toEqual([503, { status: 'unavailable' }, '1'])
  expect(await ask('/healthz')).toEqual([200, { status: 'ok' }, null])
  Object.assign(app.context.store, { ready })
})

test('the root redirects to the account page', async () => {
  const answer = await app.call('/')
  expect([answer.status, answer.headers.get('location')]).toEqual([303, 'http://localhost:8080/account'])
})

/** Returns the paths of all routes, with `segment` in place of each parameter. */
const pathsWith = (segment: string): string[] =>
  app.paths.map(path => path.replace(/:\w+|\*/g, segment)).sort()

test('H-57 each path is in the section that its pattern chooses', () => {
  expect(app.paths.length).toBeGreaterThan(100)
  expect(app.paths.filter(path => !app.routeOf(path.replace(/:\w+|\*/g, 'x')))).toEqual([])
})

test('H-43 a broken percent escape in a path is 404 on every route', async () => {
  const before = lines.length
  const odd: unknown[] = []
  for (const broken of ['%zz', '%', 'x%2', '%ff', '%e0%a4'])
    for (const path of [...pathsWith(broken), ...app.paths.map(fixed => `${fixed}${broken}`)])
      for (const method of path.includes('%') ? ['GET', 'POST', 'PUT', 'DELETE', 'HEAD'] : []) {
        const { status } = await app.call(path, { method })
        if (status !== 404) odd.push([method, path, status])
      }
  expect(odd).toEqual([])
  expect(lines.slice(before).filter(({ level }) => level >= 50)).toEqual([])
})

test('H-45 every answer of every route has nosniff', async () => {
  const odd: unknown[] = []
  for (const path of [...pathsWith('x'), '/nowhere', '/%zz'])
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS'])
      for (const accept of ['text/html', 'application/json']) {
        const { status, headers } = await app.call(path, { method, headers: { accept } })
        if (headers.get('x-content-type-options') !== 'nosniff') odd.push([method, path, status])
      }
  expect(odd).toEqual([])
  expect((await app.admin('GET', '/users')).headers.get('x-content-type-options')).toBe('nosniff')
  expect((await app.admin('POST', '/roles', {})).headers.get('x-content-type-options')).toBe('nosniff')
})

test('H-42 every answer has HSTS for a year, behind an https proxy and with a certificate, and never on plain http', async () => {
  const policies = async (settings: Parameters<typeof startApp>[0]) => {
    const server = await startApp(settings)
    const asked = ['/healthz', '/oauth/authorize', '/nowhere', '/%zz', '/.well-known/jwks.json', '/account']
    const answers = await Promise.all(asked.map(path => server.call(path)))
    return [...new Set(answers.map(({ headers }) => headers.get('strict-transport-security')))]
  }
  const year = ['max-age=31536000']
  expect(await policies({ url: 'https://id.example.com' })).toEqual(year)
  expect(await policies({ url: 'http://id.example.com', tls_cert: 'cert.pem' })).toEqual(year)
  expect(await policies({ url: 'https://localhost.example.com' })).toEqual(year)
  expect(await policies({ url: 'http://id.example.com' })).toEqual([null])
  // HSTS would apply to all ports of localhost, where other development servers use http.
  expect(await policies({ url: 'https://localhost:8443', tls_cert: 'cert.pem' })).toEqual([null])
})

test('H-57 an error thrown by a route is answered by the server, without its message', async () => {
  const { read } = app.context.store
  const failing = async (error: Error) => {
    Object.assign(app.context.store, { read: async () => Promise.reject(error) })
    const answer = await app.call('/saml/providers?organization_id=nobody')
    Object.assign(app.context.store, { read })
    return [answer.status, ((await answer.json()) as Json).error, answer.headers.get('retry-after')]
  }
  expect(await failing(new Error('a secret cause'))).toEqual([500, 'server_error', null])
  expect(await failing(unavailable(new Error('a secret cause')))).toEqual([
    503,
    'temporarily_unavailable',
    '1',
  ])
})

describe('an unknown path', () => {
  test('is a page for a browser, and JSON with the request id for a program', async () => {
    const accept = 'application/xhtml+xml,text/html;q=0.9,*/*;q=0.8'
    const page = await app.call('/nowhere', { headers: { accept } })
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
    const request_id = page.headers.get('x-request-id') ?? ''
    expect([request_id.length > 0, (await page.text()).includes(request_id)]).toEqual([true, false])
    const json = await app.call('/nowhere')
    expect(json.status).toBe(404)
    expect(await json.json()).toEqual({
      error: 'not_found',
      error_description: 'This path does not exist.',
      status: 404,
      request_id: json.headers.get('x-request-id'),
    })
    const wrong = await app.call('/oauth/token', { headers: { accept: 'text/html' } })
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST, OPTIONS'])
  })
})

describe('API-16 a body over the limit of its route family', async () => {
  const big = (bytes: number) => ({ method: 'POST', body: `{"name":"${'x'.repeat(bytes)}"}` })
  const token = await app.tokenOf('gatehouse-admin', 'test-admin-secret-with-enough-entropy')
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }

  test.each([
    ['announced', (body: string) => body],
    [
      'in chunks',
      (body: string) =>
        new ReadableStream({
          pull: controller => {
            controller.enqueue(Buffer.from(body))
            controller.close()
          },
        }),
    ],
  ])('%s: 413 of the admin API above 1 MiB, and 422 just below', async (_, of) => {
    const ask = async (bytes: number) => {
      const { body } = big(bytes)
      const answer = await app.call('/api/v1/admin/roles', { method: 'POST', headers, body: of(body) })
      return [answer.status, ((await answer.json()) as Json).error]
    }
    expect(await ask(1024 * 1024)).toEqual([413, 'payload_too_large'])
    expect(await ask(1024 * 1024 - 11)).toEqual([422, 'validation_failed'])
  })

  test('is not read before the caller is authorized', async () => {
    const answer = await app.call('/api/v1/admin/roles', big(2 * 1024 * 1024))
    expect(answer.status).toBe(401)
  })
})

describe('O-71 HEAD', () => {
  test('has no effect: no code is issued where a GET would issue one', async () => {
    await addUser(app, 'alice')
    const browser = openBrowser(app)
    await logInTo(browser, 'shop', 'alice')
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const ask = (method: string) => app.call(authorizeUrl('shop'), { method, headers: { cookie } })
    const answer = await ask('HEAD')
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, POST'])
    expect(answer.headers.get('location')).toBeNull()
    expect((await ask('GET')).headers.get('location')).toContain('code=')
  })

  test.each([
    ['/healthz', 'GET, HEAD'],
    ['/.well-known/jwks.json', 'GET, HEAD, OPTIONS'],
    ['/api/v1/admin/users', 'POST, GET, HEAD'],
  ])('is among the methods that %s allows', async (path, allow) => {
    await app.events()
    const answer = await app.call(path, { method: 'PATCH' })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
    expect(await app.events()).toEqual([])
  })
})

test.each(['http://a', 'https://id', 'http://abcd', 'http://a.b.example:1'])(
  'O-67 below the path %s every route is found, and never by the query',
  async origin => {
    const ask = async (path: string) => (await app.fetch(new Request(origin + path))).status
    expect(await ask('/healthz')).toBe(200)
    expect(await ask('/x?y=/healthz')).toBe(404)
    expect(await ask('/.well-known/openid-configuration')).toBe(200)
  },
)

describe('the log', () => {
  test('has one line for each request: id, method, path, status and time, without the query', async () => {
    lines.length = 0
    const answer = await app.call(authorizeUrl('shop', { state: 'a-secret-state' }), {
      headers: { cookie: 'gatehouse_login_8080=a-secret-cookie', authorization: 'Bearer a-secret-token' },
    })
    expect(lines).toEqual([
      {
        level: 30,
        time: expect.anything(),
        event: 'request',
        request_id: answer.headers.get('x-request-id'),
        method: 'GET',
        path: '/oauth/authorize',
        status: 200,
        ms: expect.any(Number),
      },
    ])
  })

  test('has at most 1,024 characters of a path', async () => {
    lines.length = 0
    await app.call(`/${'x'.repeat(1_024)}`)
    expect(lines.map(({ path }) => path)).toEqual([`/${'x'.repeat(1_023)}`])
  })

  test('has the cause of a failure under the request id of the answer', async () => {
    const { read } = app.context.store
    Object.assign(app.context.store, { read: () => Promise.reject(new Error('no such table: users')) })
    lines.length = 0
    const answer = await app.call('/oauth/token', {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'client_credentials', client_id: 'x', client_secret: 'y' }),
    })
    Object.assign(app.context.store, { read })
    const body = (await answer.json()) as Json
    expect([answer.status, body.error]).toEqual([500, 'server_error'])
    expect(JSON.stringify(body)).not.toContain('table')
    const cause = lines.find(line => line.level === 50)
    expect(cause.request_id).toBe(body.request_id)
    expect(JSON.stringify(cause)).toContain('no such table: users')
  })

  test('has the cause once when the answer is a page', async () => {
    const { read } = app.context.store
    Object.assign(app.context.store, { read: () => Promise.reject(new Error('no such table: users')) })
    lines.length = 0
    const answer = await app.call('/saml/providers?organization_id=nobody', {
      headers: { accept: 'text/html' },
    })
    Object.assign(app.context.store, { read })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([500, 'text/html; charset=utf-8'])
    const causes = lines.filter(line => line.level === 50)
    expect(causes.map(({ request_id, err }) => [request_id, err.message])).toEqual([
      [answer.headers.get('x-request-id'), 'no such table: users'],
    ])
  })
})
