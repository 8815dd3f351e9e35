import { beforeEach, describe, expect, test } from 'bun:test'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create, listAll, refused } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'

let app: TestApp

beforeEach(async () => {
  app = await startApp()
  await create(app, '/roles', { name: 'editor', permissions: ['users:read'] })
  await app.events()
})

const event = (type: string, target_id: string, metadata: Record<string, unknown>) => ({
  type,
  actor_id: 'gatehouse-admin',
  target_id,
  target_type: 'group',
  organization_id: 'org_default',
  metadata,
})

const rolesOf = async (user: Json): Promise<string[]> =>
  (await app.context.store.read(q => effectiveRoles(q, user.id))).map(role => role.name)

test('GRP-01 a group is created with its defaults, read, listed, and recorded', async () => {
  const { status, body: group } = await app.admin('POST', '/groups', {
    name: 'Staff',
    roles: ['user', 'editor', 'user'],
  })
  expect(status).toBe(201)
  expect(group).toEqual({
    id: expect.stringMatching(/^grp_[0-9a-f-]{36}$/),
    name: 'Staff',
    description: '',
    organization_id: 'org_default',
    roles: ['editor', 'user'],
    member_count: 0,
    created_at: '2026-01-15T12:00:00.000Z',
    updated_at: '2026-01-15T12:00:00.000Z',
  })
  expect((await app.admin('GET', `/groups/${group.id}`)).body).toEqual(group)
  expect(await create(app, '/groups', { name: 'Empty' })).toMatchObject({ roles: [] })
  expect(await listAll(app, '/groups')).toContainEqual(group)
  expect((await app.admin('GET', '/groups')).body.pagination.total).toBe(2)
  expect((await app.events())[0]).toEqual(
    event('group.created', group.id, { name: 'Staff', roles: ['editor', 'user'] }),
  )
})

