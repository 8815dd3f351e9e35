/** Tests logins at clients that registered themselves. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { purge } from '#src/operations/purge.ts'
import { sweep } from '#src/operations/sweep.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, authorizeUrl, signIn } from '#test/support/people.ts'
import { bearer, claimsOf, get, post, redeem, refresh, secretOf } from '#test/support/tokens.ts'

const TOOLS = 'https://mcp.example/mcp'
const WEB = 'https://agent.example/callback'
const LOCAL = 'http://localhost:3000/callback'

const app = await startApp()
const configure = (settings: Json, organization = 'default') =>
  app.admin('PUT', `/organizations/${organization}`, { settings })
await configure({ client_registration: 'open' })
const alice = await addUser(app, 'alice', { roles: ['admin'] })
await addUser(app, 'bob')
await addClient(app, 'shop', { name: 'Shop' })
const tools = {
  identifier: TOOLS,
  name: 'Tools',
  scopes: [{ name: 'tools.read', texts: { en: 'Read with the tools' }, role: null }],
  open_to_dynamic_clients: true,
}
await create(app, '/apis', tools)
await create(app, '/apis', { ...tools, identifier: 'https://closed.example', open_to_dynamic_clients: false })

let count = 0
const register = async (more: Json = {}) => {
  const answer = await app.call('/oauth/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: `Agent ${++count}`,
      redirect_uris: [WEB],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      ...more,
    }),
    ip: `192.0.2.${count % 250}`,
  })
  return (await answer.json()) as Json
}

const request = (client: Json, more: Record<string, string | undefined> = {}) =>
  authorizeUrl(client.client_id, { redirect_uri: WEB, scope: 'openid tools.read', resource: TOOLS, ...more })

/** Signs in and approves the consent. Returns the browser and the parameters that the client gets. */
const logIn = async (client: Json, more: Record<string, string | undefined> = {}, username = 'alice') => {
  const browser = openBrowser(app)
  const consent = await signIn(browser, await browser.get(request(client, more)), username)
  const answer = await browser.submit(consent, { decision: 'approve' }, '/oauth/consent')
  return { browser, consent, answer: answerOf(answer) }
}
const grant = async (client: Json, more: Record<string, string | undefined> = {}, username?: string) => {
  const { answer } = await logIn(client, more, username)
  return redeem(app, client, answer.code ?? '', { redirect_uri: more.redirect_uri ?? WEB })
}
const isPage = ({ status, location }: { status: number; location?: string | undefined }) => [status, location]

beforeEach(async () => {
  app.clock.advance(HOUR)
  await app.events()
})

describe('DCR-05 what such a client gets', () => {
  test('DCR-05 the scopes of an open API, for that API alone, and the usual scopes', async () => {
    const client = await register()
    const { body } = await grant(client, { scope: 'openid email phone tools.read users:read admin unknown' })
    expect(body).toMatchObject({ scope: 'openid email tools.read', token_type: 'Bearer', expires_in: 900 })
    expect(claimsOf(body.access_token)).toMatchObject({ aud: TOOLS, client_id: client.client_id })
    const next = await refresh(app, client, body.refresh_token)
    expect([next.status, next.body.scope]).toEqual([200, 'openid email tools.read'])
  })

  test('DCR-05 without an API no permission, and nothing at the admin API', async () => {
    const { body } = await grant(await register(), { resource: undefined, scope: 'openid admin users:read' })
    expect(body.scope).toBe('openid')
    const denied = await get(app, '/api/v1/admin/users', { headers: bearer(body.access_token) })
    expect(denied.status).toBe(403)
  })

  test('DCR-05 a closed API, and a request of which no scope is left, are refused on a page', async () => {
    const client = await register()
    for (const more of [
      { resource: 'https://closed.example' },
      { resource: 'https://none.example' },
      { scope: 'admin' },
    ])
      expect(isPage(await openBrowser(app).get(request(client, more)))).toEqual([400, undefined])
  })

  test('DCR-05 an API that closes gives no further token', async () => {
    const { id } = await create(app, '/apis', { ...tools, identifier: 'https://briefly.example' })
    const client = await register()
    const { body } = await grant(client, { resource: 'https://briefly.example' })
    await app.admin('PUT', `/apis/${id}`, { open_to_dynamic_clients: false })
    expect(await refresh(app, client, body.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_target' },
    })
  })
})

