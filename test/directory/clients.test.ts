import { beforeEach, describe, expect, test } from 'bun:test'
import { originOf } from '#src/directory/clients/store.ts'
import type { UserId } from '#src/lib/ids.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf, create, listAll, refused } from '#test/support/callers.ts'
import { addUser, logInTo, REDIRECT, VERIFIER } from '#test/support/people.ts'

let app: TestApp

const machine = {
  client_id: 'machine',
  name: 'Machine',
  type: 'confidential',
  grant_types: ['client_credentials'],
  scopes: ['users:read', 'reports'],
}
const spa = {
  client_id: 'spa',
  name: 'Single page',
  type: 'public',
  redirect_uris: ['https://app.example/cb'],
  grant_types: ['authorization_code'],
  scopes: ['openid'],
}

beforeEach(async () => {
  app = await startApp()
  await app.admin('GET', '/roles')
  await app.events()
})

const event = (type: string, target_id: string, metadata: Record<string, unknown> = {}) => ({
  type,
  actor_id: 'gatehouse-admin',
  target_id,
  target_type: 'client',
  organization_id: 'org_default',
  metadata,
})

test('CLI-04 a confidential client is registered with its defaults; its secret is shown once and stored as a hash', async () => {
  const { status, body } = await app.admin('POST', '/clients', machine)
  expect(status).toBe(201)
  const { client_secret, ...client } = body
  expect(client).toEqual({
    ...machine,
    kind: null,
    description: '',
    organization_id: 'org_default',
    redirect_uris: [],
    post_logout_redirect_uris: [],
    web_origins: [],
    token_endpoint_auth_method: 'client_secret_basic',
    access_token_ttl: 3600,
    refresh_token_ttl: 2_592_000,
    capabilities: [],
    consent_required: true,
    id_token_signed_response_alg: null,
    access_token_signed_response_alg: null,
    access_token_typ: 'at+jwt',
    refresh_token_reuse_window: 0,
    id_token_on_refresh: false,
    logo: null,
    client_uri: null,
    policy_uri: null,
    tos_uri: null,
    initiate_login_uri: null,
    backchannel_logout_uri: null,
    backchannel_logout_session_required: false,
    backchannel_logout_on_expiry: false,
    attributes: {},
    claims: {},
    allowed_roles: [],
    allowed_groups: [],
    created_at: '2026-01-15T12:00:00.000Z',
    updated_at: '2026-01-15T12:00:00.000Z',
  })
  expect(client_secret).toMatch(/^[\w-]{43}$/)
  expect((await app.admin('GET', '/clients/machine')).body).toEqual(client)
  const { client_id, name, type, kind, organization_id, grant_types, scopes, created_at, updated_at } = client
  expect((await app.admin('GET', '/clients')).body.data[0]).toEqual({
    client_id,
    name,
    type,
    kind,
    organization_id,
    grant_types,
    scopes,
    created_at,
    updated_at,
  })
  const stored = await app.context.store.read(async q => q.select().from(q.tables.clients))
  expect(JSON.stringify(stored)).not.toContain(client_secret)
  expect(await app.tokenOf('machine', client_secret)).toBeString()
  expect((await app.events())[0]).toEqual(
    event('client.created', 'machine', {
      name: 'Machine',
      type: 'confidential',
      permissions_added: ['users:read'],
    }),
  )
})

test('CLI-06 a public client has no secret, and none can be generated', async () => {
  const { body } = await app.admin('POST', '/clients', spa)
  expect(body).toMatchObject({ ...spa, token_endpoint_auth_method: 'none' })
  expect(body).not.toHaveProperty('client_secret')
  expect(refused(await app.admin('POST', '/clients/spa/secret'))).toEqual(['client_id'])
})

test('CLI-02 a client_id of all allowed characters can be registered, read, changed and deleted', async () => {
  for (const client_id of [
    'a.b',
    'https://app.example/x',
    'urn:app:1',
    'a/b~c_d-e',
    '...',
    'x'.repeat(128),
  ]) {
    await create(app, '/clients', { ...machine, client_id })
    const path = `/clients/${encodeURIComponent(client_id)}`
    expect((await app.admin('GET', path)).body.client_id).toBe(client_id)
    expect((await app.admin('PUT', path, { name: 'Other' })).body).toMatchObject({ client_id, name: 'Other' })
    expect((await app.admin('POST', `${path}/secret`)).body.client_id).toBe(client_id)
    expect((await app.admin('DELETE', path)).status).toBe(204)
  }
})

