import { beforeEach, describe, expect, test } from 'bun:test'
import { beginIndex, rebuildIndex } from '#src/directory/organizations/attribute-store.ts'
import { insertWaiting } from '#src/directory/users/waiting-store.ts'
import { purge } from '#src/operations/purge.ts'
import { exportSeed } from '#src/seed/export.ts'
import { rightsFields } from '#src/seed/schema.ts'
import { listPurges } from '#src/storage/purges.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create, listAll, refused } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { hearStatements } from '#test/support/statements.ts'

let app: TestApp
let acme: Json

const definitions = [
  { name: 'department', type: 'string', searchable: true },
  { name: 'age', type: 'integer', searchable: true },
  { name: 'teams', type: 'array', searchable: true },
  { name: 'active', type: 'boolean', searchable: true },
  { name: 'ratio', type: 'number' },
  { name: 'seat', type: 'object' },
  { name: 'phone_number', type: 'string', visible: 'user', editable: 'user' },
  { name: 'badge', type: 'string', editable: 'nobody' },
  { name: 'score', type: 'integer', visible: 'nobody', editable: 'nobody' },
]
const define = (user_attributes: Json, organization = acme) =>
  app.admin('PUT', `/organizations/${organization.id}`, { settings: { user_attributes } })
const add = (name: string, attributes: Json, organization = acme) =>
  addUser(app, name, { organization_id: organization.id, attributes })
const put = (user: Json, attributes: Json, token?: string) =>
  app.admin('PUT', `/users/${user.id}`, { attributes }, token)
const stored = async (user: Json) =>
  app.context.store.read(async q => {
    const rows = await q.select().from(q.tables.users)
    return rows.find(({ id }) => id === user.id)?.attributes
  })
const found = async (query: string, token?: string) =>
  (await listAll(app, `/users?organization_id=${acme.id}&${query}`, token)).map(user => user.username).sort()
const indexed = () =>
  app.context.store.read(async q => {
    const rows = await q.select().from(q.tables.user_attributes)
    return rows.map(({ name }) => name).sort()
  })

beforeEach(async () => {
  app = await startApp()
  acme = await addOrganization(app, 'acme', { settings: { user_attributes: definitions } })
  await app.events()
})

