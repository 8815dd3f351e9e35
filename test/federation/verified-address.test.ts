import { afterEach, expect, test } from 'bun:test'
import type { Json } from '#test/support/app.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { startLinking } from './linking-world.ts'
import { addProvider, goThrough } from './upstream.ts'

const { app, upstream, honest, fresh, somebody, entry, accountsOf, whoIs, refusal } = await startLinking()

afterEach(honest)

let made = 0
const trusting = async (attribute_mapping: Json, more: Json = {}): Promise<string> => {
  const alias = `trusting-${++made}`
  await addProvider(app, alias, { client_id: alias, trust_email: true, attribute_mapping, ...more })
  return alias
}

const own: [string, Json][] = [
  ['`email` is mapped to another claim', { email: 'contact' }],
  [
    '`email_verified` is mapped to a claim that is absent',
    { email: 'contact', email_verified: 'contact_ok' },
  ],
]

test.each(own)('FED-21 a claim about another address verifies nothing when %s', async (_, mapping) => {
  const { sub, email } = somebody()
  const user = await addUser(app, sub)
  const alias = await trusting(mapping)
  upstream.twist = ({ claims }) => Object.assign(claims, { contact: email })
  const page = await goThrough(fresh(), upstream, entry(alias), { sub, email: 'own@elsewhere.example' })
  expect([page.status, page.heading]).toEqual([200, 'Is this you?'])
  expect(await accountsOf(user.id)).toEqual([])
})

test('FED-21 an address of another claim opens no organization with allowed_domains', async () => {
  const settings = { allowed_domains: ['strict.example'] }
  const { id: organization_id } = await addOrganization(app, 'strict', { settings })
  const alias = await trusting({ email: 'contact' }, { organization_id })
  const { sub, email } = somebody()
  upstream.twist = ({ claims }) => Object.assign(claims, { contact: 'boss@strict.example' })
  await app.events()
  expect((await goThrough(fresh(), upstream, `/oauth/social/${alias}`, { sub, email })).status).toBe(400)
  expect((await refusal())[0]?.[2]).toBe('address_not_verified')
})

const verified: [string, Json, Json][] = [
  ['the mapped claim is `email`', { email: 'email' }, {}],
  ['both claims have the same address', { email: 'contact' }, {}],
  ['a claim about it is mapped', { email: 'contact', email_verified: 'contact_ok' }, { contact_ok: true }],
]

test.each(verified)('FED-21 an address is linked at once when %s', async (_, mapping, more) => {
  const { sub, email } = somebody()
  const user = await addUser(app, sub)
  const alias = await trusting(mapping)
  upstream.twist = ({ claims }) => Object.assign(claims, { contact: email, ...more })
  const page = await goThrough(fresh(), upstream, entry(alias), { sub, email })
  expect(await whoIs(page)).toBe(user.id)
})

test('FED-21 userinfo about another address does not verify that of the ID token', async () => {
  const { sub, email } = somebody()
  const user = await addUser(app, sub)
  const alias = await trusting({})
  upstream.twist = ({ claims, userinfo }) => {
    for (const name of ['name', 'given_name', 'family_name', 'email_verified']) delete claims[name]
    Object.assign(claims, { email })
    Object.assign(userinfo, { email: 'own@elsewhere.example', email_verified: true })
  }
  const page = await goThrough(fresh(), upstream, entry(alias), { sub, email })
  expect([page.status, page.heading]).toEqual([200, 'Is this you?'])
  expect(await accountsOf(user.id)).toEqual([])
})
