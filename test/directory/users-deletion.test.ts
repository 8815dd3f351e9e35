import { beforeEach, describe, expect, test } from 'bun:test'
import { hashSecret } from '#src/lib/secrets.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, PASSWORD } from '#test/support/people.ts'
import { addCode, addLogin, bearer, get, grantTokens, redeem, refresh } from '#test/support/tokens.ts'

let app: TestApp
const ACTOR = 'gatehouse-admin'
const alice = {
  username: 'Alice',
  email: 'Alice@Example.com',
  first_name: 'Alice',
  last_name: 'Liddell',
  password: PASSWORD,
}

beforeEach(async () => {
  app = await startApp()
  await app.admin('GET', '/users')
  await app.events()
})

const event = (type: string, target_id: string, metadata: Json = {}, organization_id = 'org_default') => ({
  type,
  actor_id: ACTOR,
  target_id,
  target_type: 'user',
  organization_id,
  metadata,
})

const rows = (table: 'users' | 'user_roles' | 'purges' | 'events') =>
  app.context.store.read(async q => (await q.select().from(q.tables[table])) as Json[])

describe('resetting a password', () => {
  test('USR-18 ends sessions and logins, revokes unredeemed codes, and records each session', async () => {
    const user = await create(app, '/users', alice)
    const client = await addClient(app, 'shop')
    const login_id = await addLogin(app, user, hashSecret('browser'))
    const tokens = await grantTokens(app, client, user, { login_id })
    const second = await grantTokens(app, client, user)
    const code = await addCode(app, client, user)
    await app.events()
    const answer = await app.admin('POST', `/users/${user.id}/reset-password`, {
      password: 'Another-horse-8',
    })
    expect([answer.status, answer.body]).toEqual([204, undefined])
    const recorded = await app.events()
    expect(recorded.map(({ type }) => type)).toEqual([
      'user.password_reset',
      'session.revoked',
      'session.revoked',
    ])
    expect(recorded[0]).toEqual(event('user.password_reset', user.id, { temporary: false }))
    for (const { access_token, refresh_token } of [tokens, second]) {
      expect((await get(app, '/oauth/userinfo', { headers: bearer(access_token) })).status).toBe(401)
      expect((await refresh(app, client, refresh_token)).body.error).toBe('invalid_grant')
    }
    expect((await redeem(app, client, code)).body.error).toBe('invalid_grant')
    const left = await app.context.store.read(q => q.select().from(q.tables.logins))
    expect(left).toEqual([])
  })

  test('USR-23 temporary: the user must choose another password at the next login', async () => {
    const user = await create(app, '/users', alice)
    await app.admin('POST', `/users/${user.id}/reset-password`, {
      password: 'Another-horse-8',
      temporary: true,
    })
    expect((await rows('users'))[0]).toMatchObject({ password_temporary: true })
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: 'Another-horse-9' })
    expect((await rows('users'))[0]).toMatchObject({ password_temporary: false })
  })

  test('a weak or missing password is 422 and keeps the old one', async () => {
    const user = await create(app, '/users', alice)
    const [before] = await rows('users')
    await app.events()
    for (const body of [
      {},
      { password: 'weak' },
      { password: PASSWORD, temporary: 'yes' },
      { password: PASSWORD, x: 1 },
    ])
      expect((await app.admin('POST', `/users/${user.id}/reset-password`, body)).status).toBe(422)
    expect(await rows('users')).toEqual([before])
    expect(await app.events()).toEqual([])
  })
})

describe('deleting a user', () => {
  test('USR-22 deletes sessions, logins, codes, consents, memberships, roles and events; one user.deleted stays', async () => {
    const user = await create(app, '/users', { ...alice, roles: ['user', 'admin'] })
    const bob = await addUser(app, 'bob')
    const client = await addClient(app, 'shop')
    const group = await create(app, '/groups', { name: 'Staff' })
    await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
    const tokens = await grantTokens(app, client, user)
    const others = await grantTokens(app, client, bob)
    await addCode(app, client, user)
    await app.events()
    const { status } = await app.admin('DELETE', `/users/${user.id}?confirm=Alice`)
    expect(status).toBe(204)
    expect(await app.events()).toEqual([event('user.deleted', user.id)])
    const dump = JSON.stringify(
      await app.context.store.read(async q => {
        const { users, user_roles, group_members, sessions, logins, authorization_codes, consents, purges } =
          q.tables
        return Promise.all(
          [users, user_roles, group_members, sessions, logins, authorization_codes, consents, purges].map(
            table => q.select().from(table),
          ),
        )
      }),
    )
    expect(dump).not.toContain(user.id)
    expect(dump).toContain(bob.id)
    const naming = (await rows('events')).filter(row => JSON.stringify(row).includes(user.id))
    expect(naming.map(({ type }) => type)).toEqual(['user.deleted'])
    expect(JSON.stringify(naming)).not.toContain('Alice')
    expect((await app.admin('GET', `/groups/${group.id}`)).body.member_count).toBe(0)
    expect((await app.admin('GET', '/users')).body.pagination.total).toBe(1)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(tokens.access_token) })).status).toBe(401)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(others.access_token) })).status).toBe(200)
    expect((await app.admin('DELETE', `/users/${user.id}`)).status).toBe(404)
    await create(app, '/users', alice)
  })

  test('of an administrator by themselves keeps only their id as actor', async () => {
    const root = await create(app, '/users', { ...alice, roles: ['admin'] })
    const client = await addClient(app, 'console', { scopes: ['openid', 'admin'] })
    const { access_token } = await grantTokens(app, client, root, { scope: 'openid admin' })
    await app.events()
    const itself = `/users/${root.id}?confirm=Alice`
    expect((await app.admin('DELETE', itself, undefined, access_token)).status).toBe(204)
    const [last] = (await rows('events')).slice(-1)
    expect(last).toMatchObject({
      type: 'user.deleted',
      actor_id: root.id,
      actor_email: null,
      target_id: root.id,
    })
    expect((await app.admin('GET', '/users', undefined, access_token)).status).toBe(401)
  })

  test('M-10 a new user of the same name inherits nothing', async () => {
    const acme = await addOrganization(app, 'acme')
    const old = await create(app, '/users', { ...alice, roles: ['user', 'admin'], organization_id: acme.id })
    const client = await addClient(app, 'shop', { organization_id: acme.id })
    const tokens = await grantTokens(app, client, old)
    await app.admin('DELETE', `/users/${old.id}?confirm=Alice`)
    const fresh = await create(app, '/users', { ...alice, organization_id: acme.id })
    expect(fresh.id).not.toBe(old.id)
    expect(fresh.roles).toEqual(['user'])
    expect((await refresh(app, client, tokens.refresh_token)).body.error).toBe('invalid_grant')
    expect((await app.admin('GET', `/sessions?user_id=${fresh.id}`)).body.data).toEqual([])
    expect((await app.admin('GET', `/events?actor_id=${fresh.id}`)).body.data).toEqual([])
  })
})

