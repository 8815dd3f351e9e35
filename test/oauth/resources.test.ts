import { beforeEach, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { MINUTE } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, authorizeUrl, logInTo, signIn } from '#test/support/people.ts'
import { inputs, keyOf, pathOf, type Tenant } from '#test/support/routes.ts'
import {
  basic,
  bearer,
  claimsOf,
  get,
  headerOf,
  post,
  redeem,
  refresh,
  secretOf,
} from '#test/support/tokens.ts'

const ORDERS = 'https://orders.example/'
const FILES = 'https://files.example/v1'

const app = await startApp()
const alice = await addUser(app, 'alice', { roles: ['admin'] })
await addUser(app, 'bob')
const shop = await addClient(app, 'shop')
await addClient(app, 'other')
const service = await addClient(app, 'service', {
  grant_types: ['client_credentials'],
  redirect_uris: [],
  scopes: ['reports:read'],
})
const inspector = await addClient(app, 'inspector', { capabilities: ['token_introspection'] })
const stranger = await addClient(app, 'stranger', { capabilities: ['token_introspection'] })
const scope = (name: string, role: string | null = null) => ({ name, texts: { en: `May ${name}` }, role })
const usable = (...names: string[]) => ['shop', 'service'].map(client_id => ({ client_id, scopes: names }))
await create(app, '/apis', {
  identifier: ORDERS,
  name: 'Orders',
  scopes: [scope('orders.read'), scope('orders.purge', 'admin')],
  clients: usable('orders.read', 'orders.purge'),
  served_by: ['inspector'],
  access_token_ttl: 120,
  access_token_alg: 'ES384',
})
await create(app, '/apis', {
  identifier: FILES,
  name: 'Files',
  scopes: [scope('files.read')],
  clients: usable('files.read'),
})

beforeEach(async () => void (await app.events()))

const invalid = (error: string) => ({ status: 400, body: { error } })

/** Signs in for one or several resources, and returns the answer with the code. */
const authorize = async (resources: string[], asked: string, username = 'alice', client_id = 'shop') => {
  const browser = openBrowser(app)
  const more = new URLSearchParams(resources.map(resource => ['resource', resource]))
  const page = await browser.get(`${authorizeUrl(client_id, { scope: asked })}&${more}`)
  return page.location ? answerOf(page) : answerOf(await signIn(browser, page, username))
}

