import { beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf, create, refused } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'
import { claimsOf, grantTokens } from '#test/support/tokens.ts'

let app: TestApp
beforeEach(async () => {
  app = await startApp()
})

const alice = {
  username: 'alice',
  email: 'alice@example.com',
  first_name: 'Alice',
  last_name: 'Liddell',
  password: PASSWORD,
}

const post = (body: Json) => app.admin('POST', '/users', body)
const stored = () => app.context.store.read(q => q.select().from(q.tables.users))

describe('O-57', () => {
  test('deeply nested JSON in attributes is refused, and the next request works', async () => {
    const deep = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`
    const body = JSON.stringify(alice).replace(/}$/, `,"attributes":${deep}}`)
    expect(await post(body)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    const lists = JSON.stringify(alice).replace(
      /}$/,
      `,"attributes":{"a":${'['.repeat(20)}${']'.repeat(20)}}}`,
    )
    expect(refused(await post(lists))).toEqual(['attributes'])
    const wide = { ...alice, attributes: { text: 'x'.repeat(65_536) } }
    expect(refused(await post(wide))).toEqual(['attributes'])
    expect(await stored()).toEqual([])
    expect((await post({ ...alice, attributes: { a: { b: { c: [[[1]]] } } } })).status).toBe(201)
  })

  test('a password of a million characters is refused without being hashed', async () => {
    const hash = Bun.password.hash
    let hashed = 0
    Bun.password.hash = (...args) => {
      hashed++
      return hash(...args)
    }
    try {
      expect(refused(await post({ ...alice, password: `Aa1!${'x'.repeat(1_000_000)}` }))).toEqual([
        'password',
      ])
      expect(refused(await post({ ...alice, password: `Aa1!${'x'.repeat(1021)}` }))).toEqual(['password'])
      expect(hashed).toBe(0)
      expect((await post({ ...alice, password: `Aa1!${'x'.repeat(1020)}` })).status).toBe(201)
      expect(hashed).toBe(1)
    } finally {
      Bun.password.hash = hash
    }
  })
})

test('a number in attributes that may lose digits is refused, and nothing is stored', async () => {
  const send = (number: string) =>
    post(JSON.stringify(alice).replace(/}$/, `,"attributes":{"a":[{"b":${number}}]}}`))
  for (const number of ['1e999', '-1e999', '12345678901234567890', '9007199254740992', '-9007199254740992'])
    expect([number, refused(await send(number))]).toEqual([number, ['attributes']])
  expect(await stored()).toEqual([])
  await app.events()
  const { id } = (await send('-9007199254740991')).body
  expect((await app.admin('GET', `/users/${id}`)).body.attributes).toEqual({
    a: [{ b: Number.MIN_SAFE_INTEGER }],
  })
  expect(refused(await app.admin('PUT', `/users/${id}`, '{"attributes":{"a":1e16}}'))).toEqual(['attributes'])
  expect((await app.events()).map(({ type }) => type)).toEqual(['user.created'])
})

test('a stored number that has lost digits may be sent back, but not moved', async () => {
  const user = await addUser(app, 'alice')
  const path = `/users/${user.id}`
  const attributes = { a: [{ b: 1e20 }] }
  await app.context.store.write(tx => tx.update(tx.tables.users).set({ attributes }))
  await app.events()
  const { body } = await app.admin('GET', path)
  expect((await app.admin('PUT', path, { ...body, first_name: 'New' })).body.attributes).toEqual(attributes)
  const more = { a: [{ ...attributes.a[0], c: 1 }] }
  expect((await app.admin('PUT', path, { attributes: more })).body.attributes).toEqual(more)
  const moved = { ...more, c: 1e20 }
  expect(refused(await app.admin('PUT', path, { attributes: moved }))).toEqual(['attributes'])
  expect((await stored())[0]?.attributes).toEqual(more)
  expect((await app.events()).map(({ metadata }) => metadata)).toEqual([
    { fields: ['first_name'] },
    { fields: ['attributes'] },
  ])
})

describe('O-58 hostile text is refused in every field of a user, and nothing is stored', () => {
  const hostile = [
    '\u0000',
    'a\u0000b',
    '\ud800x',
    'x\udfff',
    'a\r\nb',
    '\u001b[31m',
    'a\u007fb',
    '\u2028x',
    '\ufeffx',
    'a\u202eb',
  ]
  const fields: Record<string, (text: string) => Json> = {
    username: username => ({ username }),
    email: text => ({ email: `${text}@example.com` }),
    first_name: first_name => ({ first_name }),
    last_name: last_name => ({ last_name }),
    'roles.0': role => ({ roles: [role] }),
    organization_id: organization_id => ({ organization_id }),
  }
  test.each(Object.keys(fields))('%s', async field => {
    for (const text of hostile)
      expect(refused(await post({ ...alice, ...fields[field]?.(text) }))).toEqual([field])
    expect(await stored()).toEqual([])
  })

  test('password and attributes accept line feeds and bidirectional marks, but no control characters', async () => {
    for (const text of ['\u0000', '\ud800', '\u001b', '\u007f', '\r']) {
      expect(refused(await post({ ...alice, password: PASSWORD + text }))).toEqual(['password'])
      expect(refused(await post({ ...alice, attributes: { a: [{ b: text }] } }))).toEqual(['attributes'])
      expect(refused(await post({ ...alice, attributes: { [text]: 1 } }))).toEqual(['attributes'])
    }
    const user = await create(app, '/users', { ...alice, attributes: { note: 'a\n\tb \u202e' } })
    expect(user.attributes).toEqual({ note: 'a\n\tb \u202e' })
  })

  test('overlong UTF-8 and a byte order mark are not JSON', async () => {
    const token = await callerOf(app, 'org_default', ['admin'])
    const send = (body: BodyInit) =>
      app.call('/api/v1/admin/users', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body,
      })
    const text = JSON.stringify(alice)
    const overlong = Buffer.concat([
      Buffer.from(text.slice(0, 14)),
      Buffer.from([0xc0, 0xaf]),
      Buffer.from(text.slice(14)),
    ])
    for (const body of [overlong, `\ufeff${text}`]) expect((await send(body)).status).toBe(400)
    expect(await stored()).toEqual([])
  })

  test('names keep the apostrophes, hyphens and accents that they need', async () => {
    const name = { first_name: 'Zoë 李', last_name: "O’Neill-d'Arc 🦊" }
    expect(await create(app, '/users', { ...alice, ...name })).toMatchObject(name)
  })
})

describe('O-59 a user name is ASCII, and compared without case', () => {
  test('look-alikes are refused', async () => {
    for (const username of [
      'ａｌｉｃｅ',
      'аlice',
      'straße',
      'dıan',
      'alicé',
      'alice\u0301',
      'ali\u200bce',
      '\u212aelvin',
    ])
      expect(refused(await post({ ...alice, username }))).toEqual(['username'])
  })

  test('a name in another case finds the user at login and is refused for a second user', async () => {
    const user = await addUser(app, 'Ivan')
    await addClient(app, 'shop')
    for (const [i, typed] of ['IVAN', 'ivan', 'Ivan@EXAMPLE.com', ' ivan ', 'ｉｖａｎ'].entries()) {
      app.clock.advance(60_000 * (i + 1))
      const browser = openBrowser(app)
      await signIn(browser, await browser.get(authorizeUrl('shop')), typed)
      const [row] = await stored()
      expect([typed, row?.last_login]).toEqual([typed, app.clock.now()])
    }
    for (const username of ['IVAN', 'ivan', 'iVaN'])
      expect((await post({ ...alice, username })).status).toBe(409)
    expect((await app.admin('PUT', `/users/${user.id}`, { username: 'IVAN' })).body.username).toBe('IVAN')
  })
})

test('O-60 all spellings of an address are one: create, update and login agree', async () => {
  const user = await create(app, '/users', { ...alice, email: 'Alice+tag@BÜCHER.example' })
  expect(user.email).toBe('Alice+tag@BÜCHER.example')
  for (const email of ['alice+tag@bücher.example', 'ALICE+TAG@xn--bcher-kva.example']) {
    expect((await post({ ...alice, username: 'other', email })).status).toBe(409)
    const other = await addUser(app, 'second')
    expect((await app.admin('PUT', `/users/${other.id}`, { email })).status).toBe(409)
    await app.admin('DELETE', `/users/${other.id}`)
  }
  for (const email of [
    'alice+tag@bücher.example.',
    '"alice"@example.com',
    'alice@localhost',
    'alice@[127.0.0.1]',
  ])
    expect(refused(await post({ ...alice, username: 'other', email }))).toEqual(['email'])
  expect((await post({ ...alice, username: 'other', email: 'alice@bücher.example' })).status).toBe(201)
  await addClient(app, 'shop')
  app.clock.advance(1000)
  const browser = openBrowser(app)
  await signIn(browser, await browser.get(authorizeUrl('shop')), 'alice+tag@xn--bcher-kva.example')
  expect((await app.admin('GET', `/users/${user.id}`)).body.last_login).toBe('2026-01-15T12:00:01.000Z')
})

test('O-62 the database stores passwords only as argon2id', async () => {
  await create(app, '/users', alice)
  const { path } = app.context.store as Json
  const rows = await app.context.store.read(q => q.select().from(q.tables.users))
  expect(rows.map(({ password_hash }) => password_hash)).toEqual([
    expect.stringMatching(/^\$argon2id\$v=19\$m=64,t=1,p=1\$/),
  ])
  const files = app.context.store.engine === 'sqlite' ? [path, `${path}-wal`] : []
  for (const file of files) expect(readFileSync(file).includes(PASSWORD)).toBe(false)
  const everything = await app.context.store.read(q =>
    Promise.all(Object.values(q.tables).map(table => q.select().from(table as typeof q.tables.users))),
  )
  expect(JSON.stringify(everything)).not.toContain(PASSWORD)
})

test('O-72 __proto__, constructor and repeated keys pollute nothing', async () => {
  const body = JSON.stringify(alice).slice(0, -1)
  expect(refused(await post(`${body},"__proto__":{"enabled":false}}`))).not.toEqual([])
  expect(refused(await post(`${body},"constructor":{"prototype":{"x":1}}}`))).toEqual(['constructor'])
  expect(refused(await post(`${body},"attributes":{"__proto__":{"x":1}}}`))).toEqual(['attributes'])
  expect(refused(await post(`${body},"attributes":{"a":{"__proto__":1}}}`))).toEqual(['attributes'])
  expect(({} as Json).x).toBeUndefined()
  const { status, body: user } = await post(
    `${body},"username":"second","attributes":{"constructor":{"prototype":1}}}`,
  )
  expect([status, user.username, user.attributes]).toEqual([201, 'second', { constructor: { prototype: 1 } }])
})

describe('tenants', () => {
  const scopes = ['users:read', 'users:create', 'users:update', 'users:delete']
  test('M-06 a caller of A creates users in A by default, and nowhere else', async () => {
    const [acme, beta] = [await addOrganization(app, 'acme'), await addOrganization(app, 'beta')]
    const token = await callerOf(app, acme.id, scopes)
    const send = (body: Json) => app.admin('POST', '/users', body, token)
    expect((await send(alice)).body.organization_id).toBe(acme.id)
    const foreign = await send({
      ...alice,
      username: 'other',
      email: 'o@example.com',
      organization_id: beta.id,
    })
    const unknown = await send({
      ...alice,
      username: 'other',
      email: 'o@example.com',
      organization_id: 'org_x',
    })
    expect(foreign.status).toBe(422)
    expect(foreign.body.details).toEqual(unknown.body.details)
    expect(refused(await send({ ...alice, organization_id: 'org_default' }))).toEqual(['organization_id'])
    expect((await stored()).map(({ organization_id }) => organization_id)).toEqual([acme.id])
  })

  test('M-08 the same person in A and B: tokens are about the user of the requested organization', async () => {
    const [acme, beta] = [await addOrganization(app, 'acme'), await addOrganization(app, 'beta')]
    for (const { id, slug } of [acme, beta]) {
      const user = await create(app, '/users', { ...alice, organization_id: id })
      const client = await addClient(app, `${slug}-app`, { organization_id: id })
      const claims = claimsOf((await grantTokens(app, client, user)).access_token)
      expect([`usr_${claims.sub}`, `org_${claims.org_id}`]).toEqual([user.id, id])
    }
  })

  test('M-11 lists, totals, searches and filters of A include only A; user_count is right', async () => {
    const [acme, beta] = [await addOrganization(app, 'acme'), await addOrganization(app, 'beta')]
    const token = await callerOf(app, acme.id, [...scopes, 'organizations:read'])
    await addUser(app, 'anna', { organization_id: acme.id })
    await addUser(app, 'bert', { organization_id: beta.id })
    await addUser(app, 'carl')
    const seen = async (query: string) => {
      const { body } = await app.admin('GET', `/users${query}`, undefined, token)
      return [body.data.map((user: Json) => user.username), body.pagination.total]
    }
    for (const query of ['', '?role=user', '?search=example', '?enabled=true', `?organization_id=${acme.id}`])
      expect([query, await seen(query)]).toEqual([query, [['anna'], 1]])
    for (const query of [
      `?organization_id=${beta.id}`,
      '?organization_id=org_x',
      '?search=bert',
      '?search=be',
    ])
      expect([query, await seen(query)]).toEqual([query, [[], 0]])
    expect((await app.admin('GET', `/organizations?search=acme`)).body.data[0].user_count).toBe(1)
  })

  test('M-12 a role that exists only in another organization is unknown', async () => {
    const [acme, beta] = [await addOrganization(app, 'acme'), await addOrganization(app, 'beta')]
    await create(app, '/roles', { name: 'editor', permissions: [], organization_id: beta.id })
    expect(refused(await post({ ...alice, organization_id: acme.id, roles: ['editor'] }))).toEqual(['roles'])
    const user = await create(app, '/users', { ...alice, organization_id: acme.id })
    expect(refused(await app.admin('PUT', `/users/${user.id}`, { roles: ['user', 'editor'] }))).toEqual([
      'roles',
    ])
  })
})

test('H-46 one answer names every wrong field of a new user, including the organization’s rules', async () => {
  const given = { username: 'x', email: 'nowhere', first_name: '', last_name: '', password: 'short' }
  const before = await app.context.store.read(async q => q.select().from(q.tables.users))
  await app.admin('GET', '/users')
  await app.events()
  const answer = await app.admin('POST', '/users', { ...given, roles: ['nobody'] })
  expect(refused(answer)).toEqual(['email', 'password', 'roles', 'username'])
  expect(answer.body.error_description).toBe(`${answer.body.details.length} fields are not valid.`)
  expect(JSON.stringify(answer.body)).not.toContain('short')
  const elsewhere = { ...given, organization_id: 'org_nowhere' }
  expect(refused(await app.admin('POST', '/users', elsewhere))).toEqual([
    'email',
    'organization_id',
    'username',
  ])
  expect(await app.context.store.read(async q => q.select().from(q.tables.users))).toEqual(before)
  expect(await app.events()).toEqual([])
})
