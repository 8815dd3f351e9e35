import { afterAll, describe, expect, test } from 'bun:test'
import { hash } from 'node:crypto'
import { controls } from '#src/dev/controls.ts'
import { type StartOptions, start } from '#src/testing/start.ts'
import type { Json } from '#test/support/app.ts'
import { unescapeHtml } from '#test/support/browser.ts'
import { CHALLENGE } from '#test/support/people.ts'
import { askRaw } from '#test/support/socket.ts'

const server = await start()
afterAll(() => server.stop())
// Waits for the RSA key, which the server makes in the background. GET /dev/keys lists only keys that exist.
await fetch(`${server.url}/.well-known/jwks.json`)

const bearer = { authorization: `Bearer ${server.control_token}` }

const ask = (line: string, headers: Record<string, string> = {}, body?: BodyInit): Promise<Response> => {
  const [method = '', path = ''] = line.split(' ')
  const init = { method, headers, redirect: 'manual' as const, ...(body !== undefined && { body }) }
  return fetch(server.url + path, init)
}

const authorization = (redirect_uri: string, response_mode: string): URLSearchParams =>
  new URLSearchParams({ client_id: 'any', redirect_uri, response_mode, state: 'xyz', scope: 'openid' })

const decide = (request: URLSearchParams, decision = 'approve', headers: Record<string, string> = {}) =>
  ask(
    'POST /dev/openid/authorize',
    headers,
    new URLSearchParams({ request: String(request), sub: 'robin', decision }),
  )

/** Returns an AuthnRequest with this `acs_url`, encoded for the redirect binding. */
const authnRequest = (acs_url: string): string => {
  const xml = `<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_1" AssertionConsumerServiceURL="${acs_url}"><saml:Issuer>sp</saml:Issuer></samlp:AuthnRequest>`
  return Buffer.from(Bun.deflateSync(Buffer.from(xml))).toString('base64')
}
const sso = (acs_url: string) => new URLSearchParams({ SAMLRequest: authnRequest(acs_url) })

describe('no page of another origin runs script in the origin of development mode', () => {
  const schemes = [
    'javascript:alert(1)',
    ' javascript:alert(1)',
    'data:text/html,x',
    'file:///x',
    'com.app:/x',
    '',
  ]
  test.each(schemes)('H-49 the fake providers refuse %p as redirect URI', async uri => {
    for (const mode of ['form_post', 'query']) {
      const request = authorization(uri, mode)
      const answers = [
        await ask(`GET /dev/openid/authorize?${request}`),
        await decide(request),
        await decide(request, 'deny'),
      ]
      for (const answer of answers)
        expect([answer.status, await answer.text()]).toEqual([
          400,
          'redirect_uri must be an http or https URL.',
        ])
    }
    expect((await ask(`GET /dev/saml/sso?${sso(uri)}`)).status).toBe(400)
    expect((await ask('POST /dev/saml/sso', {}, sso(uri))).status).toBe(400)
  })

  test('H-49 http and https are accepted in both response modes', async () => {
    const query = await decide(authorization('https://rp.example/cb?a=1', 'query'))
    expect(query.headers.get('location')).toStartWith('https://rp.example/cb?a=1&code=')
    const posting = await decide(authorization('http://rp.example/cb', 'form_post'))
    expect(await posting.text()).toContain('<form method="post" action="http://rp.example/cb">')
  })

  test('H-49 every answer below /dev/ has a policy without scripts, except the page that posts the form', async () => {
    const request = authorization('http://127.0.0.1/cb', 'form_post')
    const pages = [
      await ask(`GET /dev/openid/authorize?${request}`),
      await decide(request),
      await ask(`GET /dev/saml/sso?${sso('http://127.0.0.1/acs')}`),
      await ask('POST /dev/saml/sso', {}, sso('http://127.0.0.1/acs')),
    ]
    for (const page of pages) {
      const policy = page.headers.get('content-security-policy') ?? ''
      const html = await page.text()
      expect(page.status).toBe(200)
      expect(policy).toMatch(/^default-src 'none';.* base-uri 'none'; frame-ancestors 'none'$/)
      expect(policy).not.toContain('unsafe')
      for (const [, kind, text = ''] of html.matchAll(/<(script|style)>([^<]*)</g))
        expect(policy).toContain(`${kind}-src 'sha256-${hash('sha256', text, 'base64')}'`)
    }
    const lines = [
      ...Object.keys(controls).filter(line => line.startsWith('GET ')),
      'GET /dev/pick',
      'GET /dev/nowhere',
      'GET /dev/',
      'GET /dev/openid/jwks',
      'GET /dev/openid/.well-known/openid-configuration',
      'GET /dev/openid/nowhere',
      'GET /dev/openid/userinfo',
      'GET /dev/saml/metadata',
      'GET /dev/saml/nowhere',
      'OPTIONS /dev/users',
    ]
    for (const headers of [bearer, {}])
      for (const line of lines) {
        const answer = await ask(line, headers)
        expect(answer.headers.get('content-security-policy')).toStartWith("default-src 'none'")
        expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
        expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      }
  })

  const stateOf = async (): Promise<Json> =>
    Promise.all(
      ['users', 'clock', 'keys', 'faults', 'events', 'tokens', 'mail'].map(async name => {
        const { now: _, ...rest } = (await (await ask(`GET /dev/${name}`, bearer)).json()) as Json
        return rest
      }),
    )

  const changing = [
    ...Object.keys(controls).filter(line => !line.startsWith('GET ')),
    'POST /dev/openid/authorize',
    'POST /dev/openid/token',
    'POST /dev/saml/sso',
  ]
  const sound: Record<string, Json> = {
    'POST /dev/mint': { user: 'alice' },
    'POST /dev/seed': { users: [{ username: 'eve', email: 'eve@example.com' }] },
    'POST /dev/users': { username: 'eve', email: 'eve@example.com' },
    'POST /dev/mfa': { user: 'alice' },
    'POST /dev/reset': {},
    'POST /dev/clock': { freeze: true },
    'POST /dev/keys': { action: 'publish', alg: 'ES256' },
    'POST /dev/faults': { endpoint: 'token', status: 500 },
  }
  const bodyOf = (line: string) => (line.startsWith('POST ') ? JSON.stringify(sound[line] ?? {}) : undefined)

  test.each(changing)('H-49 %s is refused to a page of another origin, and changes nothing', async line => {
    const before = await stateOf()
    const url = new URL(server.url)
    const asked: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `http://localhost:${Number(url.port) + 1}`, 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of asked) {
      const target = line === 'DELETE /dev/users' ? `${line}?user=alice` : line
      const all = { ...bearer, 'content-type': 'application/json', ...headers }
      const answer = await ask(target, all, bodyOf(line))
      expect([answer.status, ((await answer.json()) as Json).error]).toEqual([403, 'forbidden'])
    }
    expect(await stateOf()).toEqual(before)
  })

  test('H-49 same-origin pages, programs without Origin, and links from other sites to a provider are accepted', async () => {
    const own = { origin: server.url, 'sec-fetch-site': 'same-origin' }
    const alias = { origin: `http://127.0.0.1:${server.port}`, host: `127.0.0.1:${server.port}` }
    for (const headers of [own, alias, {}]) {
      const answer = await decide(authorization('http://127.0.0.1/cb', 'query'), 'approve', headers)
      expect(answer.status).toBe(303)
    }
    const from = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
    const page = await ask(`GET /dev/openid/authorize?${authorization('http://127.0.0.1/cb', 'query')}`, from)
    expect(page.status).toBe(200)
  })

  test('H-49 picking a user with the right token is refused to a page of another origin', async () => {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: 'dev-web',
      redirect_uri: 'http://127.0.0.1:4711/callback',
      scope: 'openid',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
    })
    const picker = await ask(`GET /oauth/authorize?${query}`)
    const cookie = picker.headers
      .getSetCookie()
      .map(line => line.split(';')[0])
      .join('; ')
    const link = /data-testid="user-admin" href="([^"]*)"/.exec(await picker.text())?.[1] ?? ''
    const pick = `GET ${unescapeHtml(link)}`
    expect((await ask(pick, { cookie, origin: 'https://evil.example' })).status).toBe(403)
    expect((await ask(pick, { cookie })).headers.get('location')).toContain('/callback?code=')
  })
})