test('USR-21 revoking all sessions of a user returns their number and ends the logins too', async () => {
  const user = await create(app, '/users', alice)
  const client = await addClient(app, 'shop')
  for (let i = 0; i < 3; i++) await grantTokens(app, client, user)
  await app.events()
  const revoke = () => app.admin('DELETE', `/users/${user.id}/sessions`)
  expect(await revoke()).toMatchObject({
    status: 200,
    body: { revoked_count: 3, message: '3 sessions were revoked.' },
  })
  const recorded = await app.events()
  expect(recorded.map(({ type, actor_id, metadata }) => [type, actor_id, metadata.reason])).toEqual(
    Array(3).fill(['session.revoked', ACTOR, 'admin']),
  )
  expect((await revoke()).body).toEqual({ revoked_count: 0, message: '0 sessions were revoked.' })
  expect(await app.events()).toEqual([])
})

describe('O-70 a caller cannot act beyond their own rights', () => {
  const keeper = ['users:read', 'users:create', 'users:update', 'users:delete', 'sessions:revoke']

  test('USR-16 by giving a role', async () => {
    const token = await callerOf(app, 'org_default', keeper)
    await create(app, '/roles', { name: 'keeper', permissions: keeper })
    await create(app, '/roles', { name: 'auditor', permissions: ['events:read'] })
    const bob = await addUser(app, 'bob')
    await app.events()
    const attempts = [
      app.admin('POST', '/users', { ...alice, roles: ['admin'] }, token),
      app.admin('POST', '/users', { ...alice, roles: ['user', 'auditor', 'ghost'] }, token),
      app.admin('PUT', `/users/${bob.id}`, { roles: ['admin'] }, token),
      app.admin('PUT', `/users/${bob.id}`, { roles: ['auditor'] }, token),
    ]
    for (const { status, body } of await Promise.all(attempts))
      expect([status, body.error]).toEqual([403, 'forbidden'])
    expect((await app.admin('GET', `/users/${bob.id}`)).body).toEqual(bob)
    expect(await app.events()).toEqual([])
    expect((await app.admin('PUT', `/users/${bob.id}`, { roles: ['user', 'keeper'] }, token)).status).toBe(
      200,
    )
    expect((await app.admin('POST', '/users', { ...alice, roles: ['keeper'] }, token)).status).toBe(201)
  })

  test('USR-25 on a user with more rights, held directly or by a group', async () => {
    const token = await callerOf(app, 'org_default', keeper)
    const root = await addUser(app, 'root', { roles: ['admin'] })
    const member = await addUser(app, 'member')
    await create(app, '/roles', { name: 'auditor', permissions: ['events:read'] })
    const group = await create(app, '/groups', { name: 'Auditors', roles: ['auditor'] })
    await app.admin('PUT', `/groups/${group.id}/members/${member.id}`)
    await app.events()
    for (const { id } of [root, member])
      for (const [method, path, body] of [
        ['PUT', `/users/${id}`, { enabled: false }],
        ['PUT', `/users/${id}`, { email: 'mine@example.com' }],
        ['POST', `/users/${id}/reset-password`, { password: PASSWORD }],
        ['DELETE', `/users/${id}`],
      ] as const)
        expect([method, path, (await app.admin(method, path, body, token)).status]).toEqual([
          method,
          path,
          403,
        ])
    expect(await app.events()).toEqual([])
    expect((await app.admin('GET', `/users/${root.id}`, undefined, token)).body).toEqual(root)
  })

  test('with a token that excludes the user’s rights', async () => {
    const root = await addUser(app, 'root', { roles: ['admin'] })
    const client = await addClient(app, 'console', { scopes: ['openid', ...keeper] })
    const { access_token } = await grantTokens(app, client, root, { scope: 'openid users:update users:read' })
    const bob = await addUser(app, 'bob')
    const put = (id: string, body: Json) => app.admin('PUT', `/users/${id}`, body, access_token)
    expect((await put(bob.id, { first_name: 'Bobby' })).status).toBe(200)
    expect((await put(bob.id, { roles: ['admin'] })).status).toBe(403)
    expect((await put(root.id, { first_name: 'Rooty' })).status).toBe(403)
  })
})