test('CLI-03 a client_id that looks like a generated id, or has other characters, is refused', async () => {
  const bad = [
    'ab',
    'x'.repeat(129),
    'default',
    '019bc186-de00-734a-b826-7e57c99aaa0c',
    '019BC186-DE00-734A-B826-7E57C99AAA0C',
    'usr_x',
    'org_default',
    'sess_1',
    'dcr_billing',
    'dcs_1',
    'dct_1',
    'a b',
    'a+b',
    'a%2Fb',
    'äbc',
    'a\nb',
    'abc?',
    7,
    null,
  ]
  for (const client_id of bad)
    expect(refused(await app.admin('POST', '/clients', { ...machine, client_id }))).toEqual(['client_id'])
})

test('CLI-01 a client_id is unique in the instance', async () => {
  const { id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  await create(app, '/clients', { ...machine, organization_id: id })
  expect((await app.admin('POST', '/clients', machine)).body).toMatchObject({
    status: 409,
    error: 'conflict',
  })
  expect((await app.admin('GET', '/clients/machine')).body.organization_id).toBe(id)
})

describe('PUT', () => {
  test('changes only the given fields, and records their names', async () => {
    const { client_secret, ...before } = await create(app, '/clients', machine)
    await app.events()
    app.clock.advance(1000)
    const change = { name: 'Other', scopes: ['admin'] }
    const { status, body } = await app.admin('PUT', '/clients/machine', change)
    expect([status, body]).toEqual([200, { ...before, ...change, updated_at: '2026-01-15T12:00:01.000Z' }])
    const permissions = { permissions_added: ['admin'], permissions_removed: ['users:read'] }
    const fields = ['name', 'scopes']
    expect(await app.events()).toEqual([event('client.updated', 'machine', { fields, ...permissions })])
    expect(await app.tokenOf('machine', client_secret)).toBeString()
  })

  test('without a change records nothing', async () => {
    const { client_secret: _, ...client } = await create(app, '/clients', machine)
    const { data } = (await app.admin('GET', '/clients?limit=1')).body
    await app.events()
    app.clock.advance(1000)
    for (const body of [{}, client, data[0], { name: machine.name }])
      expect(await app.admin('PUT', '/clients/machine', body)).toMatchObject({ status: 200, body: client })
    expect(await app.events()).toEqual([])
  })

  test('CLI-11 refuses changes of immutable fields', async () => {
    await create(app, '/clients', machine)
    const fixed = {
      client_id: 'other',
      type: 'public',
      organization_id: 'org_x',
      created_at: '',
      updated_at: '',
    }
    for (const [field, value] of Object.entries(fixed))
      expect(refused(await app.admin('PUT', '/clients/machine', { [field]: value }))).toEqual([field])
  })
})

test('O-63 a new secret works and the old one fails within the same second', async () => {
  const { client_secret: old } = await create(app, '/clients', machine)
  await app.events()
  const { status, body } = await app.admin('POST', '/clients/machine/secret')
  expect([status, body]).toEqual([
    200,
    { client_id: 'machine', client_secret: expect.stringMatching(/^[\w-]{43}$/) },
  ])
  expect(await app.events()).toEqual([event('client.secret_regenerated', 'machine')])
  expect(await app.tokenOf('machine', old).catch(() => 'refused')).toBe('refused')
  expect(await app.tokenOf('machine', body.client_secret)).toBeString()
})

test('CLI-05 deleting a client ends its sessions and refresh tokens; access tokens stay valid; a new client of its id inherits nothing', async () => {
  const shop = {
    ...spa,
    client_id: 'shop',
    type: 'confidential',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    scopes: ['openid', 'profile:read'],
    consent_required: false,
  }
  const { client_secret } = await create(app, '/clients', shop)
  const user = await addUser(app, 'alice')
  const { code = '' } = await logInTo(openBrowser(app), 'shop', 'alice')
  const token = async (fields: Record<string, string>) => {
    const body = new URLSearchParams({ client_id: 'shop', ...fields })
    const answer = await app.call('/oauth/token', { method: 'POST', body })
    return { status: answer.status, body: (await answer.json()) as Json }
  }
  const exchange = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER }
  const { body: tokens } = await token({ ...exchange, client_secret })
  const consent = { user_id: user.id as UserId, client_id: 'shop', organization_id: 'org_default' as const }
  await app.context.store.write(async tx => {
    await tx
      .insert(tx.tables.consents)
      .values({ ...consent, scopes: ['openid'], created_at: 0, updated_at: 0 })
  })
  expect((await app.admin('GET', '/sessions?client_id=shop')).body.pagination.total).toBe(1)
  await app.events()

  expect((await app.admin('DELETE', '/clients/shop')).status).toBe(204)
  expect(await app.events()).toEqual([event('client.deleted', 'shop', { name: shop.name })])
  expect((await app.admin('DELETE', '/clients/shop')).status).toBe(404)
  expect((await app.admin('GET', '/sessions?client_id=shop')).body.data).toEqual([])
  const authorization = `Bearer ${tokens.access_token}`
  expect((await app.call('/oauth/userinfo', { headers: { authorization } })).status).toBe(200)

  const again = await create(app, '/clients', shop)
  const refresh = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token }
  expect(await token({ ...refresh, client_secret: again.client_secret })).toMatchObject({
    status: 400,
    body: { error: 'invalid_grant' },
  })
  const left = await app.context.store.read(async q => q.select().from(q.tables.consents))
  expect(left).toEqual([])
})

