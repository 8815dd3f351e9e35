import { describe, expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { answerOf, type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { enrolTotp, openEnrolment } from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  codeRow,
  logInTo,
  PASSWORD,
  signIn,
} from '#test/support/people.ts'
import { redeem } from '#test/support/tokens.ts'

const app = await startApp()
const acme = await addOrganization(app, 'acme')
const ada = await addUser(app, 'ada')
const bob = await addUser(app, 'bob')
const carl = await addUser(app, 'carl')
const foreigner = await addUser(app, 'foreign', { organization_id: acme.id })
const web = await addClient(app, 'web')
await addClient(app, 'acme-web', { organization_id: acme.id })

const several = async () => {
  const browser = openBrowser(app)
  await logInTo(browser, 'web', 'ada')
  await logInTo(browser, 'web', 'bob', { prompt: 'login' })
  return browser
}
const picker = (more = {}) => authorizeUrl('web', { prompt: 'select_account', ...more })

const offered = (page: Page) => formOf(page).buttons.filter(({ name }) => name === 'login')

/** Returns the login handle of the button that shows the e-mail address. */
const handleOf = (page: Page, email: string): string => {
  const button = [...page.html.matchAll(/<button[^>]*value="([^"]*)".*?<\/button>/gs)].find(([html]) =>
    html.includes(email),
  )
  return button?.[1] ?? 'missing'
}

test('AUT-30 lists the signed-in users, and continues as the selected one', async () => {
  const browser = await several()
  const page = await browser.get(picker())
  expect(page.heading).toBe('Choose an account')
  expect(offered(page)).toHaveLength(3)
  const { code } = answerOf(await browser.submit(page, { login: handleOf(page, ada.email) }))
  expect((await codeRow(app, code)).user_id).toBe(ada.id)
})

test('can be returned to from the second factor or password of another user, to select again', async () => {
  const browser = await several()
  const olga = await addUser(app, 'olga')
  await logInTo(browser, 'web', 'olga', { prompt: 'login' })
  const elsewhere = openBrowser(app)
  await enrolTotp(app, elsewhere, await openEnrolment(elsewhere, 'olga'))
  const page = await browser.get(picker())
  const wrong = await browser.follow(await browser.submit(page, { login: handleOf(page, olga.email) }))
  expect(wrong.heading).toBe('Two-step verification')
  const other = await browser.follow(await browser.submit(page, { login: 'other' }))
  expect(other.heading).toBe('Sign in')
  const { code } = answerOf(await browser.submit(page, { login: handleOf(page, bob.email) }))
  expect((await codeRow(app, code)).user_id).toBe(bob.id)
  // The authorization request ended when the code was issued.
  expect((await browser.submit(page, { login: handleOf(page, ada.email) })).status).toBe(400)
})

test('is not shown with one login, and not without a login', async () => {
  const browser = openBrowser(app)
  expect((await browser.get(picker())).heading).toBe('Sign in')
  await logInTo(browser, 'web', 'ada')
  expect(answerOf(await browser.get(picker())).code).toBeString()
})

test('M-03 lists no user of another organization and no disabled user', async () => {
  const browser = await several()
  await logInTo(browser, 'acme-web', 'foreign')
  await logInTo(browser, 'web', 'carl', { prompt: 'login' })
  await app.admin('PUT', `/users/${carl.id}`, { enabled: false })
  const page = await browser.get(picker())
  expect(offered(page)).toHaveLength(3)
  expect(page.html).not.toContain('foreign@example.com')
  expect(page.html).not.toContain(carl.email)
})

test('"another account" shows the login form, also after a reload', async () => {
  const browser = await several()
  const page = await browser.get(picker())
  const other = await browser.follow(await browser.submit(page, { login: 'other' }))
  expect(other.heading).toBe('Sign in')
  const reloaded = await browser.get(other.url)
  expect(formOf(reloaded).fields.username).toBe('')
  const eve = await addUser(app, 'eve')
  const { code } = answerOf(await browser.submit(reloaded, { username: 'eve', password: PASSWORD }))
  expect((await codeRow(app, code)).user_id).toBe(eve.id)
})

