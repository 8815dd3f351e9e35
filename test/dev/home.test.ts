import { afterAll, describe, expect, test } from 'bun:test'
import type { Server } from 'bun'
import { devClock } from '#src/dev/clock.ts'
import { development } from '#src/dev/development.ts'
import { captureMail } from '#src/mail/captured.ts'
import { start } from '#src/testing/start.ts'
import { startApp } from '#test/support/app.ts'
import { unescapeHtml } from '#test/support/browser.ts'
import { addUser } from '#test/support/people.ts'

const server = await start({
  seed: {
    users: [{ username: 'eve', email: 'eve@example.com', first_name: '<b>Eve</b>', last_name: '"&' }],
    clients: [
      {
        client_id: 'web',
        name: 'Web',
        type: 'confidential',
        client_secret: 'public-secret',
        redirect_uris: ['http://127.0.0.1/dev/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
        scopes: ['openid', 'email'],
        consent_required: false,
      },
      {
        client_id: 'elsewhere',
        name: 'Elsewhere',
        type: 'public',
        redirect_uris: ['https://rp.example/cb'],
        grant_types: ['authorization_code'],
        scopes: ['openid'],
      },
    ],
  },
})
afterAll(() => server.stop())

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(new URL(path, server.url), { redirect: 'manual', headers })

const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(server.url + path, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: server.url, ...headers },
    body: new URLSearchParams(fields),
  })

const controls = (path: string, init: RequestInit = {}) =>
  fetch(server.url + path, { ...init, headers: { authorization: `Bearer ${server.control_token}` } })

const listed = async (path: string) => (await (await controls(path)).json()) as Record<string, unknown>

/** Follows a login from the user picker to the callback page, and keeps the cookies. */
const signIn = async (client_id: string): Promise<Response> => {
  const cookies = new Map<string, string>()
  const visit = async (path: string) => {
    const answer = await get(path, { cookie: [...cookies].map(pair => pair.join('=')).join('; ') })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    return answer
  }
  const begun = await visit(`/dev/try?client_id=${client_id}`)
  const picker = await (await visit(begun.headers.get('location') ?? '')).text()
  const link = /data-testid="user-eve" href="([^"]*)"/.exec(picker)?.[1] ?? ''
  const picked = await visit(unescapeHtml(link))
  return visit(picked.headers.get('location') ?? '')
}

