import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { answerOf, type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import {
  codeOf,
  enrolPasskey,
  enrolTotp,
  linkWith,
  openEnrolment,
  optionsOf,
  recoveryCodesOf,
} from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, codeRow, PASSWORD, signIn } from '#test/support/people.ts'
import { restarting } from '#test/support/restarting.ts'
import { redeem } from '#test/support/tokens.ts'

// Timeout in ms: each request opens the database, and the machine may be busy.
setDefaultTimeout(30_000)

// The server restarts for each request, so no request uses the memory of an earlier request.
const mail = captureMail()
const app = await startApp({}, { mail })
const remade = restarting(app)
const web = await addClient(app, 'web')
await addClient(app, 'shop', { consent_required: true })
const NEW = 'Another-horse-8'
const choose = { password: NEW, password_repeat: NEW }

let users = 0
const newUser = () => addUser(app, `user${++users}`)
const fresh = (): Browser => openBrowser(remade, { ip: `198.51.100.${++users & 255}` })
const nextCode = () => app.clock.advance(30 * SECOND)
const types = async () => (await app.events()).map(({ type }) => type)

const post = async (): Promise<string> => {
  mail.clear()
  await deliverMails(app.context)
  const link = /http:\/\/localhost:8080(\/account\/[\w-]+\?token=[\w-]{43})/.exec(
    mail.mails.map(({ text }) => text).join('\n'),
  )
  return link?.[1] ?? ''
}

const withTotp = async () => {
  const user = await newUser()
  const browser = fresh()
  const { key, page } = await enrolTotp(app, browser, await openEnrolment(browser, user.username))
  nextCode()
  await app.events()
  return { user, browser, key, codes: recoveryCodesOf(page) }
}

/** Signs in with the password, and returns the page of the second step. */
const secondStep = async (browser: Browser, user: Json, more: Record<string, string> = {}) => {
  const page = await signIn(browser, await browser.get(authorizeUrl('web', more)), user.username)
  expect(page.heading).toBe('Two-step verification')
  return page
}
const send = async (browser: Browser, page: Page, fields: Record<string, string>) =>
  browser.follow(await browser.submit(page, fields, '/oauth/second-factor'))
const classOf = async (page: Page) => (await codeRow(app, answerOf(page).code)).acr
const refused = async (page: Promise<Page>, status = 400) => expect((await page).status).toBe(status)

