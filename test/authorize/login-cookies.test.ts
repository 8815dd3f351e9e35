import { describe, expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser, type Page } from '#test/support/browser.ts'
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

const app = await startApp()
const ada = await addUser(app, 'ada')
await addClient(app, 'web')

const logins = () => app.context.store.read(async q => q.select().from(q.tables.logins))
const pendings = () => app.context.store.read(async q => q.select().from(q.tables.authorization_requests))
const start = async () => {
  const browser = openBrowser(app)
  return { browser, page: await browser.get(authorizeUrl('web')) }
}
const EXPIRED = 'This page has expired'
const credentials = { username: 'ada', password: PASSWORD }

describe('O-28 a form that was not issued to this browser', () => {
  const refused = async (page: Page, heading = 'We couldn’t accept that form') => {
    expect([page.status, page.heading]).toEqual([403, heading])
    expect(page.location).toBeUndefined()
  }

  test('without csrf_token, with a stale one, and with that of another session', async () => {
    const { browser, page } = await start()
    const { csrf_token: stale = '' } = formOf(await browser.get(authorizeUrl('web'))).fields
    const { csrf_token: foreign = '' } = formOf((await start()).page).fields
    await app.events()
    const before = [await logins(), await pendings()]
    for (const csrf_token of ['', 'junk', stale])
      await refused(await browser.submit(page, { ...credentials, csrf_token }))
    for (const csrf_token of ['a.b', foreign])
      await refused(await browser.submit(page, { ...credentials, csrf_token }), EXPIRED)
    expect([await logins(), await pendings()]).toEqual(before)
    expect(await app.events()).toEqual([])
  })

  test('with a token for another purpose (M-04)', async () => {
    const { browser, page } = await start()
    for (const action of ['/oauth/consent', '/oauth/select-account', '/oauth/change-password'])
      await refused(
        await browser.post(action, { ...formOf(page).fields, decision: 'approve', login: 'other' }),
        EXPIRED,
      )
  })

  test('from another origin', async () => {
    const { browser, page } = await start()
    for (const origin of ['null', 'https://evil.example', 'http://localhost:8081', 'https://localhost:8080'])
      await refused(
        await browser.post('/oauth/login', { ...formOf(page).fields, ...credentials }, { origin }),
      )
  })

  test('without its cookie', async () => {
    const { browser, page } = await start()
    browser.cookies.clear()
    await refused(await browser.submit(page, credentials))
  })

  test('from a tab whose cookie another tab replaced: the page has expired, and leads to a new start', async () => {
    await addOrganization(app, 'acme')
    const browser = openBrowser(app)
    const url = '/account?organization=acme'
    // Neither request has a cookie, as when two tabs send their requests at the same time.
    const first = await browser.follow(await browser.get(url))
    browser.cookies.clear()
    const second = await browser.follow(await browser.get(url))
    const page = await browser.submit(first, credentials)
    await refused(page, EXPIRED)
    expect(page.html).not.toMatch(/cookies/i)
    expect(page.html).toContain(`href="${url}"`)
    expect((await browser.submit(second, { username: 'ada', password: 'wrong' })).status).toBe(401)
  })
})

describe('O-29 a pending request is bound to the browser that began it', () => {
  test('its address and form do not work in another browser', async () => {
    const { page } = await start()
    const { request = '', csrf_token = '' } = formOf(page).fields
    const { browser: victim } = await start()
    const before = await logins()
    for (const path of ['login', 'consent', 'select-account', 'change-password']) {
      const shown = await victim.get(`/oauth/${path}?request=${request}`)
      expect([shown.status, shown.heading]).toEqual([400, 'This page has expired'])
      expect(shown.html).not.toContain('The web')
    }
    expect((await victim.post('/oauth/login', { request, csrf_token, ...credentials })).status).toBe(403)
    expect(await logins()).toEqual(before)
  })

  test('reloading it in its own browser continues it', async () => {
    const { browser, page } = await start()
    const shown = await browser.get(`/oauth/login?request=${formOf(page).fields.request}`)
    expect(answerOf(await signIn(browser, shown, 'ada')).state).toBe('xyz')
  })

  test('it ends after half an hour', async () => {
    const { browser, page } = await start()
    app.clock.advance(30 * MINUTE)
    const late = await browser.submit(page, credentials)
    expect([late.status, late.heading]).toEqual([400, 'This page has expired'])
  })

  test('an address without a request is not a page', async () => {
    for (const path of ['login', 'consent', 'select-account', 'change-password'])
      expect((await openBrowser(app).get(`/oauth/${path}`)).status).toBe(400)
  })
})

