/** Tests development mode on a server that other machines can reach. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '#src/config.ts'
import { DEV_ADMIN_SECRET, DEV_PASSWORD, DEV_SECRET } from '#src/dev/default-seed.ts'
import { type StartOptions, start } from '#src/testing/start.ts'
import { adminAt } from '#test/support/admin-calls.ts'
import { CHALLENGE } from '#test/support/people.ts'

const folder = mkdtempSync(join(tmpdir(), 'exposed-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const started = async (options: StartOptions) => {
  const server = await start(options)
  const at = (path: string) => `http://127.0.0.1:${server.port}${path}`
  const tokenWith = (client_id: string, client_secret: string) =>
    fetch(at('/oauth/token'), {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret }),
    })
  return { ...server, at, tokenWith, [Symbol.asyncDispose]: () => server.stop() }
}

const authorize = `/oauth/authorize?${new URLSearchParams({
  response_type: 'code',
  client_id: 'dev-web',
  redirect_uri: 'http://127.0.0.1:4711/callback',
  scope: 'openid',
  code_challenge: CHALLENGE,
  code_challenge_method: 'S256',
})}`

/** Opens the login page at a server, as a browser does. */
const openLogin = async (at: (path: string) => string, origin = new URL(at('/')).origin) => {
  const away = await fetch(at(authorize), { redirect: 'manual' })
  const jar = away.headers.getSetCookie().map(line => line.split(';')[0])
  const page = await fetch(new URL(away.headers.get('location') ?? authorize, at('/')), {
    headers: { cookie: jar.join('; ') },
  })
  const cookie = [...jar, ...page.headers.getSetCookie().map(line => line.split(';')[0])].join('; ')
  const html = await page.text()
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? ''
  const [request, csrf_token] = [field('request'), field('csrf_token')]
  const logIn = (password: string) =>
    fetch(at('/oauth/login'), {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie, origin },
      body: new URLSearchParams({ request, csrf_token, username: 'alice', password }),
    })
  return { html, cookie, request, csrf_token, logIn }
}

const exposed: Record<string, StartOptions> = {
  'that listens on all addresses': { host: '0.0.0.0' },
  'whose issuer is another host': { url: 'http://id.test', public_issuer: true },
  'that answers to another name': { dev_hosts: ['app.test'] },
  'that answers to a name that begins like a loopback address': { dev_hosts: ['127.app.test'] },
}

describe.each(Object.entries(exposed))('RUN-54 a server %s', (_, options) => {
  test('RUN-54 has random secrets and passwords, and no user picker', async () => {
    await using server = await started(options)
    const { at, tokenWith, credentials, client_secret } = server
    expect((await tokenWith('dev-service', DEV_SECRET)).status).toBe(401)
    expect((await tokenWith('dev-service', client_secret ?? '')).status).toBe(200)
    expect((await tokenWith('gatehouse-admin', DEV_ADMIN_SECRET)).status).toBe(401)
    expect((await tokenWith('gatehouse-admin', credentials.admin_client_secret)).status).toBe(200)
    const { html, cookie, request, csrf_token, logIn } = await openLogin(at, server.url)
    expect(html).toContain('name="password"')
    expect(html).not.toContain('user-picker')
    const user = 'usr_0190ad31-4000-7000-8000-000000000002'
    const picked = await fetch(at(`/dev/pick?${new URLSearchParams({ request, csrf_token, user })}`), {
      headers: { cookie },
      redirect: 'manual',
    })
    expect([picked.status, picked.headers.getSetCookie()]).toEqual([401, []])
    expect((await logIn(DEV_PASSWORD)).status).not.toBe(302)
    const answer = await logIn(credentials.password)
    expect(answer.headers.get('location')).toStartWith('http://127.0.0.1:4711/callback?code=')
  })

  test('RUN-54 shows nothing below /dev/ without the control token', async () => {
    await using server = await started(options)
    const { at, control_token, credentials } = server
    const page = { accept: 'text/html' }
    for (const path of ['', 'mailbox', 'log', 'tools', 'openid/authorize?client_id=a', 'saml/sso']) {
      const html = await (await fetch(at(`/dev/${path}`), { headers: page })).text()
      expect([path, html]).toEqual([path, expect.stringContaining('name="token"')])
      expect(html).not.toContain(credentials.password)
    }
    const closed = [
      'openid/.well-known/openid-configuration',
      'openid/jwks',
      'saml/metadata',
      'users',
      'clock',
    ]
    for (const path of closed) expect([path, (await fetch(at(`/dev/${path}`))).status]).toEqual([path, 401])
    const posted = await fetch(at('/dev/openid/authorize'), { method: 'POST', body: 'sub=ada' })
    expect(posted.status).toBe(401)
    const signedIn = await fetch(at('/dev/sign-in'), {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: new URL(at('/')).origin },
      body: new URLSearchParams({ token: control_token }),
    })
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    expect(await (await fetch(at('/dev/'), { headers: { cookie } })).text()).toContain(credentials.password)
    expect((await fetch(at('/dev/saml/metadata'), { headers: { cookie } })).status).toBe(200)
  })
})