describe('R-24 a restart between any two steps', () => {
  test('R-24 of a login with a password, its consent and the exchange of its code', async () => {
    const user = await newUser()
    const browser = fresh()
    const login = await browser.get(authorizeUrl('shop'))
    const consent = await signIn(browser, login, user.username)
    expect(consent.heading).toStartWith('Allow')
    const answer = await browser.submit(consent, { decision: 'approve' })
    expect(answerOf(answer).code).toBeString()
    await refused(browser.submit(consent, { decision: 'approve' }))
    await refused(browser.submit(login, { username: user.username, password: PASSWORD }, '/oauth/login'))
    const plain = answerOf(await browser.get(authorizeUrl('web'))).code ?? ''
    const tokens = await redeem(remade, web, plain)
    expect(tokens.status).toBe(200)
    expect((await redeem(remade, web, plain)).status).toBe(400)
  })

  test('R-24 of the enrolment and use of an authenticator app', async () => {
    const user = await newUser()
    const browser = fresh()
    const choice = await openEnrolment(browser, user.username)
    const offer = await browser.get(linkWith(choice, 'kind=totp'))
    await app.events()
    const { key } = await enrolTotp(app, browser, offer)
    expect(await types()).toEqual(['user.mfa_enabled'])
    nextCode()
    await browser.submit(offer, { code: codeOf(app, key) }, '/oauth/enrol')
    expect(await types()).toEqual([])
    const code = codeOf(app, key)
    const [one, two] = [fresh(), fresh()]
    const [page, late] = [await secondStep(one, user), await secondStep(two, user)]
    expect(await classOf(await send(one, page, { code }))).toBe('2')
    await refused(one.submit(page, { code }, '/oauth/second-factor'))
    await refused(two.submit(late, { code }, '/oauth/second-factor'), 401)
  })

  test('R-24 of a passkey: enrolled, as second factor, and on its own', async () => {
    const user = await newUser()
    const browser = fresh()
    const { passkey } = await enrolPasskey(browser, await openEnrolment(browser, user.username))
    const one = fresh()
    const page = await secondStep(one, user)
    const credential = passkey.get(optionsOf(page))
    expect(await classOf(await send(one, page, { credential }))).toBe('phr')
    await refused(one.submit(page, { credential }, '/oauth/second-factor'))
    const two = fresh()
    const login = await two.get(authorizeUrl('web'))
    const alone = passkey.get(optionsOf(login))
    expect(await classOf(await two.submit(login, { credential: alone }, '/oauth/passkey'))).toBe('phr')
    await refused(two.submit(login, { credential: alone }, '/oauth/passkey'))
  })

  test('R-24 of a login with a recovery code', async () => {
    const { user, codes } = await withTotp()
    const [recovery_code = ''] = codes
    const [one, two] = [fresh(), fresh()]
    const ways = await secondStep(one, user)
    const page = await one.get(linkWith(ways, 'method=recovery'))
    const other = await two.get(linkWith(await secondStep(two, user), 'method=recovery'))
    expect(await classOf(await send(one, page, { recovery_code }))).toBe('2')
    await refused(one.submit(page, { recovery_code }, '/oauth/second-factor'))
    await refused(two.submit(other, { recovery_code }, '/oauth/second-factor'), 401)
  })

  test('R-24 of a step-up: the login is strengthened once, by a new factor or an existing one', async () => {
    const { user, browser, key } = await withTotp()
    await app.events()
    const asked = await browser.get(authorizeUrl('web', { acr_values: 'phr' }))
    const { passkey, page } = await enrolPasskey(browser, asked, newPasskey())
    expect(await classOf(page)).toBe('phr')
    expect(await types()).toEqual(['user.updated'])
    const later = fresh()
    const code = await secondStep(later, user)
    const byCode = await later.get(linkWith(code, 'method=totp'))
    expect(await classOf(await send(later, byCode, { code: codeOf(app, key) }))).toBe('2')
    const step = await later.get(authorizeUrl('web', { acr_values: 'phr' }))
    const credential = passkey.get(optionsOf(step))
    expect(await classOf(await send(later, step, { credential }))).toBe('phr')
    await refused(later.submit(step, { credential }, '/oauth/second-factor'))
  })

  test('R-24 of a forgotten password with a second factor: replaced once, when the login begins', async () => {
    const { user, key } = await withTotp()
    const browser = fresh()
    const login = await browser.get(authorizeUrl('web'))
    const form = await browser.get(linkWith(login, '/oauth/reset-password'))
    await browser.submit(form, { username: user.username })
    const page = await browser.get(await post())
    await app.events()
    const step = await browser.follow(await browser.submit(page, choose))
    expect([step.heading, await types()]).toEqual(['Two-step verification', ['user.first_factor_proven']])
    expect((await send(browser, step, { code: codeOf(app, key) })).heading).toBe('Your account')
    expect((await types()).filter(type => type === 'user.password_changed')).toHaveLength(1)
    nextCode()
    await refused(browser.submit(step, { code: codeOf(app, key) }, '/oauth/second-factor'))
    await refused(browser.submit(page, choose), 410)
    expect(await types()).toEqual([])
  })

  test('R-24 of the verification of an address', async () => {
    const user = await newUser()
    const browser = fresh()
    const profile = await signIn(browser, await browser.get('/account/profile'), user.username)
    await browser.submit(profile, {}, '/account/profile/verify')
    const opened = await browser.get(await post())
    await app.events()
    expect((await browser.submit(opened, {})).status).toBeLessThan(400)
    expect(await types()).toEqual(['user.updated'])
    await refused(browser.submit(opened, {}), 410)
    expect((await app.admin('GET', `/users/${user.id}`)).body.email_verified).toBe(true)
  })

  test('R-24 of each change on the account pages that needs fresh authentication', async () => {
    const { user, browser, key } = await withTotp()
    app.clock.advance(6 * MINUTE)
    const security = await browser.get('/account/security')
    const before = await app.context.store.read(async q => q.select().from(q.tables.recovery_codes))
    const asked = await browser.follow(await browser.submit(security, {}, '/account/security/codes'))
    expect(asked.heading).toBe('Confirm it’s you')
    const step = await signIn(browser, asked, user.username)
    await app.events()
    const codes = await send(browser, step, { code: codeOf(app, key) })
    expect(recoveryCodesOf(codes)).toHaveLength(10)
    expect(await types()).toEqual(['user.login', 'user.updated'])
    const after = await app.context.store.read(async q => q.select().from(q.tables.recovery_codes))
    expect(after).toHaveLength(before.length)

    const form = await browser.get('/account/change-password')
    const change = { current_password: PASSWORD, ...choose }
    expect((await browser.follow(await browser.submit(form, change))).status).toBe(200)
    expect((await types()).filter(type => type === 'user.password_changed')).toHaveLength(1)
    expect((await browser.submit(form, change)).status).toBeGreaterThanOrEqual(400)
    expect((await types()).filter(type => type === 'user.password_changed')).toEqual([])
  })
})