describe('RES-01 a token is for the one resource that it names', () => {
  test('RES-01 aud is the registered spelling, with lifetime, algorithm and scopes of the API', async () => {
    const { code = '' } = await authorize(['https://orders.example'], 'openid orders.read')
    await app.events()
    const { status, body } = await redeem(app, shop, code)
    expect([status, body.scope, body.expires_in]).toEqual([200, 'openid orders.read', 120])
    expect(claimsOf(body.access_token)).toMatchObject({ aud: ORDERS, client_id: 'shop', scope: body.scope })
    expect(headerOf(body.access_token).alg).toBe('ES384')
    expect(claimsOf(body.id_token).aud).toBe('shop')
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.resource])).toEqual([
      ['user.login', undefined],
      ['session.created', undefined],
      ['token.issued', ORDERS],
    ])
    const again = await refresh(app, shop, body.refresh_token)
    expect(claimsOf(again.body.access_token)).toMatchObject({ aud: ORDERS, scope: 'openid orders.read' })
  })

  test('RES-01 among several, code and refresh token need a choice', async () => {
    const { code = '' } = await authorize([ORDERS, FILES], 'openid orders.read files.read')
    expect(await redeem(app, shop, code)).toMatchObject(invalid('invalid_target'))
    expect(await redeem(app, shop, code, { resource: 'https://none.example' })).toMatchObject(
      invalid('invalid_target'),
    )
    const { body } = await redeem(app, shop, code, { resource: FILES })
    expect([claimsOf(body.access_token).aud, body.scope]).toEqual([FILES, 'openid files.read'])
    expect(await refresh(app, shop, body.refresh_token)).toMatchObject(invalid('invalid_target'))
    const { body: next } = await refresh(app, shop, body.refresh_token, { resource: `${FILES}/` })
    expect([claimsOf(next.access_token).aud, next.scope]).toEqual([FILES, 'openid files.read'])
  })

  test('RES-01 O-20 a requested scope that the API does not have is invalid_scope and uses up nothing', async () => {
    const { code = '' } = await authorize([ORDERS, FILES], 'openid orders.read files.read')
    const { body } = await redeem(app, shop, code, { resource: ORDERS })
    await app.events()
    const more = { resource: FILES, scope: 'orders.read' }
    expect(await refresh(app, shop, body.refresh_token, more)).toMatchObject(invalid('invalid_scope'))
    expect(await app.events()).toEqual([])
    const { body: next } = await refresh(app, shop, body.refresh_token, { resource: FILES })
    expect(next.scope).toBe('openid files.read')
  })

  test('RES-01 two slashes at the end are another identifier', async () => {
    const form = { grant_type: 'client_credentials', ...secretOf(service) }
    expect(await post(app, '/oauth/token', { ...form, resource: `${ORDERS}/` })).toMatchObject(
      invalid('invalid_target'),
    )
    const page = await openBrowser(app).get(authorizeUrl('shop', { resource: `${ORDERS}/` }))
    expect(answerOf(page).error).toBe('invalid_target')
  })

  test('RES-01 a token request names at most one resource', async () => {
    const { code = '' } = await authorize([ORDERS, FILES], 'openid')
    const form = new URLSearchParams({ grant_type: 'authorization_code', code, ...secretOf(shop) })
    for (const resource of [ORDERS, FILES]) form.append('resource', resource)
    const answer = await app.call('/oauth/token', { method: 'POST', body: form })
    expect([answer.status, (await answer.json()).error]).toEqual([400, 'invalid_target'])
  })

  test('RES-02 without resource nothing changes, and none may be added later', async () => {
    const { code = '' } = await authorize([], 'openid')
    expect(await redeem(app, shop, code, { resource: ORDERS })).toMatchObject(invalid('invalid_target'))
    const { body } = await redeem(app, shop, code)
    expect(claimsOf(body.access_token).aud).toBe('shop')
    expect(await refresh(app, shop, body.refresh_token, { resource: ORDERS })).toMatchObject(
      invalid('invalid_target'),
    )
    expect(claimsOf((await refresh(app, shop, body.refresh_token)).body.access_token).aud).toBe('shop')
  })

  test('RES-03 a resource that is unknown, or that the client may not use, is invalid_target', async () => {
    for (const [client_id, resource] of [
      ['shop', 'https://none.example'],
      ['shop', `${ORDERS}x`],
      ['shop', 'https://ORDERS.example/'],
      ['other', ORDERS],
    ] as const) {
      const page = await openBrowser(app).get(authorizeUrl(client_id, { resource }))
      expect(new URL(page.location ?? '').searchParams.get('error')).toBe('invalid_target')
    }
    const page = await openBrowser(app).get(authorizeUrl('shop', { scope: 'openid orders.read' }))
    expect(new URL(page.location ?? '').searchParams.get('error')).toBe('invalid_scope')
  })

  test('O-58 RES-03 a resource with NUL is refused before any query, because PostgreSQL cannot read it', async () => {
    const form = { grant_type: 'client_credentials', ...secretOf(service) }
    for (const resource of ['\0', `${ORDERS}\0`]) {
      const page = await openBrowser(app).get(authorizeUrl('shop', { resource }))
      expect(answerOf(page).error).toBe('invalid_request')
      expect(await post(app, '/oauth/token', { ...form, resource })).toMatchObject(invalid('invalid_request'))
    }
    expect(await app.events()).toEqual([])
  })

  test('RES-03 no person of another organization gets a token of the API', async () => {
    const acme = await addOrganization(app, 'acme')
    await addUser(app, 'amy', { organization_id: acme.id })
    await app.admin('PUT', '/clients/shop', { capabilities: ['cross_organization'] })
    const page = await openBrowser(app).get(
      authorizeUrl('shop', { resource: ORDERS, organization_id: acme.id }),
    )
    expect(new URL(page.location ?? '').searchParams.get('error')).toBe('invalid_target')
    await app.admin('PUT', '/clients/shop', { capabilities: [] })
  })

  test('RES-04 a scope with a role is given only to people who hold it', async () => {
    const scopesOf = async (username: string) => {
      const { code = '' } = await authorize([ORDERS], 'openid orders.read orders.purge', username)
      return (await redeem(app, shop, code)).body.scope
    }
    expect(await scopesOf('alice')).toBe('openid orders.read orders.purge')
    expect(await scopesOf('bob')).toBe('openid orders.read')
  })

  test('RES-05 client credentials name an API and get its scopes alone', async () => {
    const form = { grant_type: 'client_credentials', ...secretOf(service) }
    const { body } = await post(app, '/oauth/token', { ...form, resource: ORDERS })
    expect(claimsOf(body.access_token)).toMatchObject({ aud: ORDERS, scope: 'orders.read orders.purge' })
    expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
      [
        'token.issued',
        {
          client_id: 'service',
          grant_type: 'client_credentials',
          scope: 'orders.read orders.purge',
          resource: ORDERS,
        },
      ],
    ])
    for (const more of [{ scope: 'reports:read' }, { scope: 'files.read' }])
      expect(await post(app, '/oauth/token', { ...form, resource: ORDERS, ...more })).toMatchObject(
        invalid('invalid_scope'),
      )
    expect(await post(app, '/oauth/token', { ...form, resource: 'x' })).toMatchObject(
      invalid('invalid_target'),
    )
    expect(claimsOf((await post(app, '/oauth/token', form)).body.access_token).aud).toBe('service')
  })
})

