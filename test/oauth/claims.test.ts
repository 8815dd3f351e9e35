import { beforeEach, expect, test } from 'bun:test'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create, refused } from '#test/support/callers.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { basic, bearer, claimsOf, get, grantTokens, post } from '#test/support/tokens.ts'

let app: TestApp
let ada: Json

beforeEach(async () => {
  app = await startApp()
  await create(app, '/roles', { name: 'editor', permissions: [] })
  ada = await addUser(app, 'ada')
  for (const name of ['writers', 'admins']) {
    const group = await create(app, '/groups', { name, roles: name === 'writers' ? ['editor'] : [] })
    await app.admin('PUT', `/groups/${group.id}/members/${ada.id}`)
  }
})

const scopes = ['openid', 'profile', 'phone', 'address', 'groups', 'roles', 'team']
const add = (more: Json = {}) => addClient(app, 'web', { scopes, ...more })
const all = async (client: Json, scope: string) => {
  const tokens = await grantTokens(app, client, ada, { scope })
  const { body: userinfo } = await get(app, '/oauth/userinfo', { headers: bearer(tokens.access_token) })
  return { id: claimsOf(tokens.id_token), access: claimsOf(tokens.access_token), userinfo, tokens }
}
const setAttributes = (attributes: Json) => app.admin('PUT', `/users/${ada.id}`, { attributes })

test('CLM-01 groups and roles are the names of groups and effective roles, in ID token and userinfo', async () => {
  const client = await add()
  const { id, access, userinfo } = await all(client, 'openid groups roles')
  const expected = { groups: ['admins', 'writers'], roles: ['editor', 'user'] }
  expect([id, userinfo]).toEqual([expect.objectContaining(expected), expect.objectContaining(expected)])
  expect([access.groups, access.roles]).toEqual([undefined, expected.roles])
  const without = await all(client, 'openid')
  for (const claims of [without.id, without.userinfo])
    for (const name of ['groups', 'roles']) expect(claims).not.toHaveProperty(name)
})

test('CLM-02 profile, phone and address come from attributes of their names, where the types fit', async () => {
  const client = await add()
  const profile = {
    picture: 'https://a.example/p.png',
    zoneinfo: 'Europe/Lisbon',
    locale: 'pt',
    website: 'https://a.example',
  }
  await setAttributes({
    ...profile,
    phone_number: '+351 1',
    phone_number_verified: true,
    address: { locality: 'Porto', country: 1, extra: 'x' },
  })
  const { userinfo, id } = await all(client, 'openid profile phone address')
  const phone = { phone_number: '+351 1', phone_number_verified: true }
  expect(userinfo).toMatchObject({
    ...profile,
    ...phone,
    address: { locality: 'Porto' },
    name: 'Ada Example',
  })
  expect(userinfo.address).toEqual({ locality: 'Porto' })
  for (const name of ['picture', 'phone_number', 'address']) expect(id).not.toHaveProperty(name)
  const { userinfo: bare } = await all(client, 'openid')
  expect(Object.keys(bare)).toEqual(['sub'])
  await setAttributes({
    picture: 1,
    name: 'Eve',
    sub: 'x',
    phone_number: ['x'],
    phone_number_verified: 'yes',
    address: 'Rua 1',
  })
  const { userinfo: odd } = await all(client, 'openid profile phone address')
  expect(odd).toMatchObject({ name: 'Ada Example', address: { formatted: 'Rua 1' } })
  for (const name of ['picture', 'phone_number', 'phone_number_verified'])
    expect(odd).not.toHaveProperty(name)
  await setAttributes({ phone_number: '+1', phone_number_verified: 'true' })
  expect((await all(client, 'openid phone')).userinfo).toMatchObject({
    phone_number: '+1',
    phone_number_verified: false,
  })
})

test('CLM-03 discovery names the scopes and claims', async () => {
  const { body } = await get(app, '/.well-known/openid-configuration')
  expect(body.scopes_supported).toEqual(['openid', 'profile', 'email', 'phone', 'address', 'groups', 'roles'])
  expect(body.claims_supported).toEqual(
    expect.arrayContaining(['groups', 'roles', 'picture', 'phone_number', 'address']),
  )
})

const mapping = {
  tenant: 'user.attributes.tenant',
  'https://a.example/plan': 'client.attributes.plan',
  seat: 'user.attributes.office.seat',
  groups: 'groups[].name',
  mail: 'user.email',
  team: { from: 'roles[].name', scope: 'team' },
  none: 'user.attributes.none',
}