test('CLI-13 origins take effect when their client is registered, and end when it is deleted', async () => {
  const { store } = app.context
  const origin = 'https://app.example'
  const isKnown = () => originOf(store, 'spa', origin)
  expect(await isKnown()).toBe(false)
  await create(app, '/clients', { ...spa, web_origins: [origin] })
  expect(await isKnown()).toBe(true)
  expect(await originOf(store, 'gatehouse-admin', origin)).toBe(false)
  await app.admin('PUT', '/clients/spa', { web_origins: [] })
  expect(await isKnown()).toBe(false)
})

test('CLI-12 the list filters by type and organization, with exact totals', async () => {
  const { id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  await create(app, '/clients', machine)
  await create(app, '/clients', spa)
  await create(app, '/clients', { ...spa, client_id: 'other', organization_id: id })
  const ids = async (query: string) => {
    const rows = await listAll(app, `/clients${query}`)
    const { pagination } = (await app.admin('GET', `/clients${query}`)).body
    expect(pagination.total).toBe(rows.length)
    return rows.map(row => row.client_id).sort()
  }
  expect(await ids('?')).toEqual(['gatehouse-admin', 'machine', 'other', 'spa'])
  expect(await ids('?type=public')).toEqual(['other', 'spa'])
  expect(await ids('?type=confidential')).toEqual(['gatehouse-admin', 'machine'])
  expect(await ids('?grant_type=client_credentials')).toEqual(['gatehouse-admin', 'machine'])
  expect(await ids(`?organization_id=${id}`)).toEqual(['other'])
  expect(await ids(`?type=confidential&organization_id=${id}`)).toEqual([])
  expect(refused(await app.admin('GET', '/clients?type=secret'))).toEqual(['type'])
  expect(refused(await app.admin('GET', '/clients?name=x'))).toEqual(['name'])
})

describe('O-70', () => {
  test('CLI-08 a caller cannot register a client or grant it scopes beyond their own permissions', async () => {
    const verbs = ['clients:create', 'clients:update', 'clients:delete', 'clients:read']
    const token = await callerOf(app, 'org_default', [...verbs, 'users:read'])
    const strong = await create(app, '/clients', {
      ...machine,
      client_id: 'strong',
      scopes: ['users:delete'],
    })
    await create(app, '/clients', { ...machine, client_id: 'root', scopes: ['admin'] })
    await create(app, '/clients', machine)
    await app.events()
    const refusedCalls: [string, string, object?][] = [
      ['POST', '/clients', { ...machine, client_id: 'new', scopes: ['users:delete'] }],
      ['POST', '/clients', { ...machine, client_id: 'new', scopes: ['admin'] }],
      ['PUT', '/clients/machine', { scopes: ['users:delete'] }],
      ['PUT', '/clients/machine', { scopes: ['admin'] }],
      ['PUT', '/clients/strong', { redirect_uris: ['https://evil.example/cb'] }],
      ['PUT', '/clients/strong', { scopes: [] }],
      ['PUT', '/clients/gatehouse-admin', { name: 'Mine' }],
      ['POST', '/clients/strong/secret'],
      ['POST', '/clients/root/secret'],
      ['DELETE', '/clients/strong'],
      ['DELETE', '/clients/gatehouse-admin'],
    ]
    for (const [method, path, body] of refusedCalls)
      expect(await app.admin(method, path, body, token)).toMatchObject({
        status: 403,
        body: { error: 'forbidden' },
      })
    expect(await app.events()).toEqual([])
    expect(await app.tokenOf('strong', strong.client_secret)).toBeString()
    const fresh = {
      ...machine,
      client_id: 'new',
      scopes: ['users:read', 'profile:update', 'openid', 'reports:write'],
    }
    expect((await app.admin('POST', '/clients', fresh, token)).status).toBe(201)
    expect((await app.admin('PUT', '/clients/new', { name: 'New' }, token)).status).toBe(200)
    expect((await app.admin('POST', '/clients/new/secret', undefined, token)).status).toBe(200)
    expect((await app.admin('DELETE', '/clients/new', undefined, token)).status).toBe(204)
  })

  test('a tenant cannot give a client the users of other tenants, nor take such a client over', async () => {
    const { id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
    const token = await callerOf(app, id, ['admin'])
    const capabilities = ['cross_organization']
    await create(app, '/clients', { ...spa, client_id: 'wide', organization_id: id, capabilities })
    await create(app, '/clients', { ...spa, organization_id: id })
    const refusedCalls: [string, string, object?][] = [
      ['POST', '/clients', { ...spa, client_id: 'mine', capabilities }],
      ['PUT', '/clients/spa', { capabilities }],
      ['PUT', '/clients/wide', { redirect_uris: ['https://evil.example/cb'] }],
      ['DELETE', '/clients/wide'],
    ]
    for (const [method, path, body] of refusedCalls)
      expect((await app.admin(method, path, body, token)).status).toBe(403)
    expect(
      (await app.admin('PUT', '/clients/spa', { capabilities: ['token_introspection'] }, token)).status,
    ).toBe(200)
  })

  const claude = {
    ...spa,
    client_id: 'https://claude.ai/oauth/mcp-oauth-client-metadata',
    redirect_uris: ['https://claude.ai/api/mcp/auth_callback'],
  }
  const at = `/clients/${encodeURIComponent(claude.client_id)}`

  test('CLI-15 a tenant neither registers nor changes a client_id that names a document of someone else', async () => {
    const { id } = await create(app, '/organizations', { name: 'Https', slug: 'https' })
    const token = await callerOf(app, id, ['admin'])
    expect((await app.admin('POST', '/clients', claude, token)).status).toBe(403)
    expect((await app.admin('GET', at)).status).toBe(404)
    expect((await app.admin('POST', '/clients', { ...claude, organization_id: id })).status).toBe(201)
    await app.events()
    const refusedCalls: [string, string, object?][] = [
      ['PUT', at, { name: 'Mine' }],
      ['PUT', at, { redirect_uris: ['https://evil.example/cb'] }],
      ['POST', `${at}/secret`],
      ['DELETE', at],
    ]
    for (const [method, path, body] of refusedCalls)
      expect((await app.admin(method, path, body, token)).status).toBe(403)
    expect(await app.events()).toEqual([])
    expect((await app.admin('GET', at)).body.redirect_uris).toEqual(claude.redirect_uris)
    expect((await app.admin('DELETE', at)).status).toBe(204)
  })

  test('CLI-16 such a client has only redirect URIs of its document, if the document is known', async () => {
    const elsewhere = ['https://claude.ai/api/mcp/auth_callback', 'https://evil.example/cb']
    const refused = {
      status: 422,
      body: { details: [{ field: 'redirect_uris.1', code: 'not_in_document' }] },
    }
    expect(await app.admin('POST', '/clients', { ...claude, redirect_uris: elsewhere })).toMatchObject(
      refused,
    )
    await create(app, '/clients', claude)
    expect(await app.admin('PUT', at, { redirect_uris: elsewhere })).toMatchObject(refused)
    expect((await app.admin('PUT', at, { name: 'Claude' })).status).toBe(200)
    await create(app, '/clients', { ...spa, client_id: 'https://unknown.example/client.json' })
  })
})
