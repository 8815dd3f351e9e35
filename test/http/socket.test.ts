import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { SECRET, serveExecutable } from '#test/support/executable.ts'
import { askRaw, openSocket } from '#test/support/socket.ts'

// Timeout in ms: each test starts a process, and the machine may be busy.
setDefaultTimeout(30_000)

const server = await serveExecutable()
afterAll(() => server[Symbol.asyncDispose]())

const FORM = 'Content-Type: application/x-www-form-urlencoded'
const post = (path: string, body: string) =>
  askRaw(server.port, [`POST ${path} HTTP/1.1`, FORM, `Content-Length: ${Buffer.byteLength(body)}`], body)

const credentials = `grant_type=client_credentials&client_id=gatehouse-admin&client_secret=${SECRET}`
const isWell = async () => expect((await post('/oauth/token', credentials))?.status).toBe(200)

const residentBytes = () =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1]) * 1024

describe('O-71 an unknown route is 404 or 405, in every spelling', () => {
  test.each([
    ['TRACE /', 405],
    ['TRACE /oauth/authorize', 405],
    ['PATCH /api/v1/admin/users', 405],
    ['OPTIONS /oauth/authorize', 405],
    ['OPTIONS /api/v1/admin/users', 405],
    ['GET /oauth/token', 405],
    ['GET /oauth/./token', 405],
    ['GET /oauth/x/../token', 405],
    ['CONNECT localhost:80', 404],
    ['GET /oauth/token/', 404],
    ['GET //oauth/token', 404],
    ['POST /OAUTH/token', 404],
    ['GET /%2foauth/authorize', 404],
    ['GET /oauth%2fauthorize', 404],
    ['GET /%6fauth/authorize', 404],
    ['GET /oauth/authorize;x=1', 404],
    ['GET /api/v1/admin/users/', 404],
    ['GET /API/v1/admin/users', 404],
    ['GET /api/v1/admin/x%2f..%2fusers', 404],
    ['GET /healthz#x', 404],
    ['GET /assets/%2e%2e/healthz/x', 404],
    ['OPTIONS *', 400],
    ['GET healthz', 400],
    ['GET %2foauth/authorize', 400],
  ])('%s', async (line, status) => {
    const answer = await askRaw(server.port, [`${line} HTTP/1.1`, 'Content-Length: 0'])
    expect(answer?.status).toBe(status)
    if (status === 405) expect(answer?.headers.get('allow')).toMatch(/^[A-Z]+(, [A-Z]+)*$/)
    if (status !== 400) expect(answer?.headers.get('x-request-id')).toBeString()
  })

  test('dots do not bypass the guard', async () => {
    for (const path of ['/assets/../api/v1/admin/users', '/healthz/../api/v1/admin/users'])
      expect((await askRaw(server.port, [`GET ${path} HTTP/1.1`]))?.status).toBe(401)
  })
})

describe('O-71 HEAD', () => {
  test.each([['/healthz'], ['/.well-known/jwks.json'], ['/.well-known/openid-configuration']])(
    '%s is GET without its body',
    async path => {
      const answer = await askRaw(server.port, [`HEAD ${path} HTTP/1.1`])
      expect(answer).toMatchObject({ status: 200, body: '' })
    },
  )
  test.each([
    ['/oauth/authorize'],
    ['/assets/../oauth/authorize'],
    ['/api/v1/../../oauth/authorize'],
    ['/oauth/logout'],
    ['/oauth/userinfo'],
    ['/account'],
    ['/account/sign-in'],
  ])('%s is refused: the GET may have an effect', async path => {
    const answer = await askRaw(server.port, [`HEAD ${path} HTTP/1.1`])
    expect(answer).toMatchObject({ status: 405, body: '' })
  })
})

describe('O-67 a Host header', () => {
  test.each([
    ['evil.example'],
    ['a'],
    ['id'],
    [''],
    ['a b'],
    ['[::1'],
    ['x:99999'],
    ['user@evil.example'],
    ['%'],
    ['localhost/b?c#d'],
    ['x'.repeat(9000)],
  ])('%j changes neither the route nor the answer', async host => {
    const more = [
      `Host: ${host}`,
      'X-Forwarded-Host: evil.example',
      'Forwarded: host=evil.example;proto=https',
    ]
    const answer = await askRaw(server.port, ['GET /.well-known/openid-configuration HTTP/1.1', ...more])
    expect(answer?.status).toBe(200)
    expect(JSON.parse(answer?.body ?? '').issuer).toBe(server.url)
    expect(answer?.body).not.toContain('evil')
    expect((await askRaw(server.port, ['HEAD /healthz HTTP/1.1', ...more]))?.status).toBe(200)
    const elsewhere = await askRaw(server.port, ['GET /x?y=/healthz HTTP/1.1', ...more])
    expect(elsewhere?.status).toBe(404)
    const page = await askRaw(server.port, ['GET /oauth/login?request=x HTTP/1.1', ...more])
    expect(page).toMatchObject({ status: 400, body: expect.not.stringContaining('evil') })
  })

  test('may be absent in HTTP/1.0', async () => {
    const answer = await askRaw(server.port, ['GET /.well-known/openid-configuration HTTP/1.0'])
    expect(JSON.parse(answer?.body ?? '').issuer).toBe(server.url)
  })
})

