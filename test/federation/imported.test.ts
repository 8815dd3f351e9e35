import { beforeEach, expect, test } from 'bun:test'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed } from '#src/seed/export.ts'
import { readSeed } from '#src/seed/read.ts'
import type { Json } from '#test/support/app.ts'
import { addUser, PASSWORD, signIn } from '#test/support/people.ts'
import { startLinking } from './linking-world.ts'
import { goThrough } from './upstream.ts'

const { app, upstream, fresh, somebody, entry, accountsOf, usersBy, whoIs } = await startLinking()
const password_hash = Bun.password.hashSync(PASSWORD, { algorithm: 'bcrypt', cost: 4 })

const apply = async (user: Json): Promise<void> => {
  await applySeed(app.context, readSeed({ users: [user] }))
  await app.events()
}

/** Expects that the owner of the address is asked for the password of the user who has it. */
const expectAsked = async (sub: string, email: string): Promise<void> => {
  const page = await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
  expect([page.status, page.heading]).toEqual([200, 'Is this you?'])
  const [user] = await usersBy(email)
  expect(await accountsOf(user?.id)).toEqual([])
  expect(await app.events()).toEqual([])
}

beforeEach(async () => {
  await app.events()
})

test('PEO-43 an imported user with a password and an unverified address is not linked by it', async () => {
  const { sub, email } = somebody()
  await apply({ username: `old-${sub}`, email, password_hash })
  await expectAsked(sub, email)
})

test('PEO-43 a user who has signed in is not linked by an unverified address after a move', async () => {
  const { sub, email } = somebody()
  const { id } = await addUser(app, `old-${sub}`, { email, email_verified: false })
  const browser = fresh()
  await signIn(browser, await browser.get('/account'), `old-${sub}`)
  const { users = [] } = await exportSeed(app.context, { secrets: true })
  await app.admin('DELETE', `/users/${id}`)
  await apply(users.find(user => user.email === email) ?? {})
  await expectAsked(sub, email)
})

test.each([
  ['without a password', {}],
  ['with a verified address', { password_hash, email_verified: true }],
])('FED-03 an imported user %s is linked at once', async (_, more) => {
  const { sub, email } = somebody()
  await apply({ username: `old-${sub}`, email, ...more })
  const [user] = await usersBy(email)
  expect(await whoIs(await goThrough(fresh(), upstream, entry('trusted'), { sub, email }))).toBe(user?.id)
  expect(await accountsOf(user?.id)).toMatchObject([{ subject: sub }])
})