describe('O-30 the login cookie', () => {
  const name = 'gatehouse_login_8080'

  test('set before the login is ignored', async () => {
    const planted = 'A'.repeat(43)
    const { browser, page } = await start()
    browser.cookies.set(name, planted)
    await browser.submit(page, credentials)
    expect(browser.cookies.get(name)).not.toBe(planted)
    const attacker = openBrowser(app)
    attacker.cookies.set(name, planted)
    expect((await attacker.get(authorizeUrl('web'))).heading).toBe('Sign in')
  })

  test('AUT-16 is replaced at every login, and keeps the other logins', async () => {
    const browser = openBrowser(app)
    await logInTo(browser, 'web', 'ada')
    const old = browser.cookies.get(name) ?? ''
    await addUser(app, 'bea')
    await logInTo(browser, 'web', 'bea', { prompt: 'login' })
    const value = browser.cookies.get(name) ?? ''
    expect(value).not.toBe(old)
    const stale = openBrowser(app)
    stale.cookies.set(name, old)
    expect((await stale.get(authorizeUrl('web'))).heading).toBe('Sign in')
    const mine = (await logins()).filter(({ browser_hash }) => browser_hash === hashSecret(value))
    expect(mine).toHaveLength(2)
  })

  test('AUT-29 a second login of the same user renews the first and updates last_login', async () => {
    const browser = openBrowser(app)
    const first = await codeRow(app, (await logInTo(browser, 'web', 'ada')).code)
    app.clock.advance(MINUTE)
    const second = await codeRow(app, (await logInTo(browser, 'web', 'ada', { prompt: 'login' })).code)
    const now = app.clock.now()
    expect(second).toMatchObject({ login_id: first.login_id, auth_time: now })
    expect((await logins()).filter(({ id }) => id === first.login_id)).toMatchObject([
      { auth_time: now, created_at: now - MINUTE },
    ])
    expect((await app.admin('GET', `/users/${ada.id}`)).body.last_login).toBe(new Date(now).toISOString())
  })
})

describe('O-31 Set-Cookie', () => {
  test('on https', async () => {
    const secure = await startApp({ url: 'https://id.example.com' })
    await addUser(secure, 'ada')
    await addClient(secure, 'web')
    const browser = openBrowser(secure)
    const page = await browser.get(authorizeUrl('web'))
    const attributes = 'Path=/; HttpOnly; SameSite=Lax; Secure'
    expect(browser.received).toEqual([
      expect.stringMatching(new RegExp(`^__Host-gatehouse_browser=[\\w-]{43}; ${attributes}$`)),
    ])
    await browser.submit(page, credentials)
    expect(browser.received).toEqual([
      expect.stringMatching(new RegExp(`^__Host-gatehouse_login=[\\w-]{43}; ${attributes}; Max-Age=86400$`)),
      expect.stringMatching(
        new RegExp(`^__Host-gatehouse_device=[\\w-]{43}; ${attributes}; Max-Age=34560000$`),
      ),
    ])
  })

  test('single sign-on sets none', async () => {
    const browser = openBrowser(app)
    await logInTo(browser, 'web', 'ada')
    expect(answerOf(await browser.get(authorizeUrl('web'))).code).toBeString()
    expect(browser.received).toEqual([])
  })

  test('O-62 cookies and handles are stored as digests', async () => {
    const { browser, page } = await start()
    await browser.submit(page, credentials)
    await browser.get(authorizeUrl('web', { prompt: 'login' }))
    const rows = JSON.stringify([await logins(), await pendings()])
    for (const value of [...browser.cookies.values(), formOf(page).fields.request])
      expect(rows).not.toContain(value ?? 'missing')
  })
})