const tokenFor = async (resource: string) => {
  const { code = '' } = await authorize([resource], 'openid')
  return (await redeem(app, shop, code)).body
}

test('CLM-09 a scope of an API adds claims to the access tokens that have it', async () => {
  const user = await addUser(app, 'cara', { attributes: { tenant: 'north', age: 7 } })
  const mapped = (name: string, claims: object) => ({ name, texts: {}, claims })
  await create(app, '/apis', {
    identifier: 'https://tenants.example',
    name: 'Tenants',
    scopes: [
      mapped('tenants.read', { tenant: 'user.attributes.tenant', teams: 'groups[].name' }),
      mapped('tenants.write', { age: 'user.attributes.age' }),
    ],
    clients: usable('tenants.read', 'tenants.write'),
  })
  const { code = '' } = await authorize(['https://tenants.example'], 'openid tenants.read', 'cara')
  const { body } = await redeem(app, shop, code)
  expect(claimsOf(body.access_token)).toMatchObject({ sub: user.id.slice(4), tenant: 'north', teams: [] })
  expect(claimsOf(body.access_token).age).toBeUndefined()
  expect(claimsOf(body.id_token).tenant).toBeUndefined()
  const again = await refresh(app, shop, body.refresh_token)
  expect(claimsOf(again.body.access_token).tenant).toBe('north')
  for (const claims of [
    { sub: 'user.email' },
    { tenant: { from: 'user.email', scope: 'x' } },
    { a: 'user.password_hash' },
  ]) {
    const wrong = { identifier: 'https://x.example', name: 'X', scopes: [mapped('x', claims)] }
    const { status, body: refusal } = await app.admin('POST', '/apis', wrong)
    expect([status, refusal.details[0].field]).toEqual([422, `scopes.0.claims.${Object.keys(claims)[0]}`])
  }
})