describe('DCR-06 people decide, and refusals are pages', () => {
  test('DCR-06 the login page names the host alone, the consent page warns', async () => {
    const client = await register({ client_name: 'Helper' })
    const page = await openBrowser(app).get(request(client))
    expect(page.html).toContain('agent.example')
    expect(page.html).not.toContain('Helper')
    const { consent } = await logIn(client)
    expect(consent.html).toContain('Helper')
    expect(consent.html).toContain('nobody has checked its name. It is reached at agent.example.')
    expect(consent.html).toContain('Read with the tools')
  })

  test('DCR-06 no other page shows the name: sign-out and form_post name the host, too', async () => {
    const client = await register({ client_name: 'Helper' })
    const browser = openBrowser(app)
    const login = await browser.get(request(client, { response_mode: 'form_post' }))
    const consent = await signIn(browser, login, 'bob')
    expect(consent.html).toContain('Helper')
    const posting = await browser.submit(consent, { decision: 'approve' }, '/oauth/consent')
    const leaving = await browser.get(`/oauth/logout?client_id=${client.client_id}`)
    for (const { html } of [posting, leaving]) {
      expect(html).toContain('agent.example')
      expect(html).not.toContain('Helper')
    }
  })

  test('DCR-06 a scheme of its own is no host: the page says that any program can pose as the client', async () => {
    const redirect_uri = 'agent://accounts.example.com/callback'
    const client = await register({ client_name: '', redirect_uris: [WEB, redirect_uri] })
    const browser = openBrowser(app)
    const page = await browser.get(request(client, { redirect_uri }))
    const consent = await signIn(browser, page, 'alice')
    expect(consent.heading).toContain('Allow')
    for (const { html } of [page, consent])
      expect(html.replaceAll(redirect_uri, '')).not.toContain('accounts.example.com')
    expect(consent.html).toContain('any program can pretend to be this application')
    expect(consent.html).toContain('You will be sent to agent:.')
  })

  test('DCR-06 a name that a client of the organization has is not shown', async () => {
    const { consent } = await logIn(await register({ client_name: 'sHOP' }))
    expect(consent.html).not.toContain('sHOP')
    expect(consent.html).toContain('Allow agent.example to use your account?')
  })

  test('DCR-06 consent to a web client is asked once, consent to a client on the device each time', async () => {
    const again = async (client: Json, redirect_uri: string) => {
      const { browser } = await logIn(client, { redirect_uri })
      return (await browser.follow(await browser.get(request(client, { redirect_uri })))).html
    }
    expect(await again(await register(), WEB)).not.toContain('/oauth/consent')
    const html = await again(await register({ redirect_uris: [LOCAL] }), LOCAL)
    expect(html).toContain('/oauth/consent')
    expect(html).toContain('any program can pretend to be this application')
  })

  test('DCR-06 no error is redirected before a person has decided', async () => {
    const client = await register()
    await app.events()
    for (const more of [
      { prompt: 'none' },
      { code_challenge: undefined },
      { response_type: 'token' },
      { redirect_uri: 'https://evil.example/' },
      { organization_id: 'org_unknown', resource: undefined },
    ])
      expect(isPage(await openBrowser(app).get(request(client, more)))).toEqual([400, undefined])
    const browser = openBrowser(app)
    const consent = await signIn(browser, await browser.get(request(client)), 'alice')
    expect(isPage(await browser.get(request(client, { prompt: 'none' })))).toEqual([400, undefined])
    const denied = await browser.submit(consent, { decision: 'deny' }, '/oauth/consent')
    expect(answerOf(denied)).toMatchObject({ error: 'access_denied', iss: app.context.config.url })
    expect(await app.events()).toEqual([])
  })
})

test('DCR-07 any port of the registered loopback host, and a scheme of its own', async () => {
  const client = await register({
    redirect_uris: [LOCAL, 'http://127.0.0.1/callback', 'cursor://anysphere.cursor-mcp/oauth/callback'],
  })
  const statusAt = async (redirect_uri: string) =>
    (await openBrowser(app).get(request(client, { redirect_uri }))).status
  for (const uri of [
    'http://localhost:3118/callback',
    'http://localhost/callback',
    'http://127.0.0.1:9/callback',
    'cursor://anysphere.cursor-mcp/oauth/callback',
  ])
    expect([uri, await statusAt(uri)]).toEqual([uri, 200])
  for (const uri of [
    'http://localhost:3118/other',
    'http://[::1]:3000/callback',
    'http://localhost:0/callback',
    'http://localhost:99999/callback',
    'http://localhost.evil.example:3000/callback',
    'http://localhost:3000@evil.example/callback',
    'https://localhost:3000/callback',
    'cursor://other/oauth/callback',
  ])
    expect([uri, await statusAt(uri)]).toEqual([uri, 400])
  await addClient(app, 'managed', {
    type: 'public',
    token_endpoint_auth_method: 'none',
    redirect_uris: [LOCAL],
  })
  const managed = await openBrowser(app).get(
    authorizeUrl('managed', { redirect_uri: 'http://localhost:3118/callback' }),
  )
  expect(managed.status).toBe(400)
})

