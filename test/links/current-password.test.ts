import { expect, test } from 'bun:test'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { codeOf, enrolTotp, openEnrolment } from '#test/support/factors.ts'
import { addUser, PASSWORD, signInLink } from '#test/support/people.ts'

const app = await startApp()
let made = 0
const newUser = () => addUser(app, `person${++made}`)
const makeTemporary = async ({ id }: { id: string }, password = PASSWORD) => {
  const reset = { password, temporary: true }
  expect((await app.admin('POST', `/users/${id}/reset-password`, reset)).status).toBe(204)
}

/** Opens a new link of the user, and sends a password. */
const choose = async (user: { id: string }, password: string) => {
  const browser = openBrowser(app)
  const page = await browser.get(await signInLink(app, user))
  const answer = await browser.submit(page, { password, password_repeat: password })
  return { browser, page: await browser.follow(answer) }
}

test('PEO-45 a temporary password, typed again behind a link, has to be changed at that login', async () => {
  const user = await newUser()
  await makeTemporary(user)
  const { browser, page } = await choose(user, PASSWORD)
  expect([page.heading, page.html.includes('set by an administrator')]).toEqual([
    'Choose a new password',
    true,
  ])
  const again = await browser.submit(page, { password: PASSWORD, password_repeat: PASSWORD })
  expect([again.status, again.html.includes('password you have now')]).toEqual([400, true])
  expect((await choose(user, 'Another-horse-8')).page.heading).toBe('Your account')
})

test('PEO-45 an expired password, typed again behind a link, stays expired', async () => {
  const settings = (max_age_days: number | null) =>
    app.admin('PUT', '/organizations/default', { settings: { password_policy: { max_age_days } } })
  const user = await newUser()
  expect((await settings(30)).status).toBe(200)
  app.clock.advance(31 * DAY)
  expect((await choose(user, PASSWORD)).page.heading).toBe('Choose a new password')
  expect((await choose(user, 'Another-horse-8')).page.heading).toBe('Your account')
  await settings(null)
})

test('PEO-41 PEO-45 nothing reveals a temporary password before the second factor', async () => {
  const user = await newUser()
  const own = openBrowser(app)
  const { key } = await enrolTotp(app, own, await openEnrolment(own, user.username))
  await makeTemporary(user, 'Another-horse-8')
  for (const [password, heading] of [
    ['Another-horse-8', 'Choose a new password'],
    ['Third-horse-9', 'Your account'],
  ] as const) {
    app.clock.advance(30 * SECOND)
    const { browser, page } = await choose(user, password)
    expect(page.heading).toBe('Two-step verification')
    const proven = await browser.submit(page, { code: codeOf(app, key) }, '/oauth/second-factor')
    expect((await browser.follow(proven)).heading).toBe(heading)
  }
})