test('a malformed group is refused by field, and nothing is stored', async () => {
  const { id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  await create(app, '/roles', { name: 'theirs', permissions: [], organization_id: id })
  await app.events()
  const bad: [object, string[]][] = [
    [{}, ['name']],
    [{ name: '' }, ['name']],
    [{ name: 'x'.repeat(129) }, ['name']],
    [{ name: 'x', description: 7 }, ['description']],
    [{ name: 'x', roles: 'user' }, ['roles']],
    [{ name: 'x', roles: ['nobody'] }, ['roles']],
    [{ name: 'x', roles: ['user', 'theirs'] }, ['roles']],
    [{ name: 'x', organization_id: 'org_x' }, ['organization_id']],
    [{ name: 'x', id: 'grp_x', member_count: 0, members: [] }, ['id', 'member_count', 'members']],
  ]
  for (const [body, fields] of bad) expect(refused(await app.admin('POST', '/groups', body))).toEqual(fields)
  expect((await app.admin('GET', '/groups')).body.pagination.total).toBe(0)
  expect(await app.events()).toEqual([])
})

test('a name is unique in its organization', async () => {
  const { id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  const staff = await create(app, '/groups', { name: 'Staff' })
  await create(app, '/groups', { name: 'Other' })
  expect((await app.admin('POST', '/groups', { name: 'Staff' })).status).toBe(409)
  expect((await app.admin('PUT', `/groups/${staff.id}`, { name: 'Other' })).status).toBe(409)
  expect(await create(app, '/groups', { name: 'Staff', organization_id: id })).toMatchObject({
    organization_id: id,
  })
})

describe('PUT', () => {
  test('GRP-03 changes only the given fields; members get the new roles at once', async () => {
    const group = await create(app, '/groups', { name: 'Staff', roles: ['editor'] })
    const user = await addUser(app, 'alice')
    await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
    expect(await rolesOf(user)).toEqual(['editor', 'user'])
    expect((await app.admin('GET', '/users?role=editor')).body.data).toEqual([])
    expect(await listAll(app, '/groups?role=editor')).toMatchObject([{ id: group.id }])
    app.clock.advance(1000)
    await app.events()
    const { body } = await app.admin('PUT', `/groups/${group.id}`, { name: 'Crew', roles: ['admin'] })
    expect(body).toEqual({
      ...group,
      name: 'Crew',
      roles: ['admin'],
      member_count: 1,
      updated_at: '2026-01-15T12:00:01.000Z',
    })
    expect(await rolesOf(user)).toEqual(['admin', 'user'])
    expect((await app.admin('GET', `/users/${user.id}`)).body.roles).toEqual(['user'])
    expect(await app.events()).toEqual([
      event('group.updated', group.id, {
        name: 'Crew',
        fields: ['name', 'roles'],
        roles: ['admin'],
        roles_added: ['admin'],
        roles_removed: ['editor'],
      }),
    ])
  })

  test('without a change records nothing', async () => {
    const group = await create(app, '/groups', { name: 'Staff', roles: ['editor', 'user'] })
    app.clock.advance(1000)
    await app.events()
    for (const body of [{}, group, { roles: ['user', 'editor'] }])
      expect(await app.admin('PUT', `/groups/${group.id}`, body)).toMatchObject({ status: 200, body: group })
    expect(await app.events()).toEqual([])
  })

  test('refuses immutable fields and unknown roles', async () => {
    const group = await create(app, '/groups', { name: 'Staff' })
    const fixed = { id: 'grp_x', organization_id: 'org_x', member_count: 9, created_at: '', updated_at: '' }
    for (const [field, value] of Object.entries({ ...fixed, roles: ['nobody'], colour: 'red' }))
      expect(refused(await app.admin('PUT', `/groups/${group.id}`, { [field]: value }))).toEqual([field])
  })
})

describe('members', () => {
  test('GRP-02 EVT-24 are added, removed, counted, listed and recorded', async () => {
    const group = await create(app, '/groups', { name: 'Staff', roles: ['editor'] })
    const path = `/groups/${group.id}/members`
    const users = [await addUser(app, 'alice'), await addUser(app, 'bob'), await addUser(app, 'carol')]
    app.clock.advance(1000)
    await app.events()
    for (const user of users) expect((await app.admin('PUT', `${path}/${user.id}`)).status).toBe(204)
    expect((await app.admin('PUT', `${path}/${users[0].id}`)).status).toBe(204)
    expect(await app.events()).toEqual(
      users.map(user =>
        event('group.updated', group.id, {
          name: 'Staff',
          member_added: user.id,
          roles_added: ['editor'],
        }),
      ),
    )
    expect(await listAll(app, `${path}?order=asc`)).toEqual(users)
    expect(await listAll(app, path)).toEqual(users.toReversed())
    const { body } = await app.admin('GET', `${path}?limit=2`)
    expect(body.pagination).toMatchObject({ total: 3, has_more: true })
    expect((await app.admin('GET', `/groups/${group.id}`)).body).toMatchObject({
      member_count: 3,
      updated_at: '2026-01-15T12:00:01.000Z',
    })

    expect((await app.admin('DELETE', `${path}/${users[0].id}`)).status).toBe(204)
    expect((await app.admin('DELETE', `${path}/${users[0].id}`)).status).toBe(404)
    expect(await app.events()).toEqual([
      event('group.updated', group.id, {
        name: 'Staff',
        member_removed: users[0].id,
        roles_removed: ['editor'],
      }),
    ])
    expect([await rolesOf(users[0]), await rolesOf(users[1])]).toEqual([['user'], ['editor', 'user']])
    await app.admin('DELETE', `/users/${users[1].id}`)
    expect(await listAll(app, path)).toEqual([users[2]])
    expect((await app.admin('GET', `/groups/${group.id}`)).body.member_count).toBe(1)
  })

  test('M-12 unknown users, and users of another organization, are not found', async () => {
    const { id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
    const group = await create(app, '/groups', { name: 'Staff' })
    const theirs = await addUser(app, 'alice', { organization_id: id })
    await app.events()
    for (const method of ['PUT', 'DELETE']) {
      for (const user_id of [theirs.id, 'usr_nobody', group.id])
        expect((await app.admin(method, `/groups/${group.id}/members/${user_id}`)).status).toBe(404)
      expect((await app.admin(method, `/groups/grp_x/members/${theirs.id}`)).status).toBe(404)
    }
    expect((await app.admin('GET', '/groups/grp_x/members')).status).toBe(404)
    expect(await app.events()).toEqual([])
  })
})

test('deleting a group takes its roles from its members; a second deletion is 404', async () => {
  const group = await create(app, '/groups', { name: 'Staff', roles: ['editor'] })
  const user = await addUser(app, 'alice')
  await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
  await app.events()
  expect((await app.admin('DELETE', `/groups/${group.id}`)).status).toBe(204)
  expect(await app.events()).toEqual([
    event('group.deleted', group.id, { name: 'Staff', roles_removed: ['editor'] }),
  ])
  expect(await rolesOf(user)).toEqual(['user'])
  for (const method of ['GET', 'DELETE'])
    expect((await app.admin(method, `/groups/${group.id}`)).status).toBe(404)
  expect(await create(app, '/groups', { name: 'Staff' })).toMatchObject({ member_count: 0, roles: [] })
})

test('the list filters by organization', async () => {
  const { id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  for (const organization_id of ['org_default', id])
    for (const name of ['a', 'b', 'c']) await create(app, '/groups', { name, organization_id })
  const rows = await listAll(app, `/groups?organization_id=${id}`)
  expect(rows.map(row => [row.name, row.organization_id])).toEqual(['c', 'b', 'a'].map(name => [name, id]))
  expect((await app.admin('GET', `/groups?organization_id=${id}`)).body.pagination.total).toBe(3)
  expect((await app.admin('GET', '/groups')).body.pagination.total).toBe(6)
  expect(refused(await app.admin('GET', '/groups?search=x'))).toEqual(['search'])
})

test('O-70 a caller cannot give a group, or add to a group, permissions beyond their own', async () => {
  const verbs = ['groups:create', 'groups:update', 'groups:delete', 'groups:read']
  const token = await callerOf(app, 'org_default', [...verbs, 'users:read'])
  const strong = await create(app, '/groups', { name: 'strong', roles: ['admin'] })
  const weak = await create(app, '/groups', { name: 'weak', roles: ['editor'] })
  const user = await addUser(app, 'alice')
  const admin = await addUser(app, 'root', { roles: ['admin'] })
  await app.events()
  const refusedCalls: [string, string, object?][] = [
    ['POST', '/groups', { name: 'x', roles: ['editor', 'admin'] }],
    ['PUT', `/groups/${weak.id}`, { roles: ['admin'] }],
    ['PUT', `/groups/${strong.id}`, { roles: [] }],
    ['PUT', `/groups/${strong.id}`, { name: 'x' }],
    ['DELETE', `/groups/${strong.id}`],
    ['PUT', `/groups/${strong.id}/members/${user.id}`],
    ['DELETE', `/groups/${strong.id}/members/${user.id}`],
    ['PUT', `/groups/${weak.id}/members/${admin.id}`],
  ]
  for (const [method, path, body] of refusedCalls)
    expect(await app.admin(method, path, body, token)).toMatchObject({
      status: 403,
      body: { error: 'forbidden' },
    })
  expect(await app.events()).toEqual([])
  expect((await app.admin('POST', '/groups', { name: 'own', roles: ['user', 'editor'] }, token)).status).toBe(
    201,
  )
  expect((await app.admin('PUT', `/groups/${weak.id}/members/${user.id}`, undefined, token)).status).toBe(204)
  expect((await app.admin('DELETE', `/groups/${weak.id}/members/${user.id}`, undefined, token)).status).toBe(
    204,
  )
  expect((await app.admin('DELETE', `/groups/${weak.id}`, undefined, token)).status).toBe(204)
})

test('GRP-04 groups are listed by a member and by the name of a role, in the own organization alone', async () => {
  const acme = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  const staff = await create(app, '/groups', { name: 'Staff', roles: ['editor'] })
  const board = await create(app, '/groups', { name: 'Board', roles: ['user'] })
  await create(app, '/roles', { name: 'editor', permissions: [], organization_id: acme.id })
  const theirs = await create(app, '/groups', { name: 'Theirs', roles: ['editor'], organization_id: acme.id })
  const user = await addUser(app, 'grace')
  await app.admin('PUT', `/groups/${staff.id}/members/${user.id}`)
  await app.admin('PUT', `/groups/${board.id}/members/${user.id}`)
  const names = async (query: string, token?: string) => {
    const { body } = await app.admin('GET', `/groups?${query}`, undefined, token)
    expect(body.pagination.total).toBe(body.data.length)
    return body.data.map(({ name }: Json) => name)
  }
  expect(await names(`user_id=${user.id}`)).toEqual(['Board', 'Staff'])
  expect(await names(`user_id=${user.id}&role=editor`)).toEqual(['Staff'])
  expect(await names('role=editor&organization_id=org_default')).toEqual(['Staff'])
  expect(await names('role=editor')).toEqual(['Theirs', 'Staff'])
  expect(await names('role=nothing')).toEqual([])
  const token = await callerOf(app, acme.id, ['groups:read'])
  expect(await names(`user_id=${user.id}`, token)).toEqual([])
  expect(await names('role=editor', token)).toEqual([theirs.name])
})

test('GRP-05 a user has at most 200 groups', async () => {
  const [alice, bob] = [await addUser(app, 'alice'), await addUser(app, 'bob')]
  const groups: Json[] = []
  for (let i = 0; i <= 200; i++) groups.push(await create(app, '/groups', { name: `group ${i}` }))
  const join = (i: number, user: Json) => app.admin('PUT', `/groups/${groups[i]?.id}/members/${user.id}`)
  for (let i = 0; i < 200; i++) expect((await join(i, alice)).status).toBe(204)
  expect((await join(199, alice)).status).toBe(204)
  await app.events()
  const { status, body } = await join(200, alice)
  expect([status, body.error_description]).toEqual([
    409,
    'The user already has 200 groups, which is the maximum.',
  ])
  expect(await app.events()).toEqual([])
  expect((await app.admin('GET', `/groups?user_id=${alice.id}`)).body.pagination.total).toBe(200)
  expect((await join(200, bob)).status).toBe(204)
  await app.admin('DELETE', `/groups/${groups[0]?.id}`)
  expect((await join(200, alice)).status).toBe(204)
})
