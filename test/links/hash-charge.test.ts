import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { enrolTotp, openEnrolment } from '#test/support/factors.ts'
import { addUser, PASSWORD, signInLink } from '#test/support/people.ts'

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
