import { expect, test } from 'bun:test'
import { asDocumentClient } from '#src/directory/clients/dynamic.ts'
import { insertDynamicClient } from '#src/directory/clients/dynamic-store.ts'
import { iso } from '#src/lib/text.ts'
import { parseRegistration } from '#src/protocol/oauth/dynamic-client.ts'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed } from '#src/seed/export.ts'
import { parseSeed } from '#src/seed/read.ts'
import { type Json, START, startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization } from '#test/support/people.ts'
import { hearStatements } from '#test/support/statements.ts'

const app = await startApp()
await addClient(app, 'shop')
const acme = await addOrganization(app, 'acme')
await addClient(app, 'acme-shop', { organization_id: acme.id })
await addClient(app, 'https://client.example/id')
const DOCUMENT_CLIENT = 'https://agent.example/client.json'
const registration = parseRegistration({ redirect_uris: ['https://agent.example/'] }, () => false)
await app.context.store.write(tx =>
  insertDynamicClient(tx, asDocumentClient(DOCUMENT_CLIENT, registration, START)),
)
await create(app, '/apis', { identifier: 'https://taken.example/', name: 'Taken' })
const scope = (name: string, role?: string) => ({ name, texts: {}, ...(role && { role }) })

/** A scope of about 1,400 bytes. */
const large = (name: string) => ({
  name,
  texts: Object.fromEntries('abcdefghijk'.split('').map(letter => [`a${letter}`, 'x'.repeat(120)])),
})
const languages = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`l${i}`, 'x']))

test.each<[string, object, string]>([
  ['no URI', { identifier: 'orders' }, 'identifier'],
  ['a fragment', { identifier: 'https://a.example/#x' }, 'identifier'],
  ['a wildcard', { identifier: 'https://*.example/' }, 'identifier'],
  ['credentials', { identifier: 'https://me@a.example/' }, 'identifier'],
  ['a space', { identifier: 'https://a.example/ b' }, 'identifier'],
  ['too long', { identifier: `https://a.example/${'x'.repeat(255)}` }, 'identifier'],
  ['the issuer', { identifier: 'http://localhost:8080' }, 'identifier'],
  ['two slashes at its end', { identifier: 'https://a.example//' }, 'identifier'],
  ['below the issuer', { identifier: 'http://localhost:8080/api/v1/admin' }, 'identifier'],
  ['the issuer in capitals', { identifier: 'HTTP://LOCALHOST:8080/api' }, 'identifier'],
  ['the issuer with a query', { identifier: 'http://localhost:8080?x' }, 'identifier'],
  ['a client', { identifier: 'https://client.example/id/' }, 'identifier'],
  [
    'a client whose document the executable contains',
    { identifier: 'https://claude.ai/oauth/claude-code-client-metadata/' },
    'identifier',
  ],
  ['a client with a metadata document', { identifier: DOCUMENT_CLIENT }, 'identifier'],
  ['a permission', { scopes: [scope('users:read')] }, 'scopes.0.name'],
  ['admin', { scopes: [scope('admin')] }, 'scopes.0.name'],
  ['openid', { scopes: [scope('openid')] }, 'scopes.0.name'],
  ['a star', { scopes: [scope('*')] }, 'scopes.0.name'],
  ['a scope twice', { scopes: [scope('a'), scope('a')] }, 'scopes'],
  ['thousands of languages', { scopes: [{ ...scope('a'), texts: languages }] }, 'scopes.0.texts'],
  [
    '__proto__',
    { scopes: [{ ...scope('a'), texts: JSON.parse('{"__proto__":"x"}') }] },
    'scopes.0.texts.__proto__',
  ],
  ['a text of two lines', { scopes: [{ ...scope('a'), texts: { en: 'a\nb' } }] }, 'scopes.0.texts.en'],
  ['an unknown role', { scopes: [scope('a', 'nobody')] }, 'scopes.0.role'],
  ['an unknown client', { clients: [{ client_id: 'none', scopes: [] }] }, 'clients.0.client_id'],
  ['a foreign client', { clients: [{ client_id: 'acme-shop', scopes: [] }] }, 'clients.0.client_id'],
  ['a foreign scope', { clients: [{ client_id: 'shop', scopes: ['b'] }] }, 'clients.0.scopes'],
  ['a foreign reader', { served_by: ['acme-shop'] }, 'served_by.0'],
  ['a short life', { access_token_ttl: 59 }, 'access_token_ttl'],
  ['too many scopes', { scopes: Array.from({ length: 101 }, (_, i) => scope(`s${i}`)) }, 'scopes'],
  ['more than 128 KiB', { scopes: Array.from({ length: 100 }, (_, i) => large(`s${i}`)) }, 'scopes'],
  ['an unknown field', { color: 'red' }, 'color'],
])('RES-09 %s is refused and named', async (_, wrong, field) => {
  const input = { identifier: 'https://new.example', name: 'New', ...wrong }
  const { status, body } = await app.admin('POST', '/apis', input)
  expect([status, body.details?.[0]?.field]).toEqual([422, field])
})