describe('development mode answers to known hosts only', () => {
  const statusAt = async (port: number, host: string): Promise<(number | undefined)[]> =>
    Promise.all(
      ['GET /healthz', 'POST /oauth/token', 'GET /dev/users', 'GET /.well-known/jwks.json'].map(
        async line =>
          (await askRaw(port, [`${line} HTTP/1.1`, `Host: ${host}`, 'Content-Length: 0']))?.status,
      ),
    )
  const misdirected = [421, 421, 421, 421]
  const answered = [200, 415, 401, 200]
  const started = async <T>(options: StartOptions, use: (port: number) => Promise<T>): Promise<T> => {
    const other = await start(options)
    try {
      return await use(other.port)
    } finally {
      await other.stop()
    }
  }

  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'notlocalhost',
    '192.0.2.1',
    '[2001:db8::1]',
    'gatehouse',
    'localhost@evil.example',
    'a b',
    '%%',
    '',
  ])('H-50 421 for %p', async host => {
    expect(await statusAt(server.port, host)).toEqual(misdirected)
  })

  test.each(['localhost', 'LOCALHOST', 'app.localhost', '127.0.0.1', '127.9.8.7', '[::1]'])(
    'H-50 %p is loopback',
    async host => {
      for (const given of [host, `${host}:${server.port}`, `${host}:1`])
        expect(await statusAt(server.port, given)).toEqual(answered)
    },
  )

  test('H-50 the refusal names the flag and never the host', async () => {
    const answer = await askRaw(server.port, ['GET /dev/users HTTP/1.1', 'Host: evil.example'])
    const { error, error_description } = JSON.parse(answer?.body ?? '')
    expect(error).toBe('misdirected_request')
    expect(error_description).toContain('--dev-host')
    expect(answer?.body).not.toContain('evil')
  })

  test('H-50 its own hosts and those of --dev-host are answered, and no others', async () => {
    const options = {
      url: 'http://id.test:8080',
      public_issuer: true,
      internal_url: 'http://gatehouse:8080',
      dev_hosts: ['App.Test', 'fd00::1'],
    }
    await started(options, async port => {
      for (const host of ['id.test', 'gatehouse:8080', 'app.test', '[fd00::1]:9'])
        expect(await statusAt(port, host)).toEqual(answered)
      for (const host of ['evil.test', 'x.app.test']) expect(await statusAt(port, host)).toEqual(misdirected)
    })
  })

  test('H-50 a server on all addresses answers to IP addresses, which DNS cannot rebind, and to no other name', async () => {
    await started({ host: '0.0.0.0' }, async port => {
      expect(await statusAt(port, '192.0.2.1')).toEqual(answered)
      expect(await statusAt(port, 'evil.example')).toEqual(misdirected)
    })
  })
})
