import { beforeEach, describe, expect, test } from 'bun:test'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, logInTo, REDIRECT, VERIFIER } from '#test/support/people.ts'

let app: TestApp
beforeEach(async () => {
  app = await startApp()
})

/** Signs a user in at a client of the user's organization, and returns the access token. */
const userToken = async (username: string, client: Json, scope: string): Promise<string> => {
  const { code = '' } = await logInTo(openBrowser(app), client.client_id, username, { scope })
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    client_id: client.client_id,
    client_secret: client.client_secret,
    code_verifier: VERIFIER,
  })
  const answer = await app.call('/oauth/token', { method: 'POST', body })
  return ((await answer.json()) as Json).access_token
}

test('M-12 the built-in admin of a tenant has every right in that tenant, and none elsewhere', async () => {
  const { id } = await addOrganization(app, 'acme')
  const beta = await addOrganization(app, 'beta')
  const client = await addClient(app, 'console', { organization_id: id, scopes: ['openid', 'admin'] })
  await addUser(app, 'alice', { organization_id: id, roles: ['admin'] })
  const token = await userToken('alice', client, 'openid admin')
  const ask = async (method: string, path: string, body?: Json) =>
    (await app.admin(method, path, body, token)).status

  const { body: role } = await app.admin(
    'POST',
    '/roles',
    { name: 'own', permissions: ['events:read'] },
    token,
  )
  expect(role.organization_id).toBe(id)
  expect(await ask('PUT', '/organizations/acme', { display_name: 'ACME' })).toBe(200)
  const outside = [
    'role_admin',
    'role_user',
    (await app.admin('GET', `/roles?organization_id=${beta.id}`)).body.data[0].id,
  ]
  for (const role_id of outside) {
    expect(await ask('GET', `/roles/${role_id}`)).toBe(404)
    expect(await ask('PUT', `/roles/${role_id}`, { description: 'x' })).toBe(404)
    expect(await ask('DELETE', `/roles/${role_id}`)).toBe(404)
  }
  for (const reference of ['default', 'org_default', 'beta', beta.id])
    expect(await ask('PUT', `/organizations/${reference}`, { display_name: 'x' })).toBe(404)
  expect(await ask('GET', '/clients/gatehouse-admin')).toBe(404)
  expect(await ask('POST', '/clients/gatehouse-admin/secret')).toBe(404)
  expect(await ask('DELETE', '/organizations/acme')).toBe(403)
  expect(await ask('POST', '/roles', { name: 'x', permissions: [], organization_id: 'org_default' })).toBe(
    422,
  )
})

test('a user’s rights are those of the current roles, direct and inherited, limited to the token’s scopes', async () => {
  const client = await addClient(app, 'console', { scopes: ['openid', 'roles:read', 'groups:read'] })
  await create(app, '/roles', { name: 'reader', permissions: ['roles:read', 'clients:read'] })
  const group = await create(app, '/groups', { name: 'Staff', roles: ['reader'] })
  const user = await addUser(app, 'alice')
  const token = await userToken('alice', client, 'openid roles:read groups:read')
  const ask = async (path: string) => {
    const { status, body } = await app.admin('GET', path, undefined, token)
    return status === 200 ? status : body.error
  }
  expect(await ask('/roles')).toBe('forbidden')
  await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
  expect(await ask('/roles')).toBe(200)
  expect(await ask('/clients')).toBe('insufficient_scope')
  expect(await ask('/groups')).toBe('forbidden')
  await app.admin('PUT', `/groups/${group.id}`, { roles: [] })
  expect(await ask('/roles')).toBe('forbidden')
})

describe('refusals follow the documented order', () => {
  test('API-09 permission, body, existence, rights, stored rows, conflict', async () => {
    const token = await callerOf(app, 'org_default', ['roles:create', 'roles:update'])
    await create(app, '/roles', { name: 'taken', permissions: ['events:read'] })
    const role = await create(app, '/roles', { name: 'strong', permissions: ['events:read'] })
    const ask = async (method: string, path: string, body: Json) =>
      (await app.admin(method, path, body, token)).status
    // The 403 for a missing permission comes before any check of the body or the target.
    expect(await ask('POST', '/clients', '{"broken')).toBe(403)
    expect(await ask('DELETE', '/roles/nowhere', undefined)).toBe(403)
    // 400 comes before 422, and the 422 of the schema comes before 404.
    expect(await ask('PUT', '/roles/nowhere', '{"broken')).toBe(400)
    expect(await ask('PUT', '/roles/nowhere', { colour: 'red' })).toBe(422)
    // 404 comes before the 403 for a permission that the caller cannot grant.
    expect(await ask('PUT', '/roles/nowhere', { permissions: ['events:read'] })).toBe(404)
    // The 403 for a forbidden grant or a forbidden target comes before the 422 for references and read-only
    // fields. It also comes before the 409.
    const foreign = { name: 'x', organization_id: 'org_nowhere' }
    expect(await ask('POST', '/roles', { ...foreign, permissions: ['events:read'] })).toBe(403)
    expect(await ask('POST', '/roles', { ...foreign, permissions: [] })).toBe(422)
    expect(await ask('PUT', `/roles/${role.id}`, { name: 'other' })).toBe(403)
    expect(await ask('PUT', '/roles/role_admin', { name: 'other' })).toBe(403)
    expect(await ask('POST', '/roles', { name: 'taken', permissions: ['events:read'] })).toBe(403)
    // 422 comes before 409.
    expect(await ask('PUT', '/roles/role_user', { name: 'other', description: 'x' })).toBe(422)
    expect(await ask('POST', '/roles', { name: 'taken', permissions: [] })).toBe(409)
  })
})

test('API-10 a new object without an organization belongs to the caller’s', async () => {
  const { id } = await addOrganization(app, 'acme')
  const token = await callerOf(app, id, ['admin'])
  const bodies: Record<string, Json> = {
    '/roles': { name: 'own', permissions: [] },
    '/groups': { name: 'own', roles: ['user'] },
    '/clients': { client_id: 'own', name: 'Own', type: 'confidential', grant_types: [], scopes: [] },
  }
  for (const [path, body] of Object.entries(bodies)) {
    expect((await app.admin('POST', path, body, token)).body.organization_id).toBe(id)
    expect(
      (await app.admin('POST', path, { ...body, client_id: body.client_id && 'home' })).body.organization_id,
    ).toBe('org_default')
  }
})