describe('definitions', () => {
  test('ATT-01 are kept as they were set, in order, and replaced as a whole', async () => {
    expect(acme.settings.user_attributes).toEqual(definitions)
    const less = [{ name: 'age', type: 'integer' }]
    const { status, body } = await define(less)
    expect([status, body.settings.user_attributes]).toEqual([200, less])
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.fields])).toEqual([
      ['organization.updated', ['settings']],
    ])
    expect((await define(null)).body.settings).toEqual({})
  })

  test('ATT-02 that are malformed or contradict themselves are refused, field by field', async () => {
    const base = { name: 'x', type: 'string' }
    const bad: [Json, string][] = [
      [{ ...base, name: '__proto__' }, '0.name'],
      [{ ...base, name: '1st' }, '0.name'],
      [{ ...base, name: 'a.b' }, '0.name'],
      [{ ...base, name: 'x'.repeat(65) }, '0.name'],
      [{ ...base, type: 'date' }, '0.type'],
      [{ ...base, label: 'a\nb' }, '0.label'],
      [{ ...base, visible: 'all' }, '0.visible'],
      [{ ...base, unknown: 1 }, '0.unknown'],
      [{ ...base, editable: 'user' }, '0.visible'],
      [{ ...base, visible: 'nobody' }, '0.visible'],
      [{ ...base, required: true }, '0.required'],
      [{ ...base, type: 'object', searchable: true }, '0.searchable'],
      [{ ...base, visible: 'nobody', editable: 'nobody', searchable: true }, '0.searchable'],
      [{ ...base, type: 'object', visible: 'user' }, '0.visible'],
      [{ ...base, type: 'array', visible: 'user', editable: 'user' }, '0.editable'],
      [
        { ...base, name: 'phone_number_verified', type: 'boolean', visible: 'user', editable: 'user' },
        '0.editable',
      ],
    ]
    for (const [definition, field] of bad)
      expect(refused(await define([definition]))).toEqual([`settings.user_attributes.${field}`])
    expect(refused(await define([base, base]))).toEqual(['settings.user_attributes.1.name'])
    const many = (count: number, more: Json = {}) =>
      Array.from({ length: count }, (_, i) => ({ name: `a${i}`, type: 'string', ...more }))
    for (const list of [many(51), many(11, { searchable: true }), 'x', {}, Array(5000).fill(base)])
      expect(refused(await define(list))).toContainEqual(expect.stringMatching(/^settings\.user_attributes/))
    expect((await define([...many(10, { searchable: true }), ...many(50).slice(10)])).status).toBe(200)
    expect((await app.events()).length).toBe(1)
  })

  test('ATT-03 need organizations:update in their own organization', async () => {
    const blue = await addOrganization(app, 'blue')
    const reader = await callerOf(app, acme.id, ['organizations:read'])
    const foreign = await callerOf(app, blue.id, ['organizations:update'])
    const own = await callerOf(app, acme.id, ['organizations:update'])
    const body = { settings: { user_attributes: null } }
    const as = async (token: string) =>
      (await app.admin('PUT', `/organizations/${acme.id}`, body, token)).status
    expect([await as(reader), await as(foreign), await as(own)]).toEqual([403, 404, 200])
  })

  test('ATT-04 and attributes come back from an export', async () => {
    const attributes = { badge: 'B-1', score: 7, free: { a: [1] } }
    await app.context.store.write(async tx => {
      await tx.update(tx.tables.users).set({ attributes })
    })
    const ada = await add('ada', { department: 'Sales' })
    const seed = await exportSeed(app.context, { secrets: false })
    const exported = seed.organizations?.find(({ slug }) => slug === 'acme')
    const unset = Object.fromEntries(rightsFields.organizations.map(name => [name, null]))
    expect(exported?.settings).toEqual({ ...unset, ...acme.settings })
    expect(seed.users?.find(({ username }) => username === 'ada')?.attributes).toEqual(ada.attributes)
  })
})

