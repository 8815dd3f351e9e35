import { expect } from 'bun:test'
import { SECOND } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { enrolPasskey, enrolTotp, openEnrolment, recoveryCodesOf } from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, signIn } from '#test/support/people.ts'

/** Starts a server with two clients, and users who have factors. */
export const startWithFactors = async () => {
  const app = await startApp()
  const web = await addClient(app, 'web')
  await addClient(app, 'shop', { consent_required: true })
  let users = 0
  /** Moves the clock on to the next code, because each code is valid once. */
  const nextCode = () => app.clock.advance(30 * SECOND)
  const rows = <Name extends 'logins' | 'sessions' | 'factors' | 'recovery_codes' | 'authorization_requests'>(
    name: Name,
  ) => app.context.store.read(async q => q.select().from(q.tables[name]))
  const loginsOf = async (user: { id: string }) =>
    (await rows('logins')).filter(({ user_id }) => user_id === user.id)
  /** A user who enrolled an authenticator app on the account pages. */
  const withTotp = async () => {
    const user = await addUser(app, `totp${++users}`)
    const browser = openBrowser(app)
    const { key, page } = await enrolTotp(app, browser, await openEnrolment(browser, user.username))
    nextCode()
    return { user, browser, key, page, codes: recoveryCodesOf(page) }
  }
  const withPasskey = async () => {
    const user = await addUser(app, `key${++users}`)
    const browser = openBrowser(app)
    const { passkey, page } = await enrolPasskey(browser, await openEnrolment(browser, user.username))
    return { user, browser, passkey, page, codes: recoveryCodesOf(page) }
  }
  /** Enters the password and returns the second step of the login. */
  const secondStep = async (
    user: { username: string },
    more: Record<string, string> = {},
    client = 'web',
  ) => {
    const browser = openBrowser(app)
    const page = await signIn(browser, await browser.get(authorizeUrl(client, more)), user.username)
    expect(page.heading).toBe('Two-step verification')
    return { browser, page }
  }
  const send = (browser: Browser, page: Page, fields: Record<string, string>) =>
    browser.submit(page, fields, '/oauth/second-factor')
  return { app, web, nextCode, rows, loginsOf, withTotp, withPasskey, secondStep, send }
}
