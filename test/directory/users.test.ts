import { beforeEach, describe, expect, test } from 'bun:test'
import { hashSecret } from '#src/lib/secrets.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create, refused } from '#test/support/callers.ts'
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

describe('creating a user', () => {
  test('USR-27 with the fields that are needed: the others have their defaults', async () => {
    const { status, body: user } = await app.admin('POST', '/users', alice)
    expect(status).toBe(201)
    expect(user).toEqual({
      id: expect.stringMatching(/^usr_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/),
      username: 'Alice',
      email: 'Alice@Example.com',
      first_name: 'Alice',
      last_name: 'Liddell',
      enabled: true,
      email_verified: false,
      organization_id: 'org_default',
      roles: ['user'],
      attributes: {},
      created_at: '2026-01-15T12:00:00.000Z',
      updated_at: '2026-01-15T12:00:00.000Z',
      last_login: null,
    })
    expect((await app.admin('GET', `/users/${user.id}`)).body).toEqual(user)
    expect(await app.events()).toEqual([event('user.created', user.id)])
  })

  test('USR-26 with every field', async () => {
    const acme = await addOrganization(app, 'acme')
    await create(app, '/roles', { name: 'editor', permissions: [], organization_id: acme.id })
    const given = {
      enabled: false,
      email_verified: true,
      organization_id: acme.id,
      roles: ['editor', 'admin', 'editor'],
      attributes: { team: 'blue', nested: { list: [1, null, 'two'] }, constructor: 'x' },
    }
    const user = await create(app, '/users', { ...alice, ...given })
    expect(user).toMatchObject({ ...given, roles: ['admin', 'editor'] })
    expect((await app.admin('GET', `/users/${user.id}`)).body).toEqual(user)
  })

  test('USR-12 422 names each field that is missing or wrong, and nothing is stored', async () => {
    const refusedFor = async (body: Json) => refused(await app.admin('POST', '/users', body))
    expect(await refusedFor({})).toEqual(['email', 'first_name', 'last_name', 'password', 'username'])
    expect(
      await refusedFor({
        ...alice,
        username: 'al',
        email: 'nowhere',
        enabled: 'yes',
        email_verified: 1,
        roles: 'user',
        attributes: [],
        nickname: 'Al',
      }),
    ).toEqual(['attributes', 'email', 'email_verified', 'enabled', 'nickname', 'roles', 'username'])
    for (const username of ['ab', 'a'.repeat(129), 'al ice', 'alice@home', 'ali/ce', ''])
      expect(await refusedFor({ ...alice, username })).toEqual(['username'])
    expect(await rows('users')).toEqual([])
    expect(await app.events()).toEqual([])
  })

  test('USR-19 limits: 3 and 128 characters are a user name, letters, digits, dots, hyphens, underscores', async () => {
    for (const username of ['a.b', 'A-1', '___', 'x'.repeat(128)])
      await addUser(app, username, { email: `u${username.length}${username.charCodeAt(1)}@example.com` })
  })

  test('USR-13 a weak password: one detail for each rule that it breaks', async () => {
    const codesFor = async (password: string) => {
      const { status, body } = await app.admin('POST', '/users', { ...alice, password })
      expect(status).toBe(422)
      expect(body.details.every((detail: Json) => detail.field === 'password')).toBe(true)
      expect(password.length < 3 || !JSON.stringify(body).includes(password)).toBe(true)
      return body.details.map((detail: Json) => detail.code)
    }
    expect(await codesFor('')).toEqual([
      'min_length',
      'require_uppercase',
      'require_lowercase',
      'require_digit',
      'require_special',
    ])
    expect(await codesFor('Aa1!xyz')).toEqual(['min_length'])
    expect(await codesFor('aa1!xyzz')).toEqual(['require_uppercase'])
    expect(await codesFor('AA1!XYZZ')).toEqual(['require_lowercase'])
    expect(await codesFor('Aab!xyzz')).toEqual(['require_digit'])
    expect(await codesFor('Aab1xyzz')).toEqual(['require_special'])
    expect(await rows('users')).toEqual([])
  })

  test('USR-24 the policy is the organization’s own', async () => {
    const lax = { min_length: 4, require_uppercase: false, require_digit: false, require_special: false }
    const acme = await addOrganization(app, 'acme', { settings: { password_policy: lax } })
    await addUser(app, 'alice', { organization_id: acme.id, password: 'abcd' })
    expect(refused(await app.admin('POST', '/users', { ...alice, password: 'abcd' }))).toEqual(['password'])
  })

  test('USR-11 409 for a user name or address that another user of the organization has, in any case', async () => {
    await addUser(app, 'alice')
    const conflicts = async (body: Json) => {
      const answer = await app.admin('POST', '/users', { ...alice, ...body })
      expect([answer.status, answer.body.error]).toEqual([409, 'conflict'])
      return answer.body.error_description
    }
    expect(await conflicts({ username: 'aLiCe', email: 'other@example.com' })).toContain('username')
    expect(await conflicts({ username: 'other', email: 'ALICE@example.COM' })).toContain('e-mail')
    expect(await rows('users')).toHaveLength(1)
    const acme = await addOrganization(app, 'acme')
    await create(app, '/users', { ...alice, organization_id: acme.id })
  })

  test('of two that take one name at the same moment one is told so', async () => {
    const answers = await Promise.all([
      app.admin('POST', '/users', alice),
      app.admin('POST', '/users', { ...alice, email: 'alice2@example.com' }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.created'])
  })

  test('API-14 an organization or role that does not exist is 422, named', async () => {
    expect(refused(await app.admin('POST', '/users', { ...alice, organization_id: 'org_nowhere' }))).toEqual([
      'organization_id',
    ])
    const answer = await app.admin('POST', '/users', { ...alice, roles: ['user', 'ghost', 'phantom'] })
    expect(refused(answer)).toEqual(['roles'])
    expect(answer.body.details.map((detail: Json) => detail.message)).toEqual([
      'The organization has no role ghost.',
      'The organization has no role phantom.',
    ])
  })

  test('USR-14 allowed_domains: exact domains alone, on create and on change of the address', async () => {
    const settings = { allowed_domains: ['allowed.com', 'bücher.example'] }
    const acme = await addOrganization(app, 'acme', { settings })
    const attempt = (email: string) =>
      app.admin('POST', '/users', { ...alice, email, username: `u${email.length}`, organization_id: acme.id })
    for (const email of [
      'a@evil.com.allowed.com',
      'a@sub.allowed.com',
      'a@allowed.com.evil.com',
      'a@notallowed.com',
    ])
      expect(refused(await attempt(email))).toEqual(['email'])
    expect((await attempt('alice@ALLOWED.com')).status).toBe(201)
    const { body: user } = await attempt('alice@xn--bcher-kva.example')
    expect(user.email).toBe('alice@xn--bcher-kva.example')
    const change = (body: Json) => app.admin('PUT', `/users/${user.id}`, body)
    expect(refused(await change({ email: 'alice@other.com' }))).toEqual(['email'])
    await app.admin('PUT', `/organizations/${acme.id}`, { settings: { allowed_domains: ['other.com'] } })
    expect((await change({ first_name: 'Al' })).status).toBe(200)
    expect((await change({ email: 'alice@other.com' })).body.email).toBe('alice@other.com')
  })
})

describe('changing a user', () => {
  let user: Json
  beforeEach(async () => {
    user = await create(app, '/users', alice)
    await app.events()
    app.clock.advance(1000)
  })
  const put = (body: Json) => app.admin('PUT', `/users/${user.id}`, body)

  test('USR-20 only the fields given', async () => {
    const { status, body } = await put({ first_name: 'Al', attributes: { b: 1 } })
    expect(status).toBe(200)
    expect(body).toEqual({
      ...user,
      first_name: 'Al',
      attributes: { b: 1 },
      updated_at: '2026-01-15T12:00:01.000Z',
    })
    expect((await app.admin('GET', `/users/${user.id}`)).body).toEqual(body)
    expect(await app.events()).toEqual([
      event('user.updated', user.id, { fields: ['first_name', 'attributes'] }),
    ])
  })

  test('USR-15 attributes are replaced as a whole, roles too', async () => {
    await create(app, '/roles', { name: 'editor', permissions: [] })
    await put({ attributes: { a: 1, b: 2 }, roles: ['editor', 'user'] })
    const { body } = await put({ attributes: { c: 3 }, roles: ['editor'] })
    expect([body.attributes, body.roles]).toEqual([{ c: 3 }, ['editor']])
    expect((await put({ roles: [], attributes: {} })).body).toMatchObject({ roles: [], attributes: {} })
    const counts = (await app.admin('GET', '/roles')).body.data.map((role: Json) => [
      role.name,
      role.user_count,
    ])
    expect(Object.fromEntries(counts)).toEqual({ editor: 0, user: 0, admin: 0 })
  })

  test('USR-17 enabled and disabled have events of their own; sessions live on', async () => {
    const client = await addClient(app, 'shop')
    const tokens = await grantTokens(app, client, user)
    await app.events()
    await put({ enabled: false })
    expect(await app.events()).toEqual([event('user.disabled', user.id)])
    await put({ enabled: true, last_name: 'L' })
    expect(await app.events()).toEqual([
      event('user.updated', user.id, { fields: ['last_name'] }),
      event('user.enabled', user.id),
    ])
    expect((await get(app, '/oauth/userinfo', { headers: bearer(tokens.access_token) })).status).toBe(200)
  })

  test('API-15 what changes nothing is 200, without event, and updated_at stays', async () => {
    for (const body of [
      {},
      { first_name: 'Alice' },
      { roles: ['user'], enabled: true, attributes: {} },
      user,
    ])
      expect((await put(body)).body).toEqual(user)
    expect(await app.events()).toEqual([])
  })

  test('API-13 an object that was read can be sent back changed; read-only fields that differ are 422', async () => {
    expect((await put({ ...user, last_name: 'L' })).body.last_name).toBe('L')
    const acme = await addOrganization(app, 'acme')
    const differing = {
      id: 'usr_other',
      organization_id: acme.id,
      created_at: '2020-01-01T00:00:00.000Z',
      updated_at: '2020-01-01T00:00:00.000Z',
      last_login: '2020-01-01T00:00:00.000Z',
    }
    for (const [field, value] of Object.entries(differing))
      expect(refused(await put({ first_name: 'X', [field]: value }))).toEqual([field])
    expect(refused(await put({ password: PASSWORD }))).toEqual(['password'])
    expect((await app.admin('GET', `/users/${user.id}`)).body.first_name).toBe('Alice')
  })

  test('user name and address may change, within the same rules', async () => {
    await addUser(app, 'bob')
    expect((await put({ username: 'alicia', email: 'alicia@example.com' })).body).toMatchObject({
      username: 'alicia',
      email: 'alicia@example.com',
    })
    expect((await put({ username: 'ALICIA' })).body.username).toBe('ALICIA')
    expect((await put({ username: 'BOB' })).status).toBe(409)
    expect((await put({ email: 'Bob@example.com' })).status).toBe(409)
    expect(refused(await put({ username: 'b' }))).toEqual(['username'])
    expect((await app.admin('GET', '/users?search=alicia')).body.data).toHaveLength(1)
    expect((await app.admin('GET', '/users?search=liddell')).body.data).toHaveLength(1)
    await addUser(app, 'alice', { email: 'alice@example.com' })
  })

  test('404 for a user that does not exist', async () => {
    const id = 'usr_0190a7c0-0000-7000-8000-000000000000'
    for (const [method, path, body] of [
      ['GET', `/users/${id}`],
      ['PUT', `/users/${id}`, {}],
      ['POST', `/users/${id}/reset-password`, { password: 'weak' }],
      ['DELETE', `/users/${id}`],
      ['DELETE', `/users/${id}/sessions`],
      ['GET', '/users/x'],
    ] as const) {
      const answer = await app.admin(method, path, body)
      expect([method, path, answer.status, answer.body.error]).toEqual([method, path, 404, 'not_found'])
    }
  })
})

describe('resetting a password', () => {
  test('USR-18 ends sessions and logins, kills codes on their way, and is recorded with each session', async () => {
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

  test('USR-23 temporary: the user must choose another one at the next login', async () => {
    const user = await create(app, '/users', alice)
    await app.admin('POST', `/users/${user.id}/reset-password`, {
      password: 'Another-horse-8',
      temporary: true,
    })
    expect((await rows('users'))[0]).toMatchObject({ password_temporary: true })
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: 'Another-horse-9' })
    expect((await rows('users'))[0]).toMatchObject({ password_temporary: false })
  })

  test('a weak or missing password is 422 and leaves the old one', async () => {
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
  test('USR-22 takes sessions, logins, codes, consents, memberships, roles and events along; one user.deleted stays', async () => {
    const user = await create(app, '/users', { ...alice, roles: ['user', 'admin'] })
    const bob = await addUser(app, 'bob')
    const client = await addClient(app, 'shop')
    const group = await create(app, '/groups', { name: 'Staff' })
    await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
    const tokens = await grantTokens(app, client, user)
    const others = await grantTokens(app, client, bob)
    await addCode(app, client, user)
    await app.events()
    const { status } = await app.admin('DELETE', `/users/${user.id}`)
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

  test('of admins who delete themselves the id alone stays', async () => {
    const root = await create(app, '/users', { ...alice, roles: ['admin'] })
    const client = await addClient(app, 'console', { scopes: ['openid', 'admin'] })
    const { access_token } = await grantTokens(app, client, root, { scope: 'openid admin' })
    await app.events()
    expect((await app.admin('DELETE', `/users/${root.id}`, undefined, access_token)).status).toBe(204)
    const [last] = (await rows('events')).slice(-1)
    expect(last).toMatchObject({
      type: 'user.deleted',
      actor_id: root.id,
      actor_email: null,
      target_id: root.id,
    })
    expect((await app.admin('GET', '/users', undefined, access_token)).status).toBe(401)
  })

  test('M-10 a user of the same name inherits nothing', async () => {
    const acme = await addOrganization(app, 'acme')
    const old = await create(app, '/users', { ...alice, roles: ['user', 'admin'], organization_id: acme.id })
    const client = await addClient(app, 'shop', { organization_id: acme.id })
    const tokens = await grantTokens(app, client, old)
    await app.admin('DELETE', `/users/${old.id}`)
    const fresh = await create(app, '/users', { ...alice, organization_id: acme.id })
    expect(fresh.id).not.toBe(old.id)
    expect(fresh.roles).toEqual(['user'])
    expect((await refresh(app, client, tokens.refresh_token)).body.error).toBe('invalid_grant')
    expect((await app.admin('GET', `/sessions?user_id=${fresh.id}`)).body.data).toEqual([])
    expect((await app.admin('GET', `/events?actor_id=${fresh.id}`)).body.data).toEqual([])
  })
})

test('USR-21 revoking all sessions of a user: how many there were, and the logins end too', async () => {
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

describe('O-70 nobody acts beyond their own rights', () => {
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

  test('USR-25 upon a user with more rights, held directly or by a group', async () => {
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

  test('with a token that leaves out the rights of its user', async () => {
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