test('CLM-07 the claims of client and API have at most 4 KiB together', async () => {
  const attributes = { own: 'x'.repeat(3000), more: 'y'.repeat(3000), few: 'z' }
  await addUser(app, 'dora', { attributes })
  await app.admin('PUT', '/clients/shop', { claims: { own: 'user.attributes.own' } })
  const claims = { own: 'user.attributes.few', more: 'user.attributes.more', few: 'user.attributes.few' }
  await create(app, '/apis', {
    identifier: 'https://large.example',
    name: 'Large',
    scopes: [{ name: 'large', texts: {}, claims }],
    clients: usable('large'),
  })
  const { code = '' } = await authorize(['https://large.example'], 'openid large', 'dora')
  const { body } = await redeem(app, shop, code)
  const { own, more, few } = claimsOf(body.access_token)
  expect([own, more, few]).toEqual([attributes.own, undefined, 'z'])
  await app.admin('PUT', '/clients/shop', { claims: {} })
})

test('RES-06 an API’s token is refused at every endpoint of this server', async () => {
  const { access_token } = await tokenFor(ORDERS)
  const { adminRoutes, ADMIN_PREFIX } = await import('#src/admin/routes.ts')
  const tenant = new Proxy({} as Tenant, { get: (_, name) => `${String(name)}-1` })
  for (const route of adminRoutes(app.context)) {
    const { body, query = '' } = inputs[keyOf(route)]?.(tenant) ?? {}
    const answer = await app.call(`${ADMIN_PREFIX}${pathOf(route, tenant)}${query}`, {
      method: route.method,
      headers: { ...bearer(access_token), 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    expect([keyOf(route), answer.status]).toEqual([keyOf(route), 401])
  }
  expect((await get(app, '/oauth/userinfo', { headers: bearer(access_token) })).status).toBe(401)
})

test('RES-07 introspection describes an API’s token only to the clients that serve the API', async () => {
  const { access_token: token } = await tokenFor(ORDERS)
  const ask = async ({ client_id, client_secret }: typeof inspector) =>
    (await post(app, '/oauth/introspect', { token }, { headers: basic(client_id, client_secret) })).body
  expect(await ask(inspector)).toMatchObject({ active: true, aud: ORDERS, sub: alice.id.slice(4) })
  expect(await ask(stranger)).toEqual({ active: false })
})

test('RES-08 the consent page says what the API’s scopes mean, and a consent is for that API', async () => {
  await app.admin('PUT', '/clients/shop', { consent_required: true })
  const api = async () =>
    create(app, '/apis', {
      identifier: 'https://notes.example',
      name: 'Notes',
      scopes: [{ name: 'notes.read', texts: { en: 'Read notes', de: 'Notizen lesen' } }],
      clients: [{ client_id: 'shop', scopes: ['notes.read'] }],
    })
  const { id } = await api()
  const browser = openBrowser(app)
  await logInTo(browser, 'other', 'alice')
  const url = authorizeUrl('shop', { scope: 'openid notes.read', resource: 'https://notes.example' })
  const german = await browser.get(`${url}&ui_locales=de`)
  expect(german.html).toContain('Notizen lesen')
  const page = await browser.get(url)
  expect(page.html).toContain('Read notes')
  const { code = '' } = answerOf(await browser.submit(page, { decision: 'approve' }))
  expect(answerOf(await browser.get(url)).code).toBeString()
  expect((await browser.get('/account/applications')).html).toContain('Read notes')
  const { body } = await redeem(app, shop, code)
  expect((await app.admin('DELETE', `/apis/${id}`)).status).toBe(204)
  expect(await refresh(app, shop, body.refresh_token)).toMatchObject(invalid('invalid_target'))
  expect((await browser.get('/account/applications')).html).not.toContain('Read notes')
  app.clock.advance(MINUTE / 2)
  await api()
  expect(await refresh(app, shop, body.refresh_token)).toMatchObject(invalid('invalid_target'))
  app.clock.advance(MINUTE)
  expect((await browser.get(url)).heading).toStartWith('Allow')
  await app.admin('PUT', '/clients/shop', { consent_required: false })
})

test('RES-08 a consent without scopes of the API is for that API, too', async () => {
  await app.admin('PUT', '/clients/shop', { consent_required: true })
  await create(app, '/apis', {
    identifier: 'https://ledger.example',
    name: 'The ledger',
    clients: [{ client_id: 'shop', scopes: [] }],
  })
  const browser = openBrowser(app)
  const plain = await signIn(browser, await browser.get(authorizeUrl('shop', { scope: 'openid' })), 'bob')
  expect(answerOf(await browser.submit(plain, { decision: 'approve' })).code).toBeString()
  const url = authorizeUrl('shop', { scope: 'openid', resource: 'https://ledger.example' })
  expect(answerOf(await browser.get(`${url}&prompt=none`)).error).toBe('consent_required')
  const page = await browser.get(url)
  expect(page.html).toContain('The ledger')
  expect(page.html).toContain('https://ledger.example')
  expect(answerOf(await browser.submit(page, { decision: 'approve' })).code).toBeString()
  expect(answerOf(await browser.get(`${url}&prompt=none`)).code).toBeString()
  expect((await browser.get('/account/applications')).html).toContain('The ledger')
  await app.admin('PUT', '/clients/shop', { consent_required: false })
})

test('RES-04 a scope whose role the person lacks is neither shown for consent nor stored, until they hold it', async () => {
  await app.admin('PUT', '/clients/shop', { consent_required: true })
  await create(app, '/roles', { name: 'auditor', permissions: [] })
  const carol = await addUser(app, 'carol')
  const { id } = await create(app, '/apis', {
    identifier: 'https://audit.example',
    name: 'Audit',
    scopes: [scope('audit.read'), scope('audit.sign', 'auditor')],
    clients: [{ client_id: 'shop', scopes: ['audit.read', 'audit.sign'] }],
  })
  const browser = openBrowser(app)
  await logInTo(browser, 'other', 'carol')
  const url = authorizeUrl('shop', {
    scope: 'openid audit.read audit.sign',
    resource: 'https://audit.example',
  })
  const stored = async () =>
    (await app.context.store.read(async q => q.select().from(q.tables.consents))).find(
      ({ user_id }) => user_id === carol.id,
    )?.scopes
  const page = await browser.get(url)
  expect(page.html).toContain('May audit.read')
  expect(page.html).not.toContain('May audit.sign')
  const { code = '' } = answerOf(await browser.submit(page, { decision: 'approve' }))
  expect(await stored()).toEqual([id, 'openid', `${id}/audit.read`])
  const { body } = await redeem(app, shop, code)
  expect(body.scope).toBe('openid audit.read')
  expect(answerOf(await browser.get(`${url}&prompt=none`)).code).toBeString()

  await app.admin('PUT', `/users/${carol.id}`, { roles: ['user', 'auditor'] })
  expect((await refresh(app, shop, body.refresh_token)).body.scope).toBe('openid audit.read')
  const again = await browser.get(url)
  expect(again.html).toContain('May audit.sign')
  const later = answerOf(await browser.submit(again, { decision: 'approve' }))
  expect((await redeem(app, shop, later.code ?? '')).body.scope).toBe('openid audit.read audit.sign')
  await app.admin('PUT', '/clients/shop', { consent_required: false })
})

test('RES-06 a client whose id is the identifier of an API gets no token for it', async () => {
  const id = 'https://agent.example/client'
  const clients = [{ client_id: 'service', scopes: ['a.read'] }]
  await create(app, '/apis', { identifier: id, name: 'Agent', scopes: [scope('a.read')], clients })
  const forApi = (client_id = 'service') => {
    const form = { grant_type: 'client_credentials', resource: id }
    return post(app, '/oauth/token', form, { headers: basic(client_id, service.client_secret) })
  }
  expect((await forApi()).status).toBe(200)
  await app.context.store.write(async tx => {
    const { apis, clients } = tx.tables
    await tx.update(clients).set({ client_id: id }).where(eq(clients.client_id, 'service'))
    await tx
      .update(apis)
      .set({ clients: [{ client_id: id, scopes: ['a.read'] }] })
      .where(eq(apis.identifier, id))
    for (const topic of ['apis', 'clients'] as const) tx.changed(topic)
  })
  expect(await forApi(id)).toMatchObject(invalid('invalid_target'))
})