describe('the pages of development mode', () => {
  test('RUN-18 list the endpoints, users and clients; names are shown as text', async () => {
    const answer = await get('/dev/')
    const html = await answer.text()
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(html).toContain(`<code>${server.url}/.well-known/openid-configuration</code>`)
    expect(html).toContain('&lt;b&gt;Eve&lt;/b&gt; &quot;&amp;')
    expect(html).not.toContain('<b>Eve')
    expect(html).toContain('<code>public-secret</code>')
    expect(html).toContain('<code>dev-admin-secret</code>')
    expect([...html.matchAll(/data-testid="(try-[^"]*)"/g)].map(([, id]) => id)).toEqual(['try-web'])
  })

  test('RUN-18 a test login shows its tokens decoded, and each can be refreshed', async () => {
    const answer = await signIn('web')
    const html = await answer.text()
    expect(answer.status).toBe(200)
    expect(html).toContain('<h1>Signed in</h1>')
    for (const title of ['Access token', 'ID token', 'Refresh token', 'Userinfo'])
      expect(html).toContain(`<h2>${title}</h2>`)
    expect(html).toContain('&quot;aud&quot;: &quot;web&quot;')
    const fields = Object.fromEntries(
      [...html.matchAll(/name="([a-z_]+)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [
        name,
        value,
      ]),
    )
    expect(Object.keys(fields)).toEqual(['client_id', 'client_secret', 'refresh_token'])
    const refreshed = await (await post('/dev/callback', fields)).text()
    expect(refreshed).toContain('<h1>Signed in</h1>')
    const again = await post('/dev/callback', fields)
    expect([again.status, await again.text()]).toEqual([400, expect.stringContaining('invalid_grant')])
  })

  test('RUN-18 a redirect that the page did not start asks for the verifier; an error is shown', async () => {
    const code = await get('/dev/callback?code=%3Cscript%3E&state=unknown')
    const html = await code.text()
    expect(code.status).toBe(200)
    expect(html).toContain('name="code_verifier"')
    expect(html).toContain('value="&lt;script&gt;"')
    const error = await get('/dev/callback?error=access_denied&error_description=%3Cb%3E')
    expect(error.status).toBe(400)
    expect(await error.text()).toContain('&lt;b&gt;')
  })

  test('RUN-18 a client without the page’s redirect URI gets the advice to register it', async () => {
    for (const client_id of ['elsewhere', 'unknown']) {
      const answer = await get(`/dev/try?client_id=${client_id}`)
      expect([answer.status, await answer.text()]).toEqual([
        400,
        expect.stringContaining('/dev/callback</code>'),
      ])
    }
  })

  test('RUN-18 the forms set clock, faults and records, and nothing else', async () => {
    const users = await listed('/dev/users')
    const frozen = await post('/dev/', { action: 'freeze' })
    expect([frozen.status, frozen.headers.get('location')]).toEqual([303, '/dev/tools'])
    const { now } = await listed('/dev/clock')
    await post('/dev/', { action: 'advance', ms: '3600000' })
    const later = await listed('/dev/clock')
    expect(Date.parse(String(later.now)) - Date.parse(String(now))).toBe(3_600_000)
    await post('/dev/', { action: 'advance', ms: '9007199254740991' })
    expect(await listed('/dev/clock')).toEqual(later)
    const last = '9999-12-20T00:00:00.000Z'
    await fetch(`${server.url}/dev/clock`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.control_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ set: last }),
    })
    expect((await post('/dev/', { action: 'advance', ms: '2592000000' })).status).toBe(422)
    expect((await listed('/dev/clock')).now).toBe(last)
    await post('/dev/', { action: 'reset_clock' })
    expect((await listed('/dev/clock')).frozen).toBe(false)

    await post('/dev/', { action: 'fault', endpoint: 'userinfo', fault: '503', times: '2' })
    const faults = [{ endpoint: 'userinfo', status: 503, times: 2 }]
    expect(await listed('/dev/faults')).toEqual({ faults })
    for (const bad of [{ times: '0' }, { fault: 'explode' }, { endpoint: 'nowhere' }])
      await post('/dev/', { action: 'fault', endpoint: 'token', fault: '500', times: '1', ...bad })
    expect(await listed('/dev/faults')).toEqual({ faults })
    expect(await (await get('/dev/tools')).text()).toContain('{&quot;status&quot;:503}')
    await post('/dev/', { action: 'clear_faults' })
    expect(await listed('/dev/faults')).toEqual({ faults: [] })

    await get('/oauth/authorize')
    expect(await (await get('/dev/log')).text()).toContain('<code>GET /oauth/authorize</code>')
    await post('/dev/', { action: 'clear_requests' })
    expect(await (await get('/dev/log')).text()).toContain('No request yet.')
    expect(await listed('/dev/users')).toEqual(users)
    for (const action of ['', 'toString', 'explode'])
      expect((await post('/dev/', { action })).status).toBe(400)
  })

  test('RUN-18 reset returns to the seed', async () => {
    await post('/dev/', { action: 'reset' })
    const before = await listed('/dev/users')
    const body = JSON.stringify({ username: 'mallory', email: 'mallory@example.com' })
    const headers = { authorization: `Bearer ${server.control_token}`, 'content-type': 'application/json' }
    await fetch(`${server.url}/dev/users`, { method: 'POST', headers, body })
    expect(await (await get('/dev/')).text()).toContain('mallory@example.com')
    await post('/dev/', { action: 'reset' })
    expect(await listed('/dev/users')).toEqual(before)
  })

  test('H-49 a form with another origin or none changes nothing', async () => {
    for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }])
      expect((await post('/dev/', { action: 'freeze' }, headers)).status).toBe(403)
    const body = new URLSearchParams({ action: 'freeze' })
    expect((await fetch(`${server.url}/dev/`, { method: 'POST', body })).status).toBe(403)
    expect((await listed('/dev/clock')).frozen).toBe(false)
  })
})