test('RUN-54 an exposed server reads its own fake provider', async () => {
  await using server = await started({ host: '0.0.0.0' })
  const made = await adminAt(server.url, server.credentials.admin_client_secret)(
    'POST',
    '/identity-providers',
    {
      type: 'oidc',
      alias: 'fake',
      name: 'Fake provider',
      issuer: `${server.url}/dev/openid`,
      client_id: 'any',
    },
  )
  expect(made.status).toBe(201)
  const away = await fetch(server.at('/oauth/social/fake'), { redirect: 'manual' })
  expect(away.headers.get('location')).toStartWith(`${server.url}/dev/openid/authorize?`)
})

test('RUN-54 an exposed server calls no other port of this machine', async () => {
  let asked = 0
  using local = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ asked: ++asked }) })
  const allows = async (options: StartOptions) => {
    await using server = await started(options)
    const admin = adminAt(server.url, server.credentials.admin_client_secret)
    const issuer = `http://127.0.0.1:${local.port}`
    const provider = { type: 'oidc', alias: 'local', name: 'Local', issuer, client_id: 'any' }
    await admin('POST', '/identity-providers', provider)
    await fetch(server.at('/oauth/social/local'), { redirect: 'manual' })
    return asked
  }
  expect(await allows({ host: '0.0.0.0' })).toBe(0)
  expect(await allows({})).toBeGreaterThan(0)
})

test('RUN-54 names and addresses of this machine keep the documented credentials and the picker', async () => {
  await using server = await started({
    host: '::1',
    dev_hosts: ['localhost', 'App.localhost', '127.0.0.2', '127.1'],
  })
  expect(server.credentials.password).toBe(DEV_PASSWORD)
  expect(server.client_secret).toBe(DEV_SECRET)
  const { html } = await openLogin(path => `http://localhost:${server.port}${path}`)
  expect(html).toContain('user-picker')
})

test('RUN-54 a login without a password is refused', async () => {
  await expect(start({ host: '0.0.0.0', auto_login: true })).rejects.toThrow(ConfigError)
})

test('RUN-54 secrets of an own seed stay, and a given secret of the admin client is used', async () => {
  const own = { client_id: 'own', type: 'confidential', client_secret: 'a-secret-of-its-own' } as const
  const options = {
    host: '0.0.0.0',
    seed: { clients: [{ ...own, grant_types: ['client_credentials' as const], scopes: ['read'] }] },
    config: { admin_client_secret: 'given-by-the-environment' },
  }
  await using server = await started(options)
  for (const [client_id, secret] of [
    ['own', own.client_secret],
    ['gatehouse-admin', 'given-by-the-environment'],
  ] as const)
    expect((await server.tokenWith(client_id, secret)).status).toBe(200)
})

test('RUN-54 a kept directory keeps its credentials, and is not exposed when they are the documented ones', async () => {
  const kept = { data_dir: join(folder, 'kept') }
  const credentials = []
  for (const host of ['0.0.0.0', '0.0.0.0', '127.0.0.1']) {
    await using server = await started({ ...kept, host })
    credentials.push(server.credentials)
    expect((await server.tokenWith('dev-service', server.client_secret ?? '')).status).toBe(200)
    const { admin_client_secret } = server.credentials
    expect((await server.tokenWith('gatehouse-admin', admin_client_secret)).status).toBe(200)
  }
  expect(credentials[1]).toEqual(credentials[0] as never)
  expect(credentials[2]).toEqual(credentials[0] as never)

  const local = { data_dir: join(folder, 'local') }
  await (await start(local)).stop()
  await expect(start({ ...local, host: '0.0.0.0' })).rejects.toThrow('its passwords are public')
})
