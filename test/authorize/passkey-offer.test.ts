import { describe, expect, test } from 'bun:test'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { answerOf, type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import {
  addPasskeyUser,
  codeOf,
  enrolTotp,
  openEnrolment,
  optionsOf,
  recoveryCodesOf,
} from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, codeRow, signIn } from '#test/support/people.ts'

const app = await startApp()
await addClient(app, 'web')
const OFFER = 'Sign in faster next time'
let made = 0
const newUser = (more = {}) => addUser(app, `person${++made}`, more)

/** A browser whose page script has found an authenticator. */
const withPasskeys = (): Browser => {
  const browser = openBrowser(app)
  browser.cookies.set('passkeys', '1')
  return browser
}

const logIn = async (browser: Browser, username: string, more: Record<string, string> = {}) =>
  signIn(browser, await browser.get(authorizeUrl('web', more)), username)

describe('PEO-15 the offer of a passkey', () => {
  test('comes after a password, and adds a passkey that signs in alone', async () => {
    const user = await newUser()
    const browser = withPasskeys()
    await app.events()
    const page = await logIn(browser, user.username)
    expect([page.url.split('?')[0], page.heading]).toEqual(['/oauth/offer-passkey', OFFER])
    const options = optionsOf(page)
    expect(options.authenticatorSelection).toEqual({ residentKey: 'required', userVerification: 'required' })
    const passkey = newPasskey()
    const weak = passkey.create(options, { verified: false })
    const refused = await browser.submit(page, { credential: weak }, '/oauth/enrol')
    expect([refused.status, refused.heading]).toEqual([400, OFFER])
    const typed = await browser.submit(refused, { code: '123456' }, '/oauth/enrol')
    expect([typed.status, typed.heading]).toEqual([400, 'This request can’t be read'])
    const saved = await browser.submit(page, { credential: passkey.create(options) }, '/oauth/enrol')
    expect(recoveryCodesOf(saved)).toHaveLength(10)
    const done = await browser.follow(await browser.submit(saved, {}, '/oauth/enrol'))
    expect((await codeRow(app, answerOf(done).code)).acr).toBe('phr')
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.mfa_enabled'])
    const [factor] = await app.context.store.read(async q => q.select().from(q.tables.factors))
    expect(factor).toMatchObject({ user_id: user.id, alone: true })
    const later = withPasskeys()
    expect((await logIn(later, user.username)).heading).toBe('Two-step verification')
  })

  test('is not repeated for 30 days after "not now", in any browser', async () => {
    const user = await newUser()
    const browser = withPasskeys()
    const page = await logIn(browser, user.username)
    await app.events()
    const done = await browser.follow(await browser.submit(page, {}, '/oauth/offer-passkey'))
    expect(answerOf(done).code).toBeString()
    expect(await app.events()).toEqual([])
    app.clock.advance(30 * DAY - 1_000)
    expect(answerOf(await logIn(withPasskeys(), user.username)).code).toBeString()
    app.clock.advance(2_000)
    expect((await logIn(withPasskeys(), user.username)).heading).toBe(OFFER)
  })

  test('never comes without an authenticator, with an existing login, or with prompt=none', async () => {
    const user = await newUser()
    const plain = openBrowser(app)
    expect(answerOf(await logIn(plain, user.username)).code).toBeString()
    plain.cookies.set('passkeys', '1')
    expect(answerOf(await plain.get(authorizeUrl('web'))).code).toBeString()
    expect(answerOf(await plain.get(authorizeUrl('web', { prompt: 'none' }))).code).toBeString()
  })

  test('never comes to users who may add none, or who sign in without a password', async () => {
    const bound = await newUser({ roles: [] })
    expect(answerOf(await logIn(withPasskeys(), bound.username)).code).toBeString()
    const { passkey } = await addPasskeyUser(app, `person${++made}`)
    const browser = withPasskeys()
    const login = await browser.get(authorizeUrl('web'))
    const credential = passkey.get(optionsOf(login))
    expect(answerOf(await browser.submit(login, { credential }, '/oauth/passkey')).code).toBeString()
  })

  test('never comes to a user who needs no second factor in a remembered browser', async () => {
    const settings = { remember_browser_days: 30 }
    expect((await app.admin('PUT', '/organizations/default', { settings })).status).toBe(200)
    const { username } = await newUser()
    const own = openBrowser(app)
    const { key } = await enrolTotp(app, own, await openEnrolment(own, username))
    const browser = withPasskeys()
    const step = await logIn(browser, username)
    app.clock.advance(30 * SECOND)
    const typed = { code: codeOf(app, key), remember: '1' }
    // The offer of a passkey follows the second factor. The test does not answer the offer.
    const offer = await browser.follow(await browser.submit(step, typed, '/oauth/second-factor'))
    expect(offer.heading).toBe(OFFER)
    browser.cookies.delete('gatehouse_login_8080')
    const done = await logIn(browser, username)
    expect((await codeRow(app, answerOf(done).code)).acr).toBe('1')
  })

  test('is answered once, also when the second copy of the form has begun before the first one was handled', async () => {
    const { store } = app.context
    const { read } = store
    const browser = withPasskeys()
    const page = await logIn(browser, (await newUser()).username)
    const credential = newPasskey().create(optionsOf(page))
    const send = () => browser.submit(page, { credential }, '/oauth/enrol')
    await app.events()
    let first: Page | undefined
    store.read = async body => {
      const found = await read(body)
      if (Object(found).request_hash) {
        store.read = read
        first = await send()
      }
      return found
    }
    const second = await send()
    expect([first?.status, second.status, second.heading]).toEqual([200, 303, ''])
    expect(answerOf(await browser.follow(second)).code).toBeString()
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.mfa_enabled'])
  })

  test('is answered once, for the login that it shows', async () => {
    const [ada, bob] = [await newUser(), await newUser()]
    const browser = withPasskeys()
    const page = await logIn(browser, ada.username)
    const passkey = newPasskey()
    const credential = passkey.create(optionsOf(page))
    const both = await Promise.all([1, 2].map(() => browser.submit(page, { credential }, '/oauth/enrol')))
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 303])
    const other = withPasskeys()
    const foreign = await logIn(other, bob.username)
    const answer = await other.submit(
      foreign,
      { credential: passkey.create(optionsOf(page)) },
      '/oauth/enrol',
    )
    expect(answer.status).toBe(400)
    const owners = await app.context.store.read(async q => q.select().from(q.tables.factors))
    expect(owners.filter(({ user_id }) => user_id === ada.id)).toHaveLength(1)
    expect(owners.filter(({ user_id }) => user_id === bob.id)).toEqual([])
  })
})
