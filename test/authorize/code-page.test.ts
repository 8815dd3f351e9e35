import { expect, test } from 'bun:test'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser, type Page } from '#test/support/browser.ts'
import { linkWith } from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, codeRow } from '#test/support/people.ts'

test('PAG-71 a code is entered only for the user whom the page names', async () => {
  const mail = captureMail()
  const app = await startApp({}, { mail })
  await addClient(app, 'web')
  await app.admin('PUT', '/organizations/default', { settings: { email_code: 'users' } })
  for (const name of ['xaver', 'yvonne']) await addUser(app, name, { email_verified: true })
  const browser = openBrowser(app)
  const form = await browser.get(linkWith(await browser.get(authorizeUrl('web')), '/oauth/email-code'))
  const ask = async (username: string) => {
    const page = await browser.follow(await browser.submit(form, { username }, '/oauth/email-code'))
    expect([page.heading, page.html.includes(username)]).toEqual(['Check your email', true])
    mail.clear()
    while ((await deliverMails(app.context)) > 0);
    return { page, code: /^\d{6}$/m.exec(mail.mails[0]?.text ?? '')?.[0] ?? '' }
  }
  const enter = (page: Page, code: string) => browser.submit(page, { code }, '/oauth/email-code')
  const stored = () =>
    app.context.store.read(async q => [
      await q.select().from(q.tables.email_codes),
      await q.select().from(q.tables.throttles),
      await q.select().from(q.tables.authorization_requests),
    ])

  const first = await ask('xaver')
  const second = await ask('yvonne')
  const before = await stored()
  await app.events()
  const refused = await enter(first.page, first.code)
  expect([refused.status, refused.heading]).toEqual([400, 'This page has expired'])
  expect([await stored(), await app.events()]).toEqual([before, []])
  const { code } = answerOf(await enter(second.page, second.code))
  expect((await codeRow(app, code)).amr).toEqual(['otp'])
})

test('PAG-65 the next account is asked for its own name, not shown that of the code', async () => {
  const mail = captureMail()
  const app = await startApp({}, { mail })
  await addClient(app, 'shop', { consent_required: true })
  await app.admin('PUT', '/organizations/default', { settings: { email_code: 'users' } })
  await addUser(app, 'xaver', { email_verified: true })
  const browser = openBrowser(app)
  const form = await browser.get(linkWith(await browser.get(authorizeUrl('shop')), '/oauth/email-code'))
  const page = await browser.follow(await browser.submit(form, { username: 'xaver' }, '/oauth/email-code'))
  while ((await deliverMails(app.context)) > 0);
  const code = /^\d{6}$/m.exec(mail.mails[0]?.text ?? '')?.[0] ?? ''
  const consent = await browser.follow(await browser.submit(page, { code }, '/oauth/email-code'))
  const login = await browser.follow(await browser.submit(consent, {}, '/oauth/other-account'))
  const again = await browser.get(linkWith(login, '/oauth/email-code'))
  expect([again.heading, again.html.includes('xaver')]).toEqual([form.heading, false])
})
