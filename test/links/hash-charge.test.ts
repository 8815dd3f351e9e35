import { expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { charge } from '#src/http/rate-limits.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { enrolTotp, openEnrolment } from '#test/support/factors.ts'
import { addUser, PASSWORD, signIn, signInLink } from '#test/support/people.ts'

const app = await startApp()
let made = 0

/**
 * Opens the form behind a link of a user with a second factor. The form can be sent again until the factor is
 * proven.
 */
const openLink = async () => {
  const user = await addUser(app, `person${++made}`)
  const own = openBrowser(app)
  await enrolTotp(app, own, await openEnrolment(own, user.username))
  const browser = openBrowser(app, { ip: `198.51.100.${made}` })
  return { browser, page: await browser.get(await signInLink(app, user)) }
}
const chosen = (password: string) => ({ password, password_repeat: password })

test('PEO-40 each password that is hashed behind an open link is charged', async () => {
  const { browser, page } = await openLink()
  const answers = new Map<number, number>()
  for (let i = 0; i < 302; i++) {
    const { status } = await browser.submit(page, chosen(PASSWORD))
    answers.set(status, (answers.get(status) ?? 0) + 1)
  }
  expect(answers).toEqual(
    new Map([
      [303, 300],
      [429, 2],
    ]),
  )
})

/** Takes this number of hashes, by default all of them, from the budget of a network. */
const spend = (ip_address: string, units = 300) =>
  charge(app.context, { ip_address, organization_id: undefined, kind: 'hash', units })

test.each([['a new user'], ['a user who was created with it']])(
  'PEO-40 the password behind an invitation for %s is charged',
  async who => {
    const username = `invited${++made}`
    const person = { username, email: `${username}@example.com`, first_name: 'Bob', last_name: 'Roe' }
    const isNew = who === 'a new user'
    const { invitation_url } = isNew
      ? await create(app, '/invitations', { delivery: 'link' })
      : await create(app, '/users', { ...person, invite: 'link' })
    const ip = `198.51.100.${made}`
    const browser = openBrowser(app, { ip })
    const opened = await browser.get(invitation_url)
    const page = isNew ? await browser.submit(opened, person) : opened
    const form = { ...page, forms: page.forms.filter(({ fields }) => Object.hasOwn(fields, 'password')) }
    spend(ip)
    await app.events()
    expect((await browser.submit(form, chosen(PASSWORD))).status).toBe(429)
    expect(await app.events()).toEqual([])
  },
)

test('PEO-40 the first password that a user chooses on the account page is charged', async () => {
  const user = await addUser(app, `person${++made}`)
  const ip = `198.51.100.${made}`
  const browser = openBrowser(app, { ip })
  await signIn(browser, await browser.get('/account'), user.username)
  await app.context.store.write(async tx => {
    await tx.update(tx.tables.users).set({ password_hash: null }).where(eq(tx.tables.users.id, user.id))
    await tx.delete(tx.tables.devices).where(eq(tx.tables.devices.user_id, user.id))
  })
  const page = await browser.get('/account/change-password')
  // The login has taken one.
  spend(ip, 299)
  expect((await browser.submit(page, chosen(PASSWORD))).status).toBe(429)
})

test('PEO-41 behind a link the current password gets the same answer as any other', async () => {
  const { browser, page } = await openLink()
  const seen = []
  for (const password of [PASSWORD, 'Another-horse-8']) {
    const answer = await browser.submit(page, chosen(password))
    seen.push([answer.status, (await browser.follow(answer)).heading])
  }
  expect(seen).toEqual([
    [303, 'Two-step verification'],
    [303, 'Two-step verification'],
  ])
})