describe('H-49 on other machines the pages ask for the control token', async () => {
  const mail = captureMail()
  const app = await startApp({}, { mail })
  const alice = await addUser(app, 'alice', { email_verified: true })
  const serve = (remote: boolean) =>
    development(app.context, app.fetch, {
      clock: devClock(),
      mail,
      token: 'control-token',
      client_id: 'web',
      remote,
      exposed: remote,
      password: '',
      dev_hosts: ['id.test'],
    })
  const from = (address: string) =>
    ({ requestIP: () => ({ address, port: 40_000, family: 'IPv4' }) }) as unknown as Server<unknown>
  const ask = (remote: boolean, url: string, address: string, init: RequestInit = {}) =>
    serve(remote)(new Request(url, init), from(address))
  const paths = [
    '',
    'mailbox',
    'mailbox/1',
    'log',
    'webhooks',
    'tools',
    'try?client_id=web',
    'callback?code=x',
  ]

  test('H-49 another machine gets no page unless the controls are open to it', async () => {
    for (const path of paths)
      expect((await ask(false, `http://localhost:8080/dev/${path}`, '192.0.2.1')).status).toBe(404)
  })

  test.each([
    ['another machine', true, 'http://localhost:8080', '192.0.2.1'],
    ['a server whose controls answer other machines', true, 'http://localhost:8080', '127.0.0.1'],
    ['a public host name', false, 'http://id.test', '127.0.0.1'],
  ] as const)('H-49 %s sees only a form for the token', async (_, remote, origin, address) => {
    for (const path of paths) {
      const answer = await ask(remote, `${origin}/dev/${path}`, address)
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('name="token"')])
    }
    const form = (token: string) => ({
      method: 'POST',
      headers: { origin, 'content-type': 'application/x-www-form-urlencoded' },
      body: String(new URLSearchParams({ token })),
    })
    const refused = await ask(remote, `${origin}/dev/sign-in`, address, form('guess'))
    expect([refused.status, refused.headers.get('set-cookie')]).toEqual([403, null])
    const action = { ...form(''), body: 'action=clear_mail' }
    expect(await (await ask(remote, `${origin}/dev/`, address, action)).text()).toContain('name="token"')

    const granted = await ask(remote, `${origin}/dev/sign-in`, address, form('control-token'))
    const [cookie = '', ...flags] = (granted.headers.get('set-cookie') ?? '').split('; ')
    expect([granted.status, flags]).toEqual([303, ['Path=/dev/', 'HttpOnly', 'SameSite=Strict']])
    expect(cookie).not.toContain('control-token')
    const home = await ask(remote, `${origin}/dev/`, address, { headers: { cookie } })
    expect(await home.text()).toContain('alice@example.com')
    const forged = await ask(remote, `${origin}/dev/`, address, { headers: { cookie: 'dev_controls=x' } })
    expect(await forged.text()).not.toContain('alice@example.com')
  })

  test('RUN-18 a browser gets the page of a control, a program its JSON', async () => {
    const pages = { mail: 'mailbox', requests: 'log', tokens: 'log', clock: 'tools', faults: 'tools' }
    for (const [control, page] of Object.entries(pages)) {
      const inBrowser = await get(`/dev/${control}`, { accept: 'text/html' })
      expect([inBrowser.status, inBrowser.headers.get('location')]).toEqual([303, `/dev/${page}`])
      expect((await get(`/dev/${control}`)).status).toBe(401)
    }
  })

  test('RUN-18 the page of webhooks shows each attempt', async () => {
    const page = async () => (await ask(false, 'http://localhost:8080/dev/webhooks', '127.0.0.1')).text()
    expect(await page()).toContain('gatehouse webhooks listen')
    const hook = { name: 'Till <b>', url: 'https://192.0.2.1/hook', events: ['role.created'] }
    expect((await app.admin('POST', '/webhooks', hook)).status).toBe(201)
    await app.admin('POST', '/roles', { name: 'sold', permissions: [] })
    expect(await page()).toMatch(/Till &lt;b&gt;[\s\S]*role\.created[\s\S]*class="bad"/)
  })

  test('RUN-18 the mailbox shows mail as mail programs do: the text with links, and the HTML without scripts', async () => {
    expect((await app.admin('POST', `/users/${alice.id}/send-password-reset`)).status).toBe(204)
    const box = await ask(false, 'http://localhost:8080/dev/mailbox', '127.0.0.1')
    const shown = await box.text()
    expect(shown).toMatch(/<iframe src="\/dev\/mailbox\/1"[\s\S]*<a href="http:\/\/localhost:8080\/[^"]*">/)
    expect(box.headers.get('content-security-policy')).toContain("frame-src 'self'")
    const html = await ask(false, 'http://localhost:8080/dev/mailbox/1', '127.0.0.1')
    expect(html.headers.get('content-security-policy')).toMatch(/^default-src 'none';.* sandbox /)
    for (const number of ['0', '2', 'x', '1/2', '-1'])
      expect((await ask(false, `http://localhost:8080/dev/mailbox/${number}`, '127.0.0.1')).status).toBe(404)
  })
})
