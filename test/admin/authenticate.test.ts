import { describe, expect, test } from 'bun:test'
import type { Caller } from '#src/context.ts'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { permissions } from '#src/lib/permission.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { bearer, claimsOf, grantTokens, headerOf, post } from '#test/support/tokens.ts'

const app = await startApp()
const everything = [...permissions].sort()
const scopes = ['openid', 'users:read', 'users:create', 'roles:read', 'admin']
const client = await addClient(app, 'console', { scopes })
const service = (client_id: string, more: Json = {}) =>
  addClient(app, client_id, { grant_types: ['client_credentials'], redirect_uris: [], ...more })

const callerOf = async (token: string): Promise<Caller> => {
  const request = new Request('http://localhost:8080/api/v1/admin/users', { headers: bearer(token) })
  return app.context.authenticate(request)
}
const tokenOf = async (user: Json, scope: string, as = client): Promise<string> =>
  (await grantTokens(app, as, user, { scope })).access_token
const rights = async (token: string) => {
  const caller = await callerOf(token)
  return { permissions: [...caller.permissions].sort(), withheld: [...caller.withheld].sort() }
}

describe('a user', () => {
  const withRole = async (username: string, ...granted: string[]) => {
    await app.admin('POST', '/roles', { name: `role-of-${username}`, permissions: granted })
    return addUser(app, username, { roles: [`role-of-${username}`] })
  }

  test('API-03 has the role permissions that the token’s scopes include; the scope admin includes all', async () => {
    const user = await withRole('reader', 'users:read', 'clients:read')
    expect(await rights(await tokenOf(user, 'openid'))).toEqual({
      permissions: [],
      withheld: ['clients:read', 'users:read'],
    })
    expect(await rights(await tokenOf(user, 'openid users:read roles:read'))).toEqual({
      permissions: ['users:read'],
      withheld: ['clients:read'],
    })
    expect(await rights(await tokenOf(user, 'openid admin'))).toEqual({
      permissions: ['clients:read', 'users:read'],
      withheld: [],
    })
  })

  test('the built-in role admin covers every permission', async () => {
    const user = await addUser(app, 'root', { roles: ['admin'] })
    expect(await rights(await tokenOf(user, 'admin'))).toEqual({ permissions: everything, withheld: [] })
    expect((await rights(await tokenOf(user, 'openid users:read'))).permissions).toEqual(['users:read'])
  })

  test('API-04 roles inherited from groups count', async () => {
    const user = await addUser(app, 'member')
    await app.admin('POST', '/roles', { name: 'auditors', permissions: ['events:read'] })
    const group = await app.admin('POST', '/groups', { name: 'audit', roles: ['auditors'] })
    await app.admin('PUT', `/groups/${group.body.id}/members/${user.id}`)
    const token = await tokenOf(user, 'openid admin')
    expect((await rights(token)).permissions).toContain('events:read')
    expect(claimsOf(token).roles.sort()).toEqual(['auditors', 'user'])
  })

  test('acts as the subject of the token, on the whole instance only from the default organization', async () => {
    const user = await withRole('someone', 'users:read')
    expect(await callerOf(await tokenOf(user, 'openid admin'))).toMatchObject({
      kind: 'user',
      id: user.id,
      email: 'someone@example.com',
      organization_id: 'org_default',
      instance: true,
      scopes: ['openid', 'admin'],
    })
    const acme = await addOrganization(app, 'acme')
    const tenant = await addUser(app, 'tenant', { organization_id: acme.id, roles: ['admin'] })
    const their = await addClient(app, 'their-console', { organization_id: acme.id, scopes })
    expect(await callerOf(await tokenOf(tenant, 'admin', their))).toMatchObject({
      organization_id: acme.id,
      instance: false,
    })
  })

  test('API-01 a lost role, a disabled account and a revocation take effect at the next call', async () => {
    const user = await withRole('falling', 'users:read')
    const token = await tokenOf(user, 'users:read')
    const ask = async () => (await app.admin('GET', '/users', undefined, token)).status
    expect(await ask()).toBe(200)
    await app.admin('PUT', `/users/${user.id}`, { roles: ['user'] })
    expect(await ask()).toBe(403)
    await app.admin('PUT', `/users/${user.id}`, { roles: ['role-of-falling'] })
    expect(await ask()).toBe(200)
    await app.admin('PUT', `/users/${user.id}`, { enabled: false })
    expect(await ask()).toBe(401)
    await app.admin('PUT', `/users/${user.id}`, { enabled: true })
    expect(await ask()).toBe(200)
    await app.admin('DELETE', `/sessions/sess_${claimsOf(token).sid}`)
    expect(await ask()).toBe(401)
  })

  test('a permission that the token lacks is insufficient_scope, and one that the user lacks is forbidden', async () => {
    const user = await withRole('narrow', 'users:read')
    const lacking = await app.admin('GET', '/users', undefined, await tokenOf(user, 'openid'))
    expect(lacking).toMatchObject({ status: 403, body: { error: 'insufficient_scope' } })
    expect(lacking.headers.get('www-authenticate')).toContain('scope="users:read"')
    const refused = await app.admin('GET', '/roles', undefined, await tokenOf(user, 'admin'))
    expect(refused).toMatchObject({ status: 403, body: { error: 'forbidden' } })
  })
})