describe('DCR-08 the organization of a request', () => {
  test('DCR-08 is that of the API; its policy holds, and no other', async () => {
    const acme = await addOrganization(app, 'acme')
    await addUser(app, 'amy', { organization_id: acme.id })
    const resource = 'https://acme.example/mcp'
    await create(app, '/apis', { ...tools, identifier: resource, organization_id: acme.id })
    const client = await register()
    expect(isPage(await openBrowser(app).get(request(client, { resource })))).toEqual([400, undefined])
    await configure({ client_registration: 'open' }, 'acme')
    await configure({ client_registration: null })
    const { body } = await grant(client, { resource }, 'amy')
    expect(claimsOf(body.access_token)).toMatchObject({ aud: resource, org_id: acme.id.slice(4) })
    expect(isPage(await openBrowser(app).get(request(client)))).toEqual([400, undefined])
    const differs = request(client, { resource, organization_id: 'org_default' })
    expect(isPage(await openBrowser(app).get(differs))).toEqual([400, undefined])
    await configure({ client_registration: 'open' })
  })
})

describe('DCR-09 control', () => {
  const firstUse = (client: Json) => ['client.first_used', client.client_id]

  test('DCR-09 people see and end a dynamic client under Applications; its first use is recorded once', async () => {
    const client = await register({ client_name: 'Seen' })
    await app.events()
    const { browser, answer } = await logIn(client)
    const { body } = await redeem(app, client, answer.code ?? '', { redirect_uri: WEB })
    const events = (await app.events()).map(({ type, target_id }) => [type, target_id])
    expect(events.filter(([type]) => type === 'client.first_used')).toEqual([firstUse(client)])
    const page = await browser.get('/account/applications')
    expect(page.html).toContain('Seen')
    await browser.submit(page, { client_id: client.client_id }, '/account/applications/disconnect')
    expect((await refresh(app, client, body.refresh_token)).body.error).toBe('invalid_grant')
    expect((await app.events()).map(({ type }) => type)).toContain('session.revoked')
  })

  test('DCR-09 turning the policy off ends all its sessions, and keeps those of other clients', async () => {
    const client = await register()
    const { body } = await grant(client)
    const { answer } = await logIn(client, { prompt: 'consent' })
    const browser = openBrowser(app)
    const own = answerOf(await signIn(browser, await browser.get(authorizeUrl('shop')), 'alice'))
    expect(own.code).toBeString()
    await app.events()
    await configure({ client_registration: 'off' })
    const events = await app.events()
    const revoked = events.filter(({ type }) => type === 'session.revoked')
    expect(revoked.length).toBeGreaterThan(0)
    for (const { metadata } of revoked)
      expect(metadata).toMatchObject({
        reason: 'client_kept_out',
        client_id: expect.stringMatching(/^dcr_/),
      })
    expect((await refresh(app, client, body.refresh_token)).body.error).toBe('invalid_grant')
    expect((await redeem(app, client, answer.code ?? '', { redirect_uri: WEB })).body.error).toBe(
      'invalid_grant',
    )
    expect((await get(app, '/oauth/userinfo', { headers: bearer(body.access_token) })).status).toBe(401)
    expect((await browser.get('/account')).status).toBe(200)
    await configure({ client_registration: 'open' })
  })

  test('DCR-09 only a blocked client is refused', async () => {
    const [blocked, other] = [await register(), await register()]
    const [theirs, others] = [(await grant(blocked)).body, (await grant(other)).body]
    const browser = openBrowser(app)
    const consent = await signIn(browser, await browser.get(request(blocked, { prompt: 'consent' })), 'alice')
    await configure({ blocked_clients: [blocked.client_id] })
    const late = await browser.submit(consent, { decision: 'approve' }, '/oauth/consent')
    expect(isPage(late)).toEqual([400, undefined])
    expect((await refresh(app, blocked, theirs.refresh_token)).body.error).toBe('invalid_grant')
    expect((await refresh(app, other, others.refresh_token)).status).toBe(200)
    expect(isPage(await openBrowser(app).get(request(blocked)))).toEqual([400, undefined])
    await configure({ blocked_clients: null })
  })

  test('DCR-09 a block reaches the token of an API that outlives the other tokens of the client', async () => {
    const inspector = await addClient(app, 'inspector', { capabilities: ['token_introspection'] })
    const resource = 'https://long.example/mcp'
    const long = { identifier: resource, access_token_ttl: 86_400, served_by: ['inspector'] }
    await create(app, '/apis', { ...tools, ...long })
    const client = await register({ grant_types: ['authorization_code'] })
    const { access_token } = (await grant(client, { resource })).body
    app.clock.advance(HOUR)
    const session = (await app.admin('GET', `/sessions?client_id=${client.client_id}`)).body.data[0]
    expect(Date.parse(session?.expires_at)).toBeGreaterThanOrEqual(claimsOf(access_token).exp * 1000)
    const ask = () => post(app, '/oauth/introspect', { ...secretOf(inspector), token: access_token })
    expect((await ask()).body.active).toBe(true)
    await configure({ blocked_clients: [client.client_id] })
    expect((await ask()).body).toEqual({ active: false })
    await configure({ blocked_clients: null })
  })

  test('DCR-09 a block and the policy reach tokens of sessions that the client ended itself', async () => {
    const asker = await addClient(app, 'asker', { capabilities: ['token_introspection'] })
    const resource = 'https://served.example/mcp'
    await create(app, '/apis', { ...tools, identifier: resource, served_by: ['asker'] })
    for (const policy of [{ client_registration: 'off' }, { blocked_clients: 'this' }]) {
      const client = await register()
      const ofApi = (await grant(client, { resource })).body
      const own = (await grant(client, { resource: undefined, scope: 'openid', prompt: 'consent' })).body
      for (const { refresh_token } of [ofApi, own])
        await post(app, '/oauth/revoke', { client_id: client.client_id, token: refresh_token })
      const states = async () => [
        (await post(app, '/oauth/introspect', { ...secretOf(asker), token: ofApi.access_token })).body.active,
        (await get(app, '/oauth/userinfo', { headers: bearer(own.access_token) })).status,
      ]
      expect(await states()).toEqual([true, 200])
      await configure(policy.blocked_clients ? { blocked_clients: [client.client_id] } : policy)
      expect(await states()).toEqual([false, 401])
      await configure({ client_registration: 'open', blocked_clients: null })
    }
  })

  test('DCR-09 DCR-13 a client in use is kept, and forgotten 90 days after its last session', async () => {
    const client = await register()
    const { browser } = await logIn(client)
    app.clock.advance(DAY)
    // The user has consented, so this code is the only sign of the use.
    const { code = '' } = answerOf(await signIn(browser, await browser.get(request(client)), 'alice'))
    await redeem(app, client, code, { redirect_uri: WEB })
    const has = () =>
      app.context.store.read(async q =>
        (await q.select().from(q.tables.dynamic_clients)).some(
          ({ client_id }) => client_id === client.client_id,
        ),
      )
    app.clock.advance(89 * DAY)
    await sweep(app.context)
    expect(await has()).toBe(true)
    app.clock.advance(DAY)
    const unused = await register()
    app.clock.advance(HOUR)
    await app.events()
    await sweep(app.context)
    expect(await has()).toBe(false)
    const forgotten = (await app.events()).filter(({ type }) => type === 'client.forgotten')
    expect(forgotten).toContainEqual({
      type: 'client.forgotten',
      actor_id: null,
      target_id: client.client_id,
      target_type: 'client',
      organization_id: 'org_default',
      metadata: { name: client.client_name, redirect_uris: [WEB] },
    })
    expect(forgotten.map(({ target_id }) => target_id)).not.toContain(unused.client_id)
    expect(isPage(await openBrowser(app).get(request(client)))).toEqual([400, undefined])
    expect((await app.admin('GET', `/users/${alice.id}`)).status).toBe(200)
  })

  test('DCR-13 a forgotten client that registers again at once keeps what users allow from then on', async () => {
    const metadata = { client_name: 'Comes back' }
    const client = await register(metadata)
    await grant(client)
    app.clock.advance(90 * DAY)
    await sweep(app.context)
    expect((await register(metadata)).client_id).toBe(client.client_id)
    const { body } = await grant(client)
    await purge(app.context)
    expect(await app.context.store.read(q => q.$count(q.tables.purges))).toBe(0)
    expect((await refresh(app, client, body.refresh_token)).status).toBe(200)
    const allowed = await app.context.store.read(q => q.select().from(q.tables.consents))
    expect(allowed.map(({ client_id }) => client_id)).toContain(client.client_id)
  })
})
