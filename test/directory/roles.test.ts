import { beforeEach, describe, expect, test } from 'bun:test'
import { startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create, listAll, refused } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'

let app: TestApp
const ACTOR = 'gatehouse-admin'
const editor = { name: 'editor', permissions: ['users:read'] }

beforeEach(async () => {
  app = await startApp()
  await app.admin('GET', '/roles')
  await app.events()
})

const event = (
  type: string,
  target_id: string,
  metadata: Record<string, unknown>,
  organization_id = 'org_default',
) => ({
  type,
  actor_id: ACTOR,
  target_id,
  target_type: 'role',
  organization_id,
  metadata,
})

test('ROL-04 a role is created with its defaults, read, listed, and recorded', async () => {
  const { status, body: role } = await app.admin('POST', '/roles', editor)
  expect(status).toBe(201)
  expect(role).toEqual({
    id: expect.stringMatching(/^role_[0-9a-f-]{36}$/),
    name: 'editor',
    description: '',
    organization_id: 'org_default',
    built_in: false,
    permissions: ['users:read'],
    user_count: 0,
    created_at: '2026-01-15T12:00:00.000Z',
    updated_at: '2026-01-15T12:00:00.000Z',
  })
  expect((await app.admin('GET', `/roles/${role.id}`)).body).toEqual(role)
  expect(await listAll(app, '/roles?order=asc')).toContainEqual(role)
  expect(await app.events()).toEqual([
    event('role.created', role.id, { name: 'editor', permissions: ['users:read'] }),
  ])
})

