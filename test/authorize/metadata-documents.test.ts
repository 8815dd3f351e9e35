/** Tests logins at clients whose id is the URL of their metadata document. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, authorizeUrl, signIn } from '#test/support/people.ts'
import { bearer, claimsOf, get, redeem, refresh } from '#test/support/tokens.ts'
import { documentWorld, request, TOOLS, tools, WEB } from './document-world.ts'

const { app, asked, configure, grant, logIn, open, publish, stored } = await documentWorld()

const LOCAL = 'http://localhost/callback'
const isPage = ({ status, location }: { status: number; location?: string | undefined }) => [status, location]
const types = async () => (await app.events()).map(({ type }) => type)

beforeEach(async () => {
  app.clock.advance(HOUR)
  asked.length = 0
  await app.events()
})

describe('CMD-01 a login', () => {
  test('CMD-01 the document is read after the login, and its scopes are those of a dynamic client', async () => {
    const client = publish()
    const browser = openBrowser(app)
    const login = await browser.get(request(client, { scope: 'openid email tools.read users:read admin' }))
    expect([login.status, asked]).toEqual([200, []])
    expect(login.html).toContain(new URL(client.client_id).host)
    expect(login.html).not.toContain(client.client_name)
    const consent = await signIn(browser, login, 'alice')
    expect(asked).toEqual([client.client_id])
    expect(await stored()).not.toContain(client.client_id)
    await app.events()
    const answer = answerOf(await browser.submit(consent, { decision: 'approve' }, '/oauth/consent'))
    expect(answer.iss).toBe(app.context.config.url)
    expect(await app.events()).toMatchObject([
      {
        type: 'client.first_used',
        target_id: client.client_id,
        organization_id: 'org_default',
        metadata: { name: client.client_name, redirect_uris: [WEB] },
      },
    ])
    const { body } = await redeem(app, client, answer.code ?? '', { redirect_uri: WEB })
    expect(body).toMatchObject({ scope: 'openid email tools.read', expires_in: 900 })
    expect(claimsOf(body.access_token)).toMatchObject({ aud: TOOLS, client_id: client.client_id })
    expect((await refresh(app, client, body.refresh_token)).status).toBe(200)
    expect(await stored()).toContain(client.client_id)
    expect(asked).toEqual([client.client_id])
  })

  test('CMD-01 any page may read the answers of the token endpoint', async () => {
    const client = publish()
    const { answer } = await logIn(client)
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      code: answer.code ?? '',
      client_id: client.client_id,
    })
    const headers = { origin: 'https://page.example' }
    const told = await app.call('/oauth/token', { method: 'POST', body, headers })
    expect(told.headers.get('access-control-allow-origin')).toBe('https://page.example')
  })

  test('CMD-01 a later login needs no consent and no call; prompt=none gets a code too', async () => {
    const client = publish({}, { 'cache-control': 'max-age=86400' })
    const { browser } = await logIn(client)
    for (const more of [{}, { prompt: 'none' }])
      expect(answerOf(await browser.get(request(client, more))).code).toBeString()
    expect(asked).toEqual([client.client_id])
  })

  test('CMD-01 a URL with a query, with a port, or without a file name', async () => {
    for (const end of ['/?v=2', ':8443/', '/a/b?c=/../']) {
      const client = publish({}, {}, `https://odd.example${end}`)
      expect((await logIn(client)).answer.code).toBeString()
    }
    expect(asked).toEqual([
      'https://odd.example/?v=2',
      'https://odd.example:8443/',
      'https://odd.example/a/b?c=/../',
    ])
  })

  test('CMD-01 a document of the executable is used where its server gives none', async () => {
    const client = { client_id: 'https://claude.ai/oauth/claude-code-client-metadata' }
    const redirect_uri = 'http://localhost:3118/callback'
    const { page } = await logIn(client, { redirect_uri })
    expect(page.html).toContain('Claude Code')
  })
})

describe('CMD-02 consent', () => {
  test('CMD-02 names the hosts of client and redirect URI', async () => {
    const client = publish({ client_name: 'Helper' })
    const { page } = await open(client)
    const { host } = new URL(client.client_id)
    expect(page.html).toContain('Allow Helper to use your account?')
    expect(page.html).toContain(
      `Nobody has checked the name of this application. Its description comes from ${host}, and it is reached at agent.example.`,
    )
  })

  test('CMD-02 warns only of a client on the device, and asks about it each time', async () => {
    const client = publish({ redirect_uris: [LOCAL] })
    const { browser, page } = await logIn(client, { redirect_uri: 'http://localhost:3118/callback' })
    expect(page.html).toContain('any program can pretend to be this application')
    const again = await browser.follow(await browser.get(request(client, { redirect_uri: LOCAL })))
    expect(again.html).toContain('/oauth/consent')
  })

  test.each([
    undefined,
    'sHOP',
    ' Sh op ',
    'Shop\u200b',
    'Ｓｈｏｐ',
    'Ѕһор',
    'Sh0p!',
    'Shöp',
    '\u2060\u3164',
    'Gatehouse console',
    'GATEHOUSE',
    'claude.ai',
    'https://claude.ai/',
    'Sign in at ｃlaude．ai now',
  ])('CMD-02 the name %p, which is missing or misleads, is the host', async client_name => {
    const client = publish({ client_name })
    const { page } = await open(client)
    expect(page.html).toContain(`Allow ${new URL(client.client_id).host} to use your account?`)
    expect(page.html).not.toContain(`${client_name} `)
  })

  test.each(['Shop assistant', 'Claude', '助手', 'Помощник', 'Version 2.0'])(
    'CMD-02 the name %p is shown',
    async client_name => {
      const { page } = await open(publish({ client_name }))
      expect(page.html).toContain(`Allow ${client_name} to use your account?`)
    },
  )

  test('CMD-02 is asked again when redirect URIs or keys have changed, and not for a new name', async () => {
    const client = publish()
    const { browser } = await logIn(client)
    const change = async (more: object) => {
      publish(more, {}, client.client_id)
      app.clock.advance(2 * HOUR)
      await app.events()
      const page = await browser.follow(await browser.get(request(client, { max_age: undefined })))
      const isAsked = page.html.includes('/oauth/consent')
      if (isAsked) await browser.submit(page, { decision: 'approve' }, '/oauth/consent')
      return { isAsked, events: await types() }
    }
    const changed = 'client.metadata_changed'
    expect(await change({ client_name: 'New name' })).toEqual({ isAsked: false, events: [changed] })
    const redirect_uris = [WEB, 'https://agent.example/other']
    expect(await change({ redirect_uris })).toEqual({ isAsked: true, events: [changed] })
    expect(await change({ redirect_uris })).toEqual({ isAsked: false, events: [] })
    const jwks_uri = 'https://agent.example/keys'
    expect(await change({ redirect_uris, jwks_uri })).toEqual({ isAsked: true, events: [changed] })
    expect(await change({ redirect_uris: [...redirect_uris].reverse(), jwks_uri })).toMatchObject({
      isAsked: false,
    })
  })

  test('CMD-02 scopes that were granted before a change do not count', async () => {
    const client = publish()
    const { browser } = await logIn(client, { scope: 'openid email tools.read' })
    publish({ redirect_uris: [WEB, LOCAL] }, {}, client.client_id)
    app.clock.advance(2 * HOUR)
    const page = await browser.follow(await browser.get(request(client, { scope: 'openid' })))
    await browser.submit(page, { decision: 'approve' }, '/oauth/consent')
    expect(answerOf(await browser.get(request(client, { scope: 'openid' }))).code).toBeString()
    const wider = await browser.follow(await browser.get(request(client, { scope: 'openid email' })))
    expect(wider.html).toContain('/oauth/consent')
  })

  test('CMD-02 a refusal of the person goes to a redirect URI of the document alone', async () => {
    const client = publish()
    const { browser, page } = await open(client)
    app.clock.advance(2 * HOUR)
    publish({ redirect_uris: ['https://agent.example/moved'] }, {}, client.client_id)
    const moved = await browser.submit(page, { decision: 'deny' }, '/oauth/consent')
    expect(isPage(moved)).toEqual([400, undefined])
    const again = publish()
    const opened = await open(again)
    const denied = await opened.browser.submit(opened.page, { decision: 'deny' }, '/oauth/consent')
    expect(answerOf(denied)).toMatchObject({ error: 'access_denied' })
    expect(await stored()).not.toContain(again.client_id)
  })

  test('CMD-02 again also when a consent was given before the clock was set back', async () => {
    const client = publish()
    app.clock.advance(DAY)
    expect((await logIn(client)).answer.code).toBeString()
    app.clock.advance(-DAY)
    publish({ redirect_uris: [WEB, LOCAL] }, {}, client.client_id)
    const { browser, answer } = await logIn(client)
    expect(answer.code).toBeString()
    expect(answerOf(await browser.get(request(client))).code).toBeString()
  })
})

describe('CMD-03 refusals are pages, and cause no call', () => {
  test('CMD-03 before the login', async () => {
    const client = publish()
    for (const more of [
      { prompt: 'none' },
      { code_challenge: undefined },
      { response_type: 'token' },
      { redirect_uri: 'javascript:alert(1)' },
      { redirect_uri: 'http://agent.example/callback' },
      { resource: 'https://none.example' },
      { scope: 'admin' },
    ])
      expect([more, ...isPage(await openBrowser(app).get(request(client, more)))]).toEqual([
        more,
        400,
        undefined,
      ])
    expect([asked, await types()]).toEqual([[], []])
  })

  test.each([
    'https://agent.example',
    'http://agent.example/client.json',
    'HTTPS://agent.example/client.json',
    'https://agent.example/a/../client.json',
    'https://agent.example/a/%2E%2e/client.json',
    'https://agent.example/client.json#x',
    'https://user@agent.example/client.json',
    'https://agent.example\\evil/client.json',
    `https://agent.example/${'a'.repeat(512)}`,
  ])('CMD-03 %p is no URL of a document', async client_id => {
    expect(isPage(await openBrowser(app).get(request({ client_id })))).toEqual([400, undefined])
  })

  test('CMD-03 a redirect URI that the document lacks', async () => {
    const client = publish()
    const { page } = await open(client, { redirect_uri: 'https://evil.example/' })
    expect(isPage(page)).toEqual([400, undefined])
    expect(await stored()).not.toContain(client.client_id)
  })

  test('CMD-03 an API that another organization has registered since the request', async () => {
    const api = { ...tools, identifier: 'https://moved.example/mcp' }
    const { id } = await create(app, '/apis', api)
    const { browser, page } = await open(publish(), { resource: api.identifier })
    await app.admin('DELETE', `/apis/${id}`)
    const mover = await addOrganization(app, 'mover')
    await create(app, '/apis', { ...api, organization_id: mover.id })
    expect(isPage(await browser.submit(page, { decision: 'approve' }, '/oauth/consent'))).toEqual([
      400,
      undefined,
    ])
  })
})

describe('CMD-04 control', () => {
  test('CMD-04 the policy is off by default, and is that of the API’s organization', async () => {
    const acme = await addOrganization(app, 'acme')
    await addUser(app, 'amy', { organization_id: acme.id })
    const resource = 'https://acme.example/mcp'
    await create(app, '/apis', { ...tools, identifier: resource, organization_id: acme.id })
    const client = publish()
    expect(isPage(await openBrowser(app).get(request(client, { resource })))).toEqual([400, undefined])
    await configure({ client_metadata_documents: 'any' }, 'acme')
    await grant(client)
    await app.events()
    const { body } = await grant(client, { resource }, 'amy')
    const used = (await app.events()).filter(({ type }) => type === 'client.first_used')
    expect(used.map(({ organization_id }) => organization_id)).toEqual([acme.id])
    expect(claimsOf(body.access_token)).toMatchObject({ aud: resource, org_id: acme.id.slice(4) })
    const differs = request(client, { resource, organization_id: 'org_default' })
    expect(isPage(await openBrowser(app).get(differs))).toEqual([400, undefined])
  })

  test('CMD-04 allowlist lets in the listed URLs alone, and ends the sessions of the others', async () => {
    const [listed, other] = [publish(), publish()]
    const [theirs, others] = [(await grant(listed)).body, (await grant(other)).body]
    await app.events()
    await configure({
      client_metadata_documents: 'allowlist',
      allowed_metadata_documents: [listed.client_id],
    })
    const revoked = (await app.events()).filter(({ type }) => type === 'session.revoked')
    expect(revoked.map(({ metadata }) => metadata)).toContainEqual(
      expect.objectContaining({ reason: 'client_kept_out', client_id: other.client_id }),
    )
    expect((await refresh(app, other, others.refresh_token)).body.error).toBe('invalid_grant')
    expect((await refresh(app, listed, theirs.refresh_token)).status).toBe(200)
    expect(isPage(await openBrowser(app).get(request(other)))).toEqual([400, undefined])
    await configure({ allowed_metadata_documents: null })
    expect(isPage(await openBrowser(app).get(request(listed)))).toEqual([400, undefined])
    const zed = { client_id: 'https://zed.dev/oauth/client-metadata.json' }
    const local = await openBrowser(app).get(request(zed, { redirect_uri: 'http://127.0.0.1:1/callback' }))
    expect(local.status).toBe(200)
    await configure({ client_metadata_documents: 'any' })
  })

  test('CMD-04 the policy off ends all sessions of these clients, and keeps those of a registered URL', async () => {
    const client = publish()
    const managed = 'https://managed.example/client'
    const registered = await addClient(app, managed)
    const { body } = await grant(client)
    const browser = openBrowser(app)
    const own = answerOf(await signIn(browser, await browser.get(authorizeUrl(managed)), 'alice'))
    const theirs = (await redeem(app, registered, own.code ?? '')).body
    await configure({ client_metadata_documents: 'off' })
    expect((await refresh(app, client, body.refresh_token)).body.error).toBe('invalid_grant')
    expect((await get(app, '/oauth/userinfo', { headers: bearer(body.access_token) })).status).toBe(401)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(theirs.access_token) })).status).toBe(200)
    await configure({ client_metadata_documents: 'any' })
  })

  test('CMD-04 only a blocked client is refused', async () => {
    const [blocked, other] = [publish(), publish()]
    const [theirs, others] = [(await grant(blocked)).body, (await grant(other)).body]
    await configure({ blocked_clients: [blocked.client_id] })
    expect((await refresh(app, blocked, theirs.refresh_token)).body.error).toBe('invalid_grant')
    expect((await refresh(app, other, others.refresh_token)).status).toBe(200)
    expect(isPage(await openBrowser(app).get(request(blocked)))).toEqual([400, undefined])
    await configure({ blocked_clients: null })
  })

  test('CMD-04 people see and end such a client under Applications', async () => {
    const client = publish({ client_name: 'Seen' })
    const { browser, answer } = await logIn(client)
    const { body } = await redeem(app, client, answer.code ?? '', { redirect_uri: WEB })
    const page = await browser.get('/account/applications')
    expect(page.html).toContain('Seen')
    await browser.submit(page, { client_id: client.client_id }, '/account/applications/disconnect')
    expect((await refresh(app, client, body.refresh_token)).body.error).toBe('invalid_grant')
    expect(await types()).toContain('session.revoked')
  })

  test('CMD-04 discovery names the support if an organization allows it', async () => {
    const told = async () =>
      (await get(app, '/.well-known/oauth-authorization-server')).body.client_id_metadata_document_supported
    expect(await told()).toBe(true)
    await configure({ client_metadata_documents: 'allowlist' })
    expect(await told()).toBe(true)
    await configure({ client_metadata_documents: null })
    await configure({ client_metadata_documents: null }, 'acme')
    expect(await told()).toBeUndefined()
    await configure({ client_metadata_documents: 'any' })
  })
})