describe('values', () => {
  test('ATT-05 of a wrong type or size are refused; keys without definition are free', async () => {
    const ada = await add('ada', { department: 'Sales', age: 3, free: null, constructor: 'x' })
    const long = 'x'.repeat(1025)
    const bad: Json = {
      department: [1, '', ' x', 'a\nb', long, null, {}, '\u202e'],
      age: ['1', 1.5, null],
      ratio: ['1', true],
      active: ['true', 1],
      teams: ['x', [1], [''], Array(101).fill('x'), ['x'.repeat(257)]],
      seat: [[], 'x', null],
    }
    for (const [name, values] of Object.entries<Json[]>(bad))
      for (const value of values) {
        expect(refused(await put(ada, { [name]: value }))).toEqual([`attributes.${name}`])
        const body = { username: 'eve', email: 'eve@example.com', first_name: 'E', last_name: 'E' }
        const created = { ...body, password: 'Correct-horse-7', organization_id: acme.id }
        const answer = await app.admin('POST', '/users', { ...created, attributes: { [name]: value } })
        expect(refused(answer)).toEqual([`attributes.${name}`])
      }
    const keys = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`k${i}`, 1]))
    expect(refused(await put(ada, keys))).toEqual(['attributes'])
    expect(refused(await put(ada, { age: 2 ** 60 }))).toEqual(['attributes.age'])
    expect(refused(await put(ada, JSON.parse('{"__proto__":{"x":1}}')))).toEqual(['attributes'])
    expect(await stored(ada)).toEqual(ada.attributes)
    const good = {
      department: 'Höhe',
      age: -1,
      ratio: 0.5,
      active: false,
      teams: ['a'],
      seat: { row: 1 },
      other: [1],
    }
    expect((await put(ada, good)).body.attributes).toEqual(good)
  })

  test('ATT-06 that a later definition refuses are accepted unchanged', async () => {
    const ada = await add('ada', { desk: 12 })
    await define([{ name: 'desk', type: 'string' }])
    expect((await put(ada, { desk: 12, more: 1 })).status).toBe(200)
    expect(refused(await put(ada, { desk: 13 }))).toEqual(['attributes.desk'])
    expect((await put(ada, { desk: '13' })).body.attributes).toEqual({ desk: '13' })
  })

  test('ATT-07 a value that administrators may not change is kept, and one that nobody may see is not shown', async () => {
    const ada = await add('ada', { department: 'Sales' })
    const attributes = { department: 'Sales', badge: 'B-1', score: 7 }
    await app.context.store.write(async tx => {
      await tx.update(tx.tables.users).set({ attributes })
    })
    const shown = { department: 'Sales', badge: 'B-1' }
    expect((await app.admin('GET', `/users/${ada.id}`)).body.attributes).toEqual(shown)
    const group = await create(app, '/groups', { name: 'Sales', organization_id: acme.id })
    await app.admin('PUT', `/groups/${group.id}/members/${ada.id}`)
    for (const list of [`/users?organization_id=${acme.id}`, `/groups/${group.id}/members`])
      expect((await listAll(app, list))[0].attributes).toEqual(shown)
    expect(refused(await put(ada, { badge: 'B-2' }))).toEqual(['attributes.badge'])
    for (const score of [7, 8]) expect(refused(await put(ada, { score }))).toEqual(['attributes.score'])
    expect((await put(ada, {})).body.attributes).toEqual({ badge: 'B-1' })
    expect(await stored(ada)).toEqual({ badge: 'B-1', score: 7 })
    expect((await put(ada, shown)).body.attributes).toEqual(shown)
    await app.context.store.write(async tx => {
      await tx.update(tx.tables.users).set({ enabled: false })
      await insertWaiting(tx, { user_id: ada.id, organization_id: acme.id, created_at: 0 })
    })
    const approved = await app.admin('POST', `/registrations/${ada.id}/approve`)
    expect([approved.status, approved.body.attributes]).toEqual([200, shown])
  })

  test('ATT-05 ATT-07 a kept value counts towards the size of the attributes, except one that nobody may see', async () => {
    const ada = await add('ada', {})
    const attributes = { badge: 'B-1', score: 7 }
    await app.context.store.write(async tx => {
      await tx.update(tx.tables.users).set({ attributes })
    })
    await app.events()
    const room = 64 * 1024 - JSON.stringify({ notes: '', badge: 'B-1' }).length
    const large = await put(ada, { notes: 'x'.repeat(room + 1) })
    expect([large.status, refused(large)]).toEqual([422, ['attributes']])
    expect([await stored(ada), await app.events()]).toEqual([attributes, []])
    const { body } = await put(ada, { notes: 'x'.repeat(room) })
    expect(await stored(ada)).toEqual({ ...attributes, notes: 'x'.repeat(room) })
    expect((await put(ada, body.attributes)).body.attributes).toEqual(body.attributes)
  })
})