test('CLM-04 a mapping adds claims to all tokens and userinfo, some with a scope', async () => {
  const client = await add({ claims: mapping, attributes: { plan: { name: 'gold' } } })
  await setAttributes({ tenant: 't1', office: { seat: 4 } })
  const mapped = {
    tenant: 't1',
    'https://a.example/plan': { name: 'gold' },
    seat: 4,
    groups: ['admins', 'writers'],
    mail: 'ada@example.com',
  }
  const { tokens, ...answers } = await all(client, 'openid offline_access'.replace(' offline_access', ''))
  for (const claims of Object.values(answers)) {
    expect(claims).toMatchObject(mapped)
    for (const name of ['none', 'team']) expect(claims).not.toHaveProperty(name)
  }
  const withTeam = await all(client, 'openid team')
  for (const name of ['id', 'access', 'userinfo'] as const)
    expect(withTeam[name].team).toEqual(['editor', 'user'])
  await setAttributes({ tenant: 't2' })
  const { refresh_token } = tokens
  const headers = basic(client.client_id, client.client_secret)
  const { body } = await post(
    app,
    '/oauth/token',
    { grant_type: 'refresh_token', refresh_token },
    { headers },
  )
  expect(claimsOf(body.access_token)).toMatchObject({ tenant: 't2', groups: mapped.groups })
  const machine = await addClient(app, 'machine', {
    ...{ grant_types: ['client_credentials'], redirect_uris: [], scopes: ['x'], attributes: { plan: 'own' } },
    claims: { plan: 'client.attributes.plan', tenant: 'user.attributes.tenant', groups: 'groups[].name' },
  })
  const own = claimsOf(await app.tokenOf('machine', machine.client_secret))
  expect([own.plan, own.tenant]).toEqual(['own', undefined])
})

test('CLM-06 mappings that are malformed, too large or name reserved claims are refused by name', async () => {
  await add()
  const put = (claims: Json) => app.admin('PUT', '/clients/web', { claims })
  const paths = [
    '',
    'user',
    'user.password_hash',
    'user.attributes',
    'user.attributes.',
    'user.attributes..a',
    'user.attributes.__proto__.x'.replace('__proto__', '0'),
    'organization.settings',
    'user.id',
    'groups',
    'groups[].permissions',
    'groups[0].name',
    ' user.email',
    'user.email ',
    'user.attributes.a || 1',
    `user.attributes${'.a'.repeat(9)}`,
    'constructor.name',
    1,
    null,
    [],
    {},
    { from: 'user.email' },
    { from: 'user.email', scope: 'a b' },
    { from: 'user.x', scope: 'a' },
    { from: 'user.email', scope: 'a', x: 1 },
  ]
  for (const path of paths) expect(refused(await put({ mail: path }))).toEqual(['claims.mail'])
  const names = [
    'iss',
    'sub',
    'aud',
    'exp',
    'nbf',
    'iat',
    'jti',
    'scope',
    'client_id',
    'auth_time',
    'acr',
    'amr',
    'sid',
    'cnf',
    'act',
    'org_id',
    'email',
    'email_verified',
    'name',
    'nonce',
    'at_hash',
    'azp',
    'phone_number',
    'address',
    'updated_at',
    'preferred_username',
    'active',
    'username',
    'events',
    'groups',
    'roles',
  ]
  for (const name of names)
    expect(refused(await put({ [name]: 'user.username' }))).toEqual([`claims.${name}`])
  for (const name of ['', 'a b', 'é', 'x'.repeat(129)])
    expect(refused(await put({ [name]: 'user.email' }))).toEqual([`claims.${name}`])
  expect(refused(await put(JSON.parse('{"__proto__":"user.email"}')))).toEqual(['claims.__proto__'])
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`c${i}`, 'user.email']))
  const long = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`c${i}`, `user.attributes${`.${'a'.repeat(60)}`.repeat(4)}`]),
  )
  for (const wrong of ['x', [], 1, null, many(21), many(10_000), long])
    expect(refused(await put(wrong))).toEqual(['claims'])
  expect((await app.admin('GET', '/clients/web')).body.claims).toEqual({})
  expect((await put(many(20))).status).toBe(200)
})

test('CLM-07 mapped claims reach only values of the user and client, replace no claim, and have at most 4 KiB', async () => {
  const claims = {
    a: 'user.attributes.big',
    b: 'user.attributes.constructor.name',
    c: 'user.attributes.list.length',
    d: 'user.attributes.small',
    e: 'user.attributes.nothing',
  }
  const client = await add({ claims })
  await setAttributes({ big: 'x'.repeat(4090), list: [1], small: 'ok', nothing: null })
  const { id, access, userinfo } = await all(client, 'openid')
  for (const answer of [id, access, userinfo]) {
    expect(answer.d).toBe('ok')
    for (const name of ['a', 'b', 'c', 'e']) expect(answer).not.toHaveProperty(name)
  }
  await setAttributes({ big: 'x'.repeat(4000) })
  expect((await all(client, 'openid')).access.a).toHaveLength(4000)
})
