import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addUser, PASSWORD, signInLink } from '#test/support/people.ts'

test('PEO-40 a link that stays open pays for each password that is hashed behind it', async () => {
  const app = await startApp()
  const ada = await addUser(app, 'ada')
  const browser = openBrowser(app, { ip: '198.51.100.1' })
  const page = await browser.get(await signInLink(app, ada))
  const present = { password: PASSWORD, password_repeat: PASSWORD }
  const answers = new Map<number, number>()
  for (let i = 0; i < 302; i++) {
    const { status } = await browser.submit(page, present)
    answers.set(status, (answers.get(status) ?? 0) + 1)
  }
  expect(answers).toEqual(
    new Map([
      [400, 300],
      [429, 2],
    ]),
  )
})