describe('a client', () => {
  test('API-02 has the permissions in its granted scopes, and acts as no user', async () => {
    const worker = await service('worker', { scopes: ['users:read', 'roles:read', 'reports'] })
    const token = await app.tokenOf('worker', worker.client_secret, 'users:read reports')
    expect(await callerOf(token)).toMatchObject({
      kind: 'client',
      id: 'worker',
      email: null,
      organization_id: 'org_default',
      instance: true,
      scopes: ['users:read', 'reports'],
    })
    expect(await rights(token)).toEqual({ permissions: ['users:read'], withheld: ['roles:read'] })
  })

  test('loses a scope at once when it is taken away', async () => {
    const losing = await service('losing', { scopes: ['users:read', 'roles:read'] })
    const token = await app.tokenOf('losing', losing.client_secret)
    await app.admin('PUT', '/clients/losing', { scopes: ['roles:read'] })
    expect((await rights(token)).permissions).toEqual(['roles:read'])
  })

  test('H-10 its token has no permission once the client is deleted, by itself or by another caller', async () => {
    const gone = await service('gone-client', { scopes: ['admin'] })
    const token = await app.tokenOf('gone-client', gone.client_secret)
    await app.admin('PUT', '/clients/gone-client', { scopes: ['clients:delete'] })
    expect(await app.admin('DELETE', '/clients/gone-client', undefined, token)).toMatchObject({ status: 204 })
    await app.events()
    expect(await rights(token)).toEqual({ permissions: [], withheld: [] })
    const role = { name: 'mine', permissions: ['*'] }
    expect(await app.admin('POST', '/roles', role, token)).toMatchObject({
      status: 403,
      body: { error: 'forbidden' },
    })
    expect(await app.events()).toEqual([])
  })

  test('H-10 its token has no permission when a client of the same id is created later', async () => {
    const first = await service('renewed', { scopes: ['users:read'] })
    const token = await app.tokenOf('renewed', first.client_secret)
    await app.admin('DELETE', '/clients/renewed')
    app.clock.advance(SECOND)
    const second = await service('renewed', { scopes: ['users:read'] })
    expect((await app.admin('GET', '/users', undefined, token)).status).toBe(403)
    const fresh = await app.tokenOf('renewed', second.client_secret)
    expect((await app.admin('GET', '/users', undefined, fresh)).status).toBe(200)
  })

  test('H-10 a user’s token of a deleted client keeps the user’s rights until it expires', async () => {
    const console = await addClient(app, 'short-console', { scopes })
    const user = await addUser(app, 'stays', { roles: ['admin'] })
    const token = await tokenOf(user, 'users:read', console)
    await app.admin('DELETE', '/clients/short-console')
    expect((await rights(token)).permissions).toEqual(['users:read'])
  })

  test('M-10 its token ends with its organization', async () => {
    const gone = await addOrganization(app, 'gone')
    const theirs = await service('gone-worker', { organization_id: gone.id, scopes: ['users:read'] })
    const token = await app.tokenOf('gone-worker', theirs.client_secret)
    expect((await app.admin('GET', '/users', undefined, token)).status).toBe(200)
    await app.admin('DELETE', `/organizations/${gone.id}`)
    expect((await app.admin('GET', '/users', undefined, token)).status).toBe(401)
  })
})

test('M-10 a user’s token ends with the organization, also at userinfo and introspection', async () => {
  const gone = await addOrganization(app, 'gone')
  const user = await addUser(app, 'gone-user', { organization_id: gone.id, roles: ['admin'] })
  const their = await addClient(app, 'gone-app', { organization_id: gone.id, scopes })
  const token = await tokenOf(user, 'openid admin', their)
  const ask = async () => [
    (await app.admin('GET', '/users', undefined, token)).status,
    (await app.call('/oauth/userinfo', { headers: bearer(token) })).status,
  ]
  expect(await ask()).toEqual([200, 200])
  await app.admin('DELETE', `/organizations/${gone.id}`)
  expect(await ask()).toEqual([401, 401])
})

test('R-12 a revoked signing key invalidates the tokens that it signed; sessions continue', async () => {
  const { revokeKey } = await import('#src/tokens/rotation.ts')
  const user = await addUser(app, 'survivor')
  const tokens = await grantTokens(app, client, user, { scope: 'openid' })
  const ask = async (token: string) => (await app.call('/oauth/userinfo', { headers: bearer(token) })).status
  expect(await ask(tokens.access_token)).toBe(200)
  const { kid } = headerOf(tokens.access_token)
  await revokeKey(app.context, kid)
  app.clock.advance(MINUTE)
  expect(await ask(tokens.access_token)).toBe(401)
  const { client_id, client_secret } = client
  const form = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token, client_id, client_secret }
  const { status, body } = await post(app, '/oauth/token', form)
  expect(status).toBe(200)
  expect(await ask(body.access_token)).toBe(200)
})