test('RES-09 an identifier is unique on the instance, with or without a slash at its end', async () => {
  for (const identifier of ['https://taken.example', 'https://taken.example/']) {
    const input = { identifier, name: 'New', organization_id: acme.id }
    expect((await app.admin('POST', '/apis', input)).status).toBe(409)
  }
  const client = {
    client_id: 'https://taken.example',
    name: 'x',
    type: 'confidential',
    grant_types: [],
    scopes: [],
  }
  const { status, body } = await app.admin('POST', '/clients', client)
  expect([status, body.details[0].field]).toEqual([422, 'client_id'])
})

test('RES-10 an organization has at most 200 APIs, of which a deleted client is gone in one short write', async () => {
  const { id: organization_id } = await addOrganization(app, 'many')
  await addClient(app, 'many-shop', { organization_id })
  const input = (i: number) => ({
    identifier: `https://${i}.many.example`,
    name: `${i}`,
    organization_id,
    clients: [{ client_id: 'many-shop', scopes: [] }],
  })
  for (let i = 0; i < 200; i++) await create(app, '/apis', input(i))
  await app.events()
  const { status, body } = await app.admin('POST', '/apis', input(200))
  expect([status, body.error_description]).toEqual([
    409,
    'The organization already has 200 APIs, which is the maximum.',
  ])
  expect(await app.events()).toEqual([])
  await app.admin('DELETE', '/clients/many-shop')
  const left = await app.context.store.read(q => q.select().from(q.tables.apis))
  const theirs = left.filter(api => api.organization_id === organization_id)
  expect([theirs.length, theirs.flatMap(({ clients }) => clients)]).toEqual([200, []])
})

test('RES-10 changes are recorded, and a deleted client is gone from every API', async () => {
  const api = await create(app, '/apis', {
    identifier: 'https://notes.example',
    name: 'Notes',
    scopes: [scope('notes.read')],
    clients: [{ client_id: 'shop', scopes: ['notes.read'] }],
    served_by: ['shop'],
  })
  await app.events()
  const again = await app.admin('PUT', `/apis/${api.id}`, api)
  expect([again.status, again.body]).toEqual([200, api])
  expect(await app.events()).toEqual([])
  expect((await app.admin('PUT', `/apis/${api.id}`, { identifier: 'https://x.example' })).status).toBe(422)
  await app.admin('PUT', `/apis/${api.id}`, { name: 'Our notes' })
  const about = {
    actor_id: 'gatehouse-admin',
    target_id: api.id,
    target_type: 'api',
    organization_id: 'org_default',
  }
  expect(await app.events()).toEqual([
    {
      ...about,
      type: 'api.updated',
      metadata: { identifier: 'https://notes.example', name: 'Our notes', fields: ['name'] },
    },
  ])
  app.clock.advance(1000)
  await app.admin('DELETE', '/clients/shop')
  const updated_at = iso(app.clock.now())
  const left = { ...api, name: 'Our notes', clients: [], served_by: [], updated_at }
  expect((await app.admin('GET', `/apis/${api.id}`)).body).toEqual(left)
  const fields = ['clients', 'served_by']
  const [updated, ...others] = await app.events()
  expect(updated).toEqual({
    ...about,
    type: 'api.updated',
    metadata: { identifier: 'https://notes.example', name: 'Our notes', fields },
  })
  expect(others.map(({ type }) => type)).toEqual(['client.deleted'])
  await app.admin('DELETE', `/apis/${api.id}`)
  expect((await app.events()).map(({ type }) => type)).toEqual(['api.deleted'])
  expect((await app.admin('GET', `/apis/${api.id}`)).status).toBe(404)
})