describe('search', () => {
  test('ATT-08 finds users by the exact value, alone and with other filters, in each order', async () => {
    await add('ada', { department: 'Sales', age: 42, teams: ['red', 'blue'], active: true })
    await add('bob', { department: 'sales', age: 42, teams: ['blue'], active: false })
    await add('cyd', { department: 'Sales', age: 4, teams: [] })
    await app.admin('PUT', `/users/${(await add('dan', { department: 'Sales' })).id}`, { enabled: false })
    const queries: [string, string[]][] = [
      ['attribute.department=Sales', ['ada', 'cyd', 'dan']],
      ['attribute[department]=Sales', ['ada', 'cyd', 'dan']],
      ['attribute%5Bdepartment%5D=Sales&attribute.age=42', ['ada']],
      ['attribute.department=Sale', []],
      ['attribute.age=42', ['ada', 'bob']],
      ['attribute.teams=blue', ['ada', 'bob']],
      ['attribute.active=true', ['ada']],
      ['attribute.department=Sales&attribute.age=42', ['ada']],
      ['attribute.department=Sales&enabled=false', ['dan']],
      ['attribute.department=Sales&search=cyd', ['cyd']],
      ['attribute.department=Sales&role=user&sort=email&order=asc', ['ada', 'cyd', 'dan']],
      ['attribute.department=Sales&role=admin', []],
    ]
    for (const [query, names] of queries) {
      expect(await found(query)).toEqual(names)
      const { body } = await app.admin('GET', `/users?organization_id=${acme.id}&${query}`)
      expect(body.pagination.total).toBe(names.length)
    }
    const sorted = await listAll(app, '/users?attribute.department=Sales&sort=username&order=desc')
    expect(sorted.map(({ username }) => username)).toEqual(['dan', 'cyd', 'ada'])
  })

  test('ATT-09 follows changes of users and of definitions', async () => {
    const ada = await add('ada', { department: 'Sales', desk: 'D1' })
    await put(ada, { department: 'Support', desk: 'D1' })
    expect([await found('attribute.department=Sales'), await found('attribute.department=Support')]).toEqual([
      [],
      ['ada'],
    ])
    for (let i = 0; i < 3; i++) await add(`user${i}`, { desk: 'D1' })
    await define([{ name: 'desk', type: 'string', searchable: true }])
    expect(await found('attribute.desk=D1')).toEqual(['ada', 'user0', 'user1', 'user2'])
    expect(await indexed()).toEqual(['desk', 'desk', 'desk', 'desk'])
    await app.admin('DELETE', `/users/${ada.id}`)
    expect(await indexed()).toEqual(['desk', 'desk', 'desk'])
    await app.admin('DELETE', `/organizations/${acme.id}`)
    await purge(app.context)
    expect(await indexed()).toEqual([])
  })

  test('ATT-09 is rebuilt in writes of bounded size, with as many items of a list as a definition allows', async () => {
    await define([])
    const lists = Array.from({ length: 6 }, (_, i) => `list-${i}`)
    const items = Array.from({ length: 1100 }, (_, i) => i)
    for (let i = 0; i < 3; i++)
      await add(`user-${i}`, Object.fromEntries(lists.map(name => [name, [name, ...items]])))
    const heard: string[] = []
    const stop = hearStatements(text => heard.push(text))
    await define(lists.map(name => ({ name, type: 'array', searchable: true })))
    stop()
    expect(heard.filter(text => /^delete from "user_attributes"/.test(text))).toHaveLength(3)
    expect(await indexed()).toHaveLength(3 * lists.length * 100)
    expect(await found('attribute.list-0=list-0')).toEqual(['user-0', 'user-1', 'user-2'])
    expect(await found('attribute.list-0=98')).toHaveLength(3)
    expect(await found('attribute.list-0=1099')).toEqual([])
  })

  test('ATT-10 is 503 while the index is being made, which housekeeping finishes', async () => {
    await add('ada', { department: 'Sales' })
    await app.context.store.write(async tx => {
      await tx.delete(tx.tables.user_attributes)
      await beginIndex(tx, acme.id, 0)
    })
    for (const scope of [`organization_id=${acme.id}&`, ''])
      expect((await app.admin('GET', `/users?${scope}attribute.department=Sales`)).status).toBe(503)
    expect(
      (await app.admin('GET', '/users?attribute.department=Sales&organization_id=org_default')).status,
    ).toBe(422)
    await purge(app.context)
    expect(await found('attribute.department=Sales')).toEqual(['ada'])
  })

  test('ATT-10 only the last of many changes indexes all users, and no earlier one ends the index', async () => {
    for (let i = 0; i < 210; i++) await add(`user${i}`, { department: 'Sales' })
    const { context } = app
    const { write } = context.store
    const requests: Awaited<ReturnType<typeof beginIndex>>[] = []
    for (let i = 0; i < 8; i++) requests.push(await write(tx => beginIndex(tx, acme.id, 0)))
    let writes = 0
    const counting: typeof write = body => {
      writes++
      return write(body)
    }
    const counted = { ...context, store: { ...context.store, write: counting } }
    const state = async () => {
      const { status } = await app.admin(
        'GET',
        `/users?organization_id=${acme.id}&attribute.department=Sales`,
      )
      return [writes, status]
    }
    const last = requests.splice(7)
    await Promise.all(requests.map(request => rebuildIndex(counted, request)))
    expect(await state()).toEqual([7, 503])
    await Promise.all(last.map(request => rebuildIndex(counted, request)))
    expect(await state()).toEqual([10, 200])
  })

  test('ATT-10 neither a client nor its deletion takes the place of the request for an index', async () => {
    await add('ada', { department: 'Sales' })
    const blue = await addOrganization(app, 'blue')
    const token = await callerOf(app, blue.id, ['clients:create', 'clients:delete'])
    const status = async () =>
      (await app.admin('GET', `/users?organization_id=${acme.id}&attribute.department=Sales`)).status
    await app.context.store.write(tx => beginIndex(tx, acme.id, 0))
    const [request] = await app.context.store.read(listPurges)
    const own = { name: 'Own', type: 'confidential', grant_types: [], scopes: [] }
    const answer = await app.admin('POST', '/clients', { ...own, client_id: request?.id }, token)
    expect([refused(answer), await status()]).toEqual([['client_id'], 503])
    await purge(app.context)
    expect(await status()).toBe(200)
  })

  test('ATT-11 of another attribute, or malformed, is refused; a tenant finds its own users alone', async () => {
    const blue = await addOrganization(app, 'blue', { settings: { user_attributes: definitions } })
    await add('ada', { department: 'Sales' })
    await add('bea', { department: 'Sales' }, blue)
    const token = await callerOf(app, acme.id, ['users:read'])
    expect(
      (await listAll(app, '/users?attribute.department=Sales', token)).map(user => user.username),
    ).toEqual(['ada'])
    const bad: [string, string][] = [
      ['attribute.ratio=1', 'attribute.ratio'],
      ['attribute.badge=B', 'attribute.badge'],
      ['attribute.free=1', 'attribute.free'],
      ['attribute.department=', 'attribute.department'],
      ['attribute.department=a&attribute.department=b', 'attribute.department'],
      ['attribute[department]=a&attribute.department=b', 'attribute.department'],
      ['attribute.__proto__=1', 'attribute.__proto__'],
      ['attribute=1', 'attribute'],
      ['attribute=1&attribute.department=1', 'attribute'],
      ['other.department=1', 'other'],
      [Array.from({ length: 11 }, (_, i) => `attribute.a${i}=1`).join('&'), 'attribute'],
    ]
    for (const [query, field] of bad)
      expect(refused(await app.admin('GET', `/users?${query}`, undefined, token))).toContain(field)
    // Each of several organizations has its own definitions.
    expect((await app.admin('GET', '/users?attribute.free=1')).body.pagination.total).toBe(0)
    await app.events()
    const single = await startApp()
    await single.admin('PUT', '/organizations/org_default', { settings: { user_attributes: definitions } })
    await addUser(single, 'cleo', { attributes: { department: 'Sales' } })
    expect((await single.admin('GET', '/users?attribute.department=Sales')).body.pagination.total).toBe(1)
    for (const name of ['free', 'departement'])
      expect(refused(await single.admin('GET', `/users?attribute.${name}=1`))).toEqual([`attribute.${name}`])
  })
})
