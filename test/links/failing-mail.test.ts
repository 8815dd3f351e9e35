import { beforeEach, describe, expect, test } from 'bun:test'
import type { Mail } from '#src/context.ts'
import { HOUR } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { startApp } from '#test/support/app.ts'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { enrolTotp, openEnrolment } from '#test/support/factors.ts'
import { addUser } from '#test/support/people.ts'

const sent: Mail[] = []
const send = async (mail: Mail) => {
  sent.push(mail)
}
const app = await startApp({}, { mail: { send } })
let machines = 0

const deliver = async () => {
  sent.length = 0
  while ((await deliverMails(app.context)) > 0);
}

beforeEach(async () => {
  await deliver()
  app.clock.advance(2 * HOUR)
})

describe('a notice of a factor', () => {
  const rename = async (browser: Browser, name: string) => {
    const page = await browser.get('/account/security')
    const form = page.forms.find(({ action }) => action.startsWith('/account/security/rename'))
    await browser.submit(page, { ...form?.fields, name }, form?.action)
  }

  test.each([
    ['My phone', 'My phone'],
    ['Parcel held: pay at evil.example/x', 'Authenticator app'],
  ])('that is named %j calls it %j', async (name, shown) => {
    const user = await addUser(app, `owner${++machines}`)
    const browser = openBrowser(app)
    await enrolTotp(app, browser, await openEnrolment(browser, user.username))
    await rename(browser, name)
    await deliver()
    const [factor] = (await app.admin('GET', `/users/${user.id}/factors`)).body.data
    expect(factor.name).toBe(name)
    await app.admin('DELETE', `/users/${user.id}/factors`)
    await deliver()
    const [letter, ...more] = sent
    expect([letter?.to, more]).toEqual([user.email, []])
    expect(letter?.text).toContain(`“${shown}” was removed`)
    expect(`${letter?.subject}${letter?.text}${letter?.html}`).not.toContain('evil')
  })
})