describe('O-57 too much input', () => {
  test('in query, headers or body is refused at once, and memory stays flat', async () => {
    await isWell()
    const before = residentBytes()
    for (let round = 0; round < 20; round++) {
      const long = 'a'.repeat(64 * 1024)
      expect((await askRaw(server.port, [`GET /oauth/authorize?state=${long} HTTP/1.1`]))?.status).toBe(431)
      expect((await askRaw(server.port, ['GET /healthz HTTP/1.1', `Cookie: x=${long}`]))?.status).toBe(431)
      const many = Array.from({ length: 1000 }, (_, i) => `X-${i}: 1`)
      expect((await askRaw(server.port, ['GET /healthz HTTP/1.1', ...many]))?.status).toBe(431)
      const token = await post('/oauth/token', `a=${'x'.repeat(1024 * 1024)}`)
      expect(token?.status).toBe(413)
      expect(JSON.parse(token?.body ?? '')).toMatchObject({ error: 'payload_too_large', status: 413 })
      expect((await post('/oauth/login', `a=${'x'.repeat(1024 * 1024)}`))?.status).toBe(413)
      expect((await post('/oauth/token', `a=${'x'.repeat(8 * 1024 * 1024)}`))?.status).toBe(413)
      expect((await post('/oauth/token', '&'.repeat(60_000)))?.status).toBe(400)
    }
    expect(residentBytes() - before).toBeLessThan(64 * 1024 * 1024)
    await isWell()
  })

  test('in endless chunks is refused once over the limit', async () => {
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const answer = await askRaw(
      server.port,
      ['POST /oauth/token HTTP/1.1', FORM, 'Transfer-Encoding: chunked'],
      chunk.repeat(3),
    )
    expect(answer?.status).toBe(413)
  })

  test('as endlessly nested JSON is 422, not a crash', async () => {
    const user = {
      username: 'deep',
      email: 'deep@example.com',
      first_name: '',
      last_name: '',
      password: 'Aa1!aaaa',
    }
    const { status: fine } = await server.admin('POST', '/users', user)
    expect(fine).toBe(201)
    const token = JSON.parse((await post('/oauth/token', credentials))?.body ?? '').access_token
    const ask = async (body: string) =>
      (
        await askRaw(
          server.port,
          [
            'POST /api/v1/admin/users HTTP/1.1',
            'Content-Type: application/json',
            `Authorization: Bearer ${token}`,
            `Content-Length: ${body.length}`,
          ],
          body,
        )
      )?.status
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
    const withAttributes = (attributes: string) =>
      JSON.stringify({ ...user, username: 'deeper', email: 'deeper@example.com' }).replace(
        /\}$/,
        `,"attributes":${attributes}}`,
      )
    expect(await ask(withAttributes(nested(17)))).toBe(422)
    expect(await ask(withAttributes(nested(100_000)))).toBeOneOf([400, 422])
    expect(await ask('['.repeat(500_000))).toBe(400)
    expect((await server.admin('GET', '/users?search=deeper')).body.pagination.total).toBe(0)
  })

  test('five hundred requests that never end delay nobody else', async () => {
    const sockets = await Promise.all(Array.from({ length: 500 }, () => openSocket(server.port)))
    for (const [i, socket] of sockets.entries())
      socket.write(
        i % 2 === 0
          ? 'GET /oauth/authorize?x='
          : `POST /oauth/token HTTP/1.1\r\nHost: x\r\n${FORM}\r\nContent-Length: 90\r\n\r\ngrant_type=`,
      )
    for (let i = 0; i < 20; i++) await isWell()
    for (const socket of sockets) socket.destroy()
    await isWell()
  })
})

describe('bytes that are not a request', () => {
  test.each([
    ['a method nobody knows', ['FOO / HTTP/1.1'], ''],
    ['two lengths', ['POST /oauth/token HTTP/1.1', 'Content-Length: 5', 'Content-Length: 6'], 'hello'],
    ['a negative length', ['POST /oauth/token HTTP/1.1', 'Content-Length: -5'], 'hello'],
    [
      'a length beside chunks',
      ['POST /oauth/token HTTP/1.1', FORM, 'Content-Length: 5', 'Transfer-Encoding: chunked'],
      '0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
    ],
  ])('%s: refused or closed, and nothing after it is answered', async (_, lines, body) => {
    const answer = await askRaw(server.port, lines, body)
    expect(answer?.status ?? 400).toBe(400)
    expect(answer?.body ?? '').toBe('')
    await isWell()
  })
})