test('the selected user signs in where prompt=login asks for it too', async () => {
  const browser = await several()
  const page = await browser.get(picker({ prompt: 'login select_account' }))
  expect(page.heading).toBe('Sign in')
})

test('the selected user signs in again when the login is too old', async () => {
  const browser = await several()
  app.clock.advance(10_000)
  const page = await browser.get(picker({ max_age: '5' }))
  const login = await browser.follow(await browser.submit(page, { login: handleOf(page, bob.email) }))
  expect(login.heading).toBe('Sign in')
  expect(formOf(login).fields.username).toBe('bob')
})

describe('a login that was not offered', () => {
  test.each([['junk'], [''], ['login_019bc186-de00-77c8-8403-8f016336b926']])('%j', async login => {
    const browser = await several()
    const page = await browser.get(picker())
    expect((await browser.submit(page, { login })).status).toBe(400)
  })

  test('of another browser', async () => {
    const other = await several()
    const foreign = handleOf(await other.get(picker()), ada.email)
    const browser = await several()
    expect((await browser.submit(await browser.get(picker()), { login: foreign })).status).toBe(400)
  })

  test('that has ended in the meantime', async () => {
    const browser = await several()
    const page = await browser.get(picker())
    await app.admin('DELETE', `/users/${bob.id}/sessions`)
    const answer = await browser.submit(page, { login: handleOf(page, bob.email) })
    expect([answer.status, answer.location]).toEqual([400, undefined])
  })
})

describe('PAG-68 an account is forgotten', () => {
  const forget = async (browser: Browser, page: Page, user: { email: string }) =>
    browser.follow(await browser.submit(page, { forget: handleOf(page, user.email) }))
  const happened = async () => (await app.events()).map(({ type, actor_id }) => [type, actor_id])
  const loginsOf = async (user: { id: string }) =>
    (await app.context.store.read(async q => q.select().from(q.tables.logins)))
      .filter(({ user_id }) => user_id === user.id)
      .map(({ id }) => id)

  test('its login ends as by signing out, and the chooser stays until no login is left', async () => {
    const browser = await several()
    const page = await browser.get(picker())
    expect(page.html).toContain('aria-label="Sign Ada Example out of this browser"')
    const login = handleOf(page, ada.email)
    await app.events()
    const one = await forget(browser, page, ada)
    expect([one.heading, offered(one).length]).toEqual(['Choose an account', 2])
    expect(one.html).not.toContain(ada.email)
    expect(await happened()).toEqual([['user.logout', ada.id]])
    expect(await loginsOf(ada)).not.toContain(login)
    const again = await forget(browser, page, ada)
    expect([again.heading, await happened()]).toEqual(['Choose an account', []])
    const none = await forget(browser, one, bob)
    expect(none.heading).toBe('Sign in')
    expect(await happened()).toEqual([['user.logout', bob.id]])
    expect([...browser.cookies.keys()].filter(name => name.includes('_login'))).toEqual([])
    expect(answerOf(await signIn(browser, none, 'bob')).code).toBeString()
  })

  test('sessions that came from it end, with their events and no other', async () => {
    const browser = openBrowser(app)
    await logInTo(browser, 'web', 'ada')
    const { code = '' } = await logInTo(browser, 'web', 'bob', { prompt: 'login' })
    await redeem(app, web, code)
    const page = await browser.get(picker())
    await app.events()
    await forget(browser, page, bob)
    expect(await happened()).toEqual([
      ['user.logout', bob.id],
      ['session.revoked', bob.id],
    ])
  })

  test('ends no login of another browser or organization, and none without the token', async () => {
    const browser = await several()
    const page = await browser.get(picker())
    const theirs = await several()
    await logInTo(browser, 'acme-web', 'foreign')
    const before = await loginsOf(foreigner)
    const other = handleOf(await theirs.get(picker()), ada.email)
    await app.events()
    for (const login of [other, before[0] ?? 'none', 'junk'])
      expect((await browser.follow(await browser.submit(page, { forget: login }))).heading).toBe(
        'Choose an account',
      )
    const forged = { forget: handleOf(page, ada.email), csrf_token: 'x.y' }
    expect((await browser.submit(page, forged)).status).toBe(403)
    expect(await happened()).toEqual([])
    expect(await loginsOf(foreigner)).toEqual(before)
  })
})
