import { expect } from 'bun:test'
import { SECOND } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { answerOf, type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { codeOf, enrolTotp, linkWith, openEnrolment, recoveryCodesOf } from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, signIn } from '#test/support/people.ts'

export const COOKIE = 'gatehouse_remembered_8080'
export const STEP = 'Two-step verification'

/** Starts a server with a client. Returns the server with helpers for tests of remembered browsers. */
export const startRemembering = async () => {
  const mail = captureMail()
  const app = await startApp({}, { mail })
  await addClient(app, 'web', { scopes: ['openid', 'users:read'] })
  let made = 0

  const allow = async (settings: Json) =>
    expect((await app.admin('PUT', '/organizations/default', { settings })).status).toBe(200)
  const rowsOf = async ({ id }: Json) =>
    (await app.context.store.read(async q => q.select().from(q.tables.remembered_browsers))).filter(
      ({ user_id }) => user_id === id,
    )
  const newUser = async (more: Json = {}) => {
    const user = await addUser(app, `person${++made}`, { email_verified: true, ...more })
    const own = openBrowser(app)
    const { key, page } = await enrolTotp(app, own, await openEnrolment(own, user.username))
    return { user, key, codes: recoveryCodesOf(page) }
  }
  const logIn = async (browser: Browser, username: string, more: Record<string, string> = {}) =>
    signIn(browser, await browser.get(authorizeUrl('web', more)), username)
  const code = (key: string) => {
    app.clock.advance(30 * SECOND)
    return codeOf(app, key)
  }
  const prove = async (browser: Browser, page: Page, key: string, more: Record<string, string> = {}) =>
    browser.follow(await browser.submit(page, { code: code(key), ...more }, '/oauth/second-factor'))
  const signOut = (browser: Browser) => browser.cookies.delete('gatehouse_login_8080')

  /** Returns a user, and a signed-out browser that is remembered for this user. */
  const remembered = async (more: Json = {}, who?: Awaited<ReturnType<typeof newUser>>) => {
    const { user, key, codes } = who ?? (await newUser(more))
    const browser = openBrowser(app)
    const step = await logIn(browser, user.username)
    expect(answerOf(await prove(browser, step, key, { remember: '1' })).code).toBeString()
    signOut(browser)
    return { user, key, codes, browser }
  }
  /** True when the browser asks for the second factor at the next login. */
  const asks = async (browser: Browser, username: string, more: Record<string, string> = {}) => {
    const page = await logIn(browser, username, more)
    signOut(browser)
    return page.heading === STEP
  }
  /** Signs in with a code by mail. Returns the next page. */
  const logInByMail = async (browser: Browser, username: string) => {
    const page = await browser.get(linkWith(await browser.get(authorizeUrl('web')), '/oauth/email-code'))
    const sent = await browser.submit(page, { username }, '/oauth/email-code')
    await deliverMails(app.context)
    const letter = mail.mails.findLast(({ subject }) => subject.startsWith('Your code for'))
    const typed = /^\d{6}$/m.exec(letter?.text ?? '')?.[0] ?? ''
    return browser.follow(
      await browser.submit(await browser.follow(sent), { code: typed }, '/oauth/email-code'),
    )
  }
  return { app, mail, allow, rowsOf, newUser, logIn, code, prove, signOut, remembered, asks, logInByMail }
}