test('RES-09 an API may keep a role that was deleted, but not get another unknown one', async () => {
  const role = await create(app, '/roles', { name: 'clerk', permissions: [] })
  const identifier = 'https://orders.example'
  const scopes = [scope('orders.refund', 'clerk')]
  const api = await create(app, '/apis', { identifier, name: 'Orders', scopes })
  await app.admin('DELETE', `/roles/${role.id}`)
  await app.events()
  const change = (body: object) => app.admin('PUT', `/apis/${api.id}`, body)
  const more = [scope('orders.read'), ...api.scopes]
  const changed = await change({ ...api, name: 'Our orders', scopes: more })
  expect([changed.status, changed.body.scopes.map(({ role }: Json) => role)]).toEqual([200, [null, 'clerk']])
  expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
    ['api.updated', { identifier, name: 'Our orders', fields: ['name', 'scopes'] }],
  ])
  const { status, body } = await change({ scopes: [...api.scopes, scope('orders.delete', 'nobody')] })
  expect([status, body.details.map(({ field }: Json) => field)]).toEqual([422, ['scopes.1.role']])
  expect((await app.admin('GET', `/apis/${api.id}`)).body).toEqual(changed.body)
  expect((await change({ scopes: [scope('orders.read')] })).status).toBe(200)
  expect((await change({ scopes })).status).toBe(422)
})

test('RES-10 the deletion of a client reads the APIs of its organization only', async () => {
  const heard: string[] = []
  const stop = hearStatements(text => heard.push(text))
  const own = await startApp()
  await addClient(own, 'shop')
  heard.length = 0
  await own.admin('DELETE', '/clients/shop')
  stop()
  const reads = heard.filter(text => /from "apis"/.test(text))
  expect(reads).toHaveLength(1)
  expect(reads[0]).toMatch(/"organization_id" = /)
})

test('RES-10 an organization takes its APIs along', async () => {
  const { id } = await addOrganization(app, 'gone')
  const input = { identifier: 'https://gone.example', name: 'Gone', organization_id: id }
  const api = await create(app, '/apis', input)
  await app.admin('DELETE', `/organizations/${id}`)
  expect((await app.admin('GET', `/apis/${api.id}`)).status).toBe(404)
  expect((await app.admin('POST', '/apis', { ...input, organization_id: acme.id })).status).toBe(201)
})

test('RES-10 a seed creates, exports and prunes APIs', async () => {
  const own = await startApp()
  await addClient(own, 'shop')
  const text = `apis:
  - identifier: https://notes.example/
    name: Notes
    scopes: [{ name: notes.read, texts: { de: Notizen lesen }, role: admin }]
    clients: [{ client_id: shop, scopes: [notes.read] }]`
  const apply = (content: string, prune = false) =>
    applySeed(own.context, parseSeed(content, 'seed.yaml', {}), { prune })
  await apply(text)
  const { apis } = await exportSeed(own.context, { secrets: false })
  expect(apis).toEqual([
    {
      id: expect.stringMatching(/^api_/),
      identifier: 'https://notes.example/',
      name: 'Notes',
      scopes: [{ name: 'notes.read', texts: { de: 'Notizen lesen' }, role: 'admin', claims: {} }],
      clients: [{ client_id: 'shop', scopes: ['notes.read'] }],
      served_by: [],
      open_to_dynamic_clients: false,
    },
  ])
  await own.events()
  await apply(text)
  expect(await own.events()).toEqual([])
  await apply('apis: []', true)
  expect((await own.admin('GET', '/apis')).body.data).toEqual([])
})

test('RES-01 the key set has the signing key of an API before its first token', async () => {
  const algorithms = async (): Promise<string[]> => {
    const { keys } = await (await app.call('/.well-known/jwks.json')).json()
    return keys.map(({ alg }: { alg: string }) => alg)
  }
  expect(await algorithms()).not.toContain('ES384')
  const input = { identifier: 'https://keyed.example/', name: 'Keyed', access_token_alg: 'ES384' }
  const { body } = await app.admin('POST', '/apis', input)
  expect(await algorithms()).toContain('ES384')
  expect((await app.admin('PUT', `/apis/${body.id}`, { access_token_alg: 'ES512' })).status).toBe(200)
  expect(await algorithms()).toContain('ES512')
})
