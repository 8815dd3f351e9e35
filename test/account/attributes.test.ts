import { expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { MINUTE } from '#src/lib/duration.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, authorizeUrl, signIn } from '#test/support/people.ts'

const app = await startApp({}, { mail: captureMail() })
const own = { visible: 'user', editable: 'user' }
const acme = await addOrganization(app, 'acme', {
  settings: {
    user_attributes: [
      { name: 'phone_number', label: 'Phone <b>', type: 'string', ...own, searchable: true },
      { name: 'desk', type: 'integer', ...own },
      { name: 'ratio', type: 'number', ...own },
      { name: 'parking', type: 'boolean', ...own },
      { name: 'teams', type: 'array', visible: 'user' },
      { name: 'grade', type: 'string' },
    ],
  },
})
await addClient(app, 'web', { organization_id: acme.id })
let users = 0
const signedIn = async (attributes: Json = {}, more: Json = {}) => {
  const user = await addUser(app, `user${++users}`, { organization_id: acme.id, attributes, ...more })
  const browser = openBrowser(app)
  await signIn(browser, await browser.get('/account?organization=acme'), user.username)
  await app.events()
  return { user, browser }
}
const stored = async (user: Json) => (await app.admin('GET', `/users/${user.id}`)).body.attributes
const types = async () => (await app.events()).map(({ type, metadata }) => [type, metadata])
const PAGE = '/account/profile'
const base = { first_name: 'U', last_name: 'Example' }

test('ATT-12 the profile page shows what users see, escapes it and changes what they edit', async () => {
  const { user, browser } = await signedIn({
    teams: ['red', 'blue'],
    grade: 'secret',
    free: 'unshown',
    parking: true,
  })
  const page = await browser.get(PAGE)
  expect(page.html).toContain('Phone &lt;b&gt;')
  expect(page.html).toContain('red, blue')
  for (const text of ['secret', 'unshown', 'grade', 'free']) expect(page.html).not.toContain(text)
  const { fields } = formOf(page, PAGE)
  expect(fields.attributes).toBe('attribute.phone_number attribute.desk attribute.ratio attribute.parking')
  const change = { ...fields, 'attribute.phone_number': ' +44 1 ', 'attribute.desk': '12' }
  expect((await browser.post(PAGE, change)).location).toBe(`${PAGE}?notice=saved`)
  const after = {
    teams: ['red', 'blue'],
    grade: 'secret',
    free: 'unshown',
    parking: true,
    phone_number: '+44 1',
    desk: 12,
  }
  expect(await stored(user)).toEqual(after)
  expect(await types()).toEqual([['user.updated', { fields: ['attributes'] }]])
  const { 'attribute.parking': _, ...unticked }: Record<string, string> = change
  await browser.post(PAGE, { ...unticked, 'attribute.phone_number': '', 'attribute.desk': '' })
  expect(await stored(user)).toEqual({
    teams: ['red', 'blue'],
    grade: 'secret',
    free: 'unshown',
    parking: false,
  })
})

test('ATT-12 fields that the page did not show, or that users do not edit, are left alone', async () => {
  const attributes = { desk: 3, teams: ['red'], grade: 'A' }
  const { user, browser } = await signedIn(attributes)
  const { fields } = formOf(await browser.get(PAGE), PAGE)
  const { attributes: _, ...old } = fields
  const forged = {
    'attribute.teams': 'x',
    'attribute.grade': 'x',
    'attribute.free': 'x',
    'attribute.__proto__': 'x',
  }
  await browser.post(PAGE, { ...old, ...forged, ...base, email: user.email })
  const names = 'attribute.teams attribute.grade attribute.free attribute.__proto__ __proto__'
  await browser.post(PAGE, { ...fields, ...forged, attributes: names, ...base, email: user.email })
  expect(await stored(user)).toEqual(attributes)
})

test('ATT-12 a form with the largest number that keeps its digits is saved again', async () => {
  const attributes = { desk: Number.MAX_SAFE_INTEGER, ratio: -1_000_000_000_000_000, parking: true }
  const { user, browser } = await signedIn(attributes)
  const { fields } = formOf(await browser.get(PAGE), PAGE)
  const saved = await browser.post(PAGE, { ...fields, 'attribute.phone_number': '+44' })
  expect(saved.location).toBe(`${PAGE}?notice=saved`)
  expect(await stored(user)).toEqual({ ...attributes, phone_number: '+44' })
  const old = { ...attributes, ratio: 1e16 }
  await app.context.store.write(async tx => {
    const { users } = tx.tables
    await tx.update(users).set({ attributes: old }).where(eq(users.id, user.id))
  })
  const again = formOf(await browser.get(PAGE), PAGE)
  expect((await browser.post(PAGE, { ...again.fields, first_name: 'New' })).status).toBe(303)
  expect(await stored(user)).toEqual(old)
})

test('ATT-12 a wrong value is marked, and nothing is saved', async () => {
  const { user, browser } = await signedIn({ desk: 3 })
  const { fields } = formOf(await browser.get(PAGE), PAGE)
  for (const [name, value] of [
    ['desk', 'x'],
    ['desk', '1.5'],
    ['desk', '1e3'],
    ['ratio', '9007199254740992'],
    ['phone_number', 'x'.repeat(1025)],
    ['phone_number', 'a\u202eb'],
  ]) {
    const refused = await browser.post(PAGE, {
      ...fields,
      first_name: 'New',
      [`attribute.${name}`]: value ?? '',
    })
    expect(refused.status).toBe(400)
    expect(refused.html).toContain(`id="attribute.${name}-error"`)
  }
  expect([await stored(user), await types()]).toEqual([{ desk: 3 }, []])
})

test('ATT-12 attributes that would be too large for the admin API are marked, and nothing is saved', async () => {
  const attributes = { desk: 3, notes: 'x'.repeat(64 * 1024 - 100) }
  const { user, browser } = await signedIn(attributes)
  const { fields } = formOf(await browser.get(PAGE), PAGE)
  const large = { ...fields, 'attribute.phone_number': '1'.repeat(100) }
  const refused = await browser.post(PAGE, large)
  expect([refused.status, await types()]).toEqual([400, []])
  expect(refused.html).toContain('id="attribute.phone_number-error"')
  expect(await stored(user)).toEqual(attributes)
})

test('ATT-12 the number 0 and a checkbox count towards this size too, and are marked', async () => {
  const full = (other: Json) => ({
    ...other,
    notes: 'x'.repeat(64 * 1024 - JSON.stringify({ ...other, notes: '' }).length),
  })
  for (const [attributes, change, field] of [
    [full({}), { 'attribute.desk': '0', 'attribute.parking': '' }, 'desk'],
    [full({ parking: true }), { 'attribute.parking': '' }, 'parking'],
    [full({}), { 'attribute.parking': 'true' }, 'parking'],
  ] as const) {
    const { user, browser } = await signedIn(attributes)
    const { fields } = formOf(await browser.get(PAGE), PAGE)
    const refused = await browser.post(PAGE, { ...fields, ...change })
    expect([refused.status, await types()]).toEqual([400, []])
    expect(refused.html).toContain(`id="attribute.${field}-error"`)
    expect(await stored(user)).toEqual(attributes)
    const { body } = await app.admin('PUT', `/users/${user.id}`, { attributes })
    expect(body.attributes).toEqual(attributes)
  }
})

test('CLM-05 a new phone number of the user is unverified', async () => {
  const { user, browser } = await signedIn({ phone_number: '+1', phone_number_verified: true, desk: 1 })
  const { fields } = formOf(await browser.get(PAGE), PAGE)
  await browser.post(PAGE, { ...fields, 'attribute.desk': '2', 'attribute.parking': '' })
  expect(await stored(user)).toMatchObject({ phone_number: '+1', phone_number_verified: true })
  await browser.post(PAGE, { ...fields, 'attribute.phone_number': '+2' })
  expect(await stored(user)).not.toHaveProperty('phone_number_verified')
})

test('ATT-12 after five minutes a change is confirmed first, and then continues without another submit', async () => {
  const { user, browser } = await signedIn()
  const page = await browser.get(PAGE)
  app.clock.advance(6 * MINUTE)
  const { fields } = formOf(page, PAGE)
  const asked = await browser.follow(await browser.post(PAGE, { ...fields, 'attribute.desk': '7' }))
  await browser.follow(await browser.submit(asked, { password: 'Correct-horse-7' }, '/oauth/login'))
  const { location } = await browser.get('/account')
  expect([location, (await stored(user)).desk]).toEqual([undefined, 7])
})

test('ATT-13 required attributes are asked for at the next login, once, without any permission', async () => {
  const blue = await addOrganization(app, 'blue', {
    settings: { user_attributes: [{ name: 'team', label: 'Team', type: 'string', required: true, ...own }] },
  })
  await addClient(app, 'blue-web', { organization_id: blue.id })
  const user = await create(app, '/users', {
    username: 'bea',
    email: 'bea@example.com',
    first_name: 'Bea',
    last_name: 'E',
    password: 'Correct-horse-7',
    organization_id: blue.id,
    roles: [],
  })
  const browser = openBrowser(app)
  const ask = await signIn(browser, await browser.get(authorizeUrl('blue-web')), 'bea')
  expect([ask.heading, ask.url.split('?')[0]]).toEqual(['A few details', '/oauth/attributes'])
  expect((await browser.get(authorizeUrl('blue-web', { prompt: 'none' }))).location).toContain(
    'error=interaction_required',
  )
  await app.events()
  const refused = await browser.submit(ask, { 'attribute.team': ' ' }, '/oauth/attributes')
  expect([refused.status, await types(), await stored(user)]).toEqual([400, [], {}])
  const done = await browser.follow(
    await browser.submit(refused, { 'attribute.team': 'Red' }, '/oauth/attributes'),
  )
  expect(answerOf(done)).toHaveProperty('code')
  expect([await stored(user), await types()]).toEqual([
    { team: 'Red' },
    [['user.updated', { fields: ['attributes'] }]],
  ])
  expect(answerOf(await browser.get(authorizeUrl('blue-web')))).toHaveProperty('code')
  expect((await browser.submit(ask, { 'attribute.team': 'Blue' }, '/oauth/attributes')).status).toBe(400)
  const put = await app.admin('PUT', `/users/${user.id}`, { attributes: {} })
  expect([
    put.status,
    (await browser.follow(await browser.get('/account?organization=blue'))).heading,
  ]).toEqual([200, 'A few details'])
})
