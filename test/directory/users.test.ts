import { beforeEach, describe, expect, test } from 'bun:test'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create, refused } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, PASSWORD } from '#test/support/people.ts'
import { bearer, get, grantTokens } from '#test/support/tokens.ts'

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
  test('USR-27 with only the required fields: the others have their defaults', async () => {
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
      email_code: true,
      organization_id: 'org_default',
      roles: ['user'],
      attributes: {},
      created_at: '2026-01-15T12:00:00.000Z',
      updated_at: '2026-01-15T12:00:00.000Z',
      last_login: null,
    })
    expect((await app.admin('GET', `/users/${user.id}`)).body).toEqual(user)
    expect(await app.events()).toEqual([event('user.created', user.id, { roles_added: ['user'] })])
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

  test('USR-12 422 names each missing or wrong field, and nothing is stored', async () => {
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

  test('USR-19 limits: a user name has 3 to 128 letters, digits, dots, hyphens or underscores', async () => {
    for (const username of ['a.b', 'A-1', '___', 'x'.repeat(128)])
      await addUser(app, username, { email: `u${username.length}${username.charCodeAt(1)}@example.com` })
  })

  test('USR-13 a weak password: one detail for each broken rule', async () => {
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

  test('USR-11 409 for a user name or address already used in the organization, in any case', async () => {
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

  test('one of two parallel creations with the same name gets a conflict', async () => {
    const answers = await Promise.all([
      app.admin('POST', '/users', alice),
      app.admin('POST', '/users', { ...alice, email: 'alice2@example.com' }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.created'])
  })

  test('API-14 an unknown organization or role is 422, named', async () => {
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

  test('USR-14 allowed_domains: only exact domains, when an address is set or changed', async () => {
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

  test('USR-20 changes only the given fields', async () => {
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

  test('USR-15 a user with many roles has each of them once', async () => {
    const names = Array.from({ length: 6 }, (_, i) => `role${i}`)
    for (const name of names) await create(app, '/roles', { name, permissions: [] })
    const user = await create(app, '/users', {
      ...alice,
      username: 'Many',
      email: 'm@example.com',
      roles: names,
    })
    const stored = async () =>
      (await rows('user_roles')).filter(row => row.user_id === user.id).map(row => row.role_name)
    expect((await stored()).sort()).toEqual(names)
    for (const count of [5, 4, 3, 2, 1]) {
      const roles = names.slice(0, count)
      await app.admin('PUT', `/users/${user.id}`, { roles: [...roles, 'role0'] })
      expect((await app.admin('GET', `/users/${user.id}`)).body.roles).toEqual(roles)
      expect((await stored()).sort()).toEqual(roles)
    }
    expect((await app.admin('GET', '/users?role=role0')).body.data).toMatchObject([{ id: user.id }])
  })

  test('USR-15 EVT-24 attributes and roles are replaced as a whole; events name the changed roles', async () => {
    await create(app, '/roles', { name: 'editor', permissions: [] })
    await app.events()
    await put({ attributes: { a: 1, b: 2 }, roles: ['editor', 'user'] })
    const { body } = await put({ attributes: { c: 3 }, roles: ['editor'] })
    expect([body.attributes, body.roles]).toEqual([{ c: 3 }, ['editor']])
    expect((await put({ roles: [], attributes: {} })).body).toMatchObject({ roles: [], attributes: {} })
    const fields = ['roles', 'attributes']
    expect(await app.events()).toEqual([
      event('user.updated', user.id, { fields, roles_added: ['editor'] }),
      event('user.updated', user.id, { fields, roles_removed: ['user'] }),
      event('user.updated', user.id, { fields, roles_removed: ['editor'] }),
    ])
    const counts = (await app.admin('GET', '/roles')).body.data.map((role: Json) => [
      role.name,
      role.user_count,
    ])
    expect(Object.fromEntries(counts)).toEqual({ editor: 0, user: 0, admin: 0 })
  })

  test('USR-17 enabling and disabling have their own events; sessions continue', async () => {
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

  test('API-15 without a change is 200, records no event and keeps updated_at', async () => {
    for (const body of [
      {},
      { first_name: 'Alice' },
      { roles: ['user'], enabled: true, attributes: {} },
      user,
    ])
      expect((await put(body)).body).toEqual(user)
    expect(await app.events()).toEqual([])
  })

  test('API-13 a read object can be changed and sent back; changed read-only fields are 422', async () => {
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

  test('user name and address can be changed, within the same rules', async () => {
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

  test('404 for an unknown user', async () => {
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