test('ROL-07 every organization has the built-in roles; the default one’s have fixed ids', async () => {
  const admin = { name: 'admin', built_in: true, permissions: ['*'], user_count: 0 }
  const user = {
    name: 'user',
    built_in: true,
    permissions: ['profile:read', 'profile:update'],
    user_count: 0,
  }
  expect((await app.admin('GET', '/roles/role_admin')).body).toMatchObject(admin)
  expect((await app.admin('GET', '/roles/role_user')).body).toMatchObject(user)
  const { id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  expect(await listAll(app, `/roles?organization_id=${id}&order=asc`)).toMatchObject([admin, user])
})

test('ROL-01 a malformed role is refused by field, and nothing is stored', async () => {
  const bad: [object, string[]][] = [
    [{}, ['name', 'permissions']],
    [{ ...editor, name: '' }, ['name']],
    [{ ...editor, name: 'x'.repeat(129) }, ['name']],
    [{ ...editor, name: 7 }, ['name']],
    [{ ...editor, description: null }, ['description']],
    [{ ...editor, permissions: 'users:read' }, ['permissions']],
    [{ ...editor, permissions: ['users:read', '*'] }, ['permissions.1']],
    [{ ...editor, permissions: ['users:*'] }, ['permissions.0']],
    [{ ...editor, permissions: ['admin'] }, ['permissions.0']],
    [{ ...editor, organization_id: 'org_nowhere' }, ['organization_id']],
    [{ ...editor, built_in: true, id: 'role_x' }, ['built_in', 'id']],
    [[], ['']],
  ]
  for (const [body, fields] of bad) expect(refused(await app.admin('POST', '/roles', body))).toEqual(fields)
  expect((await app.admin('GET', '/roles')).body.pagination.total).toBe(2)
  expect(await app.events()).toEqual([])
})

test('ROL-03 a name is unique in its organization, and can be used in others', async () => {
  await create(app, '/roles', editor)
  expect((await app.admin('POST', '/roles', editor)).body).toMatchObject({ status: 409, error: 'conflict' })
  expect((await app.admin('POST', '/roles', { ...editor, name: 'admin' })).status).toBe(409)
  const { id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  expect(await create(app, '/roles', { ...editor, organization_id: id })).toMatchObject({
    organization_id: id,
  })
})

describe('PUT', () => {
  test('ROL-06 changes only the given fields', async () => {
    const role = await create(app, '/roles', editor)
    app.clock.advance(1000)
    await app.events()
    const { status, body } = await app.admin('PUT', `/roles/${role.id}`, { description: 'Edits.' })
    expect([status, body]).toEqual([
      200,
      { ...role, description: 'Edits.', updated_at: '2026-01-15T12:00:01.000Z' },
    ])
    await app.admin('PUT', `/roles/${role.id}`, { permissions: ['events:read', 'events:read'] })
    expect((await app.admin('GET', `/roles/${role.id}`)).body).toEqual({
      ...body,
      permissions: ['events:read'],
    })
    expect(await app.events()).toEqual([
      event('role.updated', role.id, { name: 'editor', fields: ['description'] }),
      event('role.updated', role.id, {
        name: 'editor',
        fields: ['permissions'],
        permissions: ['events:read'],
      }),
    ])
  })

  test('without a change records nothing', async () => {
    const role = await create(app, '/roles', editor)
    app.clock.advance(1000)
    await app.events()
    for (const body of [{}, role, { permissions: role.permissions }])
      expect(await app.admin('PUT', `/roles/${role.id}`, body)).toMatchObject({ status: 200, body: role })
    const { body: admin } = await app.admin('GET', '/roles/role_admin')
    expect(await app.admin('PUT', '/roles/role_admin', admin)).toMatchObject({ status: 200, body: admin })
    expect(await app.events()).toEqual([])
  })

  test('ROL-10 refuses immutable and unknown fields', async () => {
    const role = await create(app, '/roles', editor)
    const fixed = {
      id: 'role_x',
      name: 'other',
      organization_id: 'org_x',
      built_in: true,
      user_count: 9,
      created_at: 'now',
      updated_at: 'now',
    }
    for (const [field, value] of Object.entries(fixed))
      expect(refused(await app.admin('PUT', `/roles/${role.id}`, { [field]: value }))).toEqual([field])
    expect(refused(await app.admin('PUT', `/roles/${role.id}`, { colour: 'red' }))).toEqual(['colour'])
    expect(refused(await app.admin('PUT', `/roles/${role.id}`, { permissions: ['*'] }))).toEqual([
      'permissions',
    ])
    expect((await app.admin('GET', `/roles/${role.id}`)).body).toEqual(role)
  })

  test('ROL-09 refuses changes of built-in roles', async () => {
    for (const id of ['role_admin', 'role_user'])
      for (const body of [{ description: 'Mine.' }, { permissions: ['users:read'] }])
        expect(await app.admin('PUT', `/roles/${id}`, body)).toMatchObject({
          status: 409,
          body: { error: 'conflict' },
        })
  })
})

test('ROL-02 deleting a role takes it from users and groups; a second deletion is 404', async () => {
  const role = await create(app, '/roles', editor)
  const user = await addUser(app, 'alice', { roles: ['user', 'editor'] })
  const group = await create(app, '/groups', { name: 'Staff', roles: ['editor'] })
  expect((await app.admin('GET', `/roles/${role.id}`)).body.user_count).toBe(1)
  await app.events()
  expect((await app.admin('DELETE', `/roles/${role.id}`)).status).toBe(204)
  expect((await app.admin('GET', `/users/${user.id}`)).body.roles).toEqual(['user'])
  expect((await app.admin('GET', `/groups/${group.id}`)).body.roles).toEqual([])
  expect((await app.admin('GET', `/roles/${role.id}`)).status).toBe(404)
  expect((await app.admin('DELETE', `/roles/${role.id}`)).status).toBe(404)
  expect(await app.events()).toEqual([event('role.deleted', role.id, { name: 'editor' })])
  const again = await create(app, '/roles', editor)
  expect([again.id === role.id, again.user_count]).toEqual([false, 0])
  expect((await app.admin('GET', `/users/${user.id}`)).body.roles).toEqual(['user'])
})

test('ROL-05 built-in roles cannot be deleted', async () => {
  for (const id of ['role_admin', 'role_user'])
    expect((await app.admin('DELETE', `/roles/${id}`)).status).toBe(409)
})

describe('the list', () => {
  test('ROL-08 is in order of creation, ascending or descending, page by page, with exact totals', async () => {
    for (const name of ['c', 'a', 'b']) {
      app.clock.advance(1)
      await create(app, '/roles', { ...editor, name })
    }
    const names = async (query: string) => (await listAll(app, `/roles${query}`)).map(role => role.name)
    expect(await names('?order=asc')).toEqual(['admin', 'user', 'c', 'a', 'b'])
    expect(await names('')).toEqual(['b', 'a', 'c', 'user', 'admin'])
    const { body } = await app.admin('GET', '/roles?limit=3')
    expect(body.pagination).toEqual({ total: 5, limit: 3, has_more: true, next_cursor: expect.any(String) })
    expect((await app.admin('GET', '/roles?organization_id=org_x')).body).toEqual({
      data: [],
      pagination: { total: 0, limit: 20, has_more: false },
    })
  })

  test('API-11 refuses bad values and unknown names with 422, a bad cursor with 400', async () => {
    for (const query of [
      'limit=0',
      'limit=101',
      'limit=x',
      'limit=1.5',
      'order=up',
      'sort=name',
      'limit=1&limit=2',
    ])
      expect(refused(await app.admin('GET', `/roles?${query}`))).toEqual([query.split('=')[0] ?? ''])
    const { body } = await app.admin('GET', '/roles?limit=1')
    const { next_cursor } = body.pagination
    for (const query of [
      'cursor=x',
      `cursor=${next_cursor}x`,
      `order=asc&cursor=${next_cursor}`,
      `organization_id=org_default&cursor=${next_cursor}`,
    ])
      expect((await app.admin('GET', `/roles?${query}`)).body).toMatchObject({
        error: 'invalid_request',
        status: 400,
      })
    expect((await app.admin('GET', `/groups?cursor=${next_cursor}`)).status).toBe(400)
  })
})

test('O-70 a caller cannot create, change or delete a role with permissions beyond their own', async () => {
  const token = await callerOf(app, 'org_default', [
    'roles:create',
    'roles:update',
    'roles:delete',
    'users:read',
  ])
  const strong = await create(app, '/roles', { name: 'strong', permissions: ['users:delete'] })
  const weak = await create(app, '/roles', { name: 'weak', permissions: ['users:read', 'profile:update'] })
  await app.events()
  const refusedCalls: [string, string, object?][] = [
    ['POST', '/roles', { name: 'x', permissions: ['users:read', 'users:delete'] }],
    ['PUT', `/roles/${weak.id}`, { permissions: ['users:delete'] }],
    ['PUT', `/roles/${weak.id}`, { permissions: ['*'] }],
    ['PUT', `/roles/${strong.id}`, { permissions: [] }],
    ['PUT', `/roles/${strong.id}`, { description: 'x' }],
    ['PUT', '/roles/role_admin', { description: 'x' }],
    ['DELETE', `/roles/${strong.id}`],
    ['DELETE', '/roles/role_admin'],
  ]
  for (const [method, path, body] of refusedCalls)
    expect(await app.admin(method, path, body, token)).toMatchObject({
      status: 403,
      body: { error: 'forbidden' },
    })
  expect(await app.events()).toEqual([])
  const own = await app.admin(
    'POST',
    '/roles',
    { name: 'own', permissions: ['users:read', 'profile:read'] },
    token,
  )
  expect(own.status).toBe(201)
  expect((await app.admin('PUT', `/roles/${weak.id}`, { permissions: ['roles:create'] }, token)).status).toBe(
    200,
  )
  expect((await app.admin('DELETE', `/roles/${weak.id}`, undefined, token)).status).toBe(204)
})
