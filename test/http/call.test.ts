import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addUser, signIn } from '#test/support/people.ts'

test('a user agent is stored with at most 512 characters', async () => {
  const app = await startApp()
  await addUser(app, 'ada')
  const browser = openBrowser(app, { headers: { 'user-agent': 'x'.repeat(513) } })
  await signIn(browser, await browser.get('/account'), 'ada')
  const { body } = await app.admin('GET', '/events?type=user.login')
  const logins = await app.context.store.read(async q => q.select().from(q.tables.logins))
  const stored = [...body.data, ...logins].map(({ user_agent }) => user_agent)
  expect(stored).toEqual(Array(2).fill('x'.repeat(512)))
})
