import { describe, expect, test } from 'bun:test'
import { newPasskey } from '#test/support/authenticator.ts'
import { answerOf, type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { codeOf, enrolTotp, optionsOf } from '#test/support/factors.ts'
import { addUser, authorizeUrl, codeRow, logInTo, PASSWORD, signIn } from '#test/support/people.ts'
import { startWithFactors } from './factor-world.ts'

const { app, rows, loginsOf, withTotp, secondStep, send } = await startWithFactors()
const ada = await addUser(app, 'ada')
const carl = await addUser(app, 'carl')
const bob = await addUser(app, 'bob')
const LEAVE = '/oauth/other-account'
const leave = async (browser: Browser, page: Page) => {
  await app.events()
  const left = await browser.follow(await browser.submit(page, {}, LEAVE))
  expect(await app.events()).toEqual([])
  return left
}
const pendingOf = async () => (await rows('authorization_requests')).at(-1)

test('PAG-65 a second factor is left for another account, and what was proven is dropped', async () => {
  const { user, key } = await withTotp()
  const { browser, page } = await secondStep(user, { login_hint: user.username, state: 'kept' })
  expect(await pendingOf()).toMatchObject({ proof: { user_id: user.id }, round: 0 })
  const login = await leave(browser, page)
  expect([login.heading, formOf(login).fields.username]).toEqual(['Sign in', ''])
  expect(await pendingOf()).toMatchObject({ proof: null, login_id: null, selected: true, round: 1 })
  expect((await send(browser, page, { code: codeOf(app, key) })).status).toBe(400)
  expect((await browser.get(page.url)).heading).toBe('Sign in')
  const answer = answerOf(await signIn(browser, login, 'ada'))
  expect([(await codeRow(app, answer.code)).user_id, answer.state]).toEqual([ada.id, 'kept'])
})

test('PAG-65 leaving a step shows the chooser if the browser has another login, and ends neither login', async () => {
  const browser = openBrowser(app)
  await logInTo(browser, 'web', 'carl')
  const consent = await signIn(browser, await browser.get(authorizeUrl('shop', { prompt: 'login' })), 'bob')
  expect(consent.heading).toBe('Allow The shop to use your account?')
  const chooser = await leave(browser, consent)
  expect(chooser.heading).toBe('Choose an account')
  expect(chooser.html).toContain(carl.email)
  expect(chooser.html).toContain(bob.email)
  expect((await browser.get(chooser.url)).heading).toBe('Choose an account')
  const other = await browser.follow(await browser.submit(chooser, { login: 'other' }))
  expect(other.heading).toBe('Sign in')
  expect(await loginsOf(carl)).toHaveLength(1)
  expect(await loginsOf(bob)).toHaveLength(1)
})

test('PAG-65 every step of a login can be left', async () => {
  const temporary = await addUser(app, 'temporary')
  const password = 'Temporary-9-word'
  await app.admin('POST', `/users/${temporary.id}/reset-password`, { password, temporary: true })
  const browser = openBrowser(app)
  const change = await signIn(browser, await browser.get(authorizeUrl('web')), 'temporary', password)
  expect(change.heading).toBe('Choose a new password')
  expect((await leave(browser, change)).heading).toBe('Sign in')
  await addUser(app, 'enroller')
  await app.admin('PUT', '/organizations/default', { settings: { mfa_required: true } })
  const enrol = await signIn(browser, await browser.get(authorizeUrl('web', { prompt: 'login' })), 'enroller')
  expect(enrol.heading).toBe('Protect your account')
  for (const kind of ['', '&kind=totp', '&kind=passkey'])
    expect(formOf(await browser.get(enrol.url + kind), LEAVE).buttons).toEqual([])
  expect((await leave(browser, enrol)).heading).not.toBe(enrol.heading)
  await app.admin('PUT', '/organizations/default', { settings: { mfa_required: false } })
})

test('PAG-65 a factor that was added is not a factor of the next account', async () => {
  await addUser(app, 'adder')
  await app.admin('PUT', '/organizations/default', { settings: { mfa_required: true } })
  const browser = openBrowser(app)
  const enrol = await signIn(browser, await browser.get(authorizeUrl('shop')), 'adder')
  const { page } = await enrolTotp(app, browser, enrol)
  expect(page.heading).toBe('Save your recovery codes')
  const consent = await browser.follow(await browser.submit(page, {}))
  expect(await pendingOf()).toMatchObject({ enrolled: true })
  await leave(browser, consent)
  expect(await pendingOf()).toMatchObject({ enrolled: false })
  await app.admin('PUT', '/organizations/default', { settings: { mfa_required: false } })
})

test('PAG-65 the form is refused without its token, from another origin, and from another browser', async () => {
  const { user } = await withTotp()
  const { browser, page } = await secondStep(user)
  const { fields } = formOf(page, LEAVE)
  const { csrf_token = '' } = formOf(page).fields
  const before = await pendingOf()
  const refused = [
    await browser.post(LEAVE, { ...fields, csrf_token }),
    await browser.post(LEAVE, fields, { origin: 'https://evil.example' }),
    await openBrowser(app).post(LEAVE, fields),
  ]
  expect(refused.map(({ status }) => status)).toEqual([403, 403, 403])
  expect(await pendingOf()).toEqual(before)
})

test('PAG-65 a request that names its user, and a confirmation, take no other account', async () => {
  const { user, browser, key } = await withTotp()
  const add = await browser.get('/account/security/add?kind=totp')
  expect(add.html).not.toContain(LEAVE)
  app.clock.advance(6 * 60_000)
  const confirm = await browser.get('/account/change-password')
  const second = await signIn(browser, confirm, user.username)
  expect(second.heading).toBe('Two-step verification')
  expect(second.html).toContain('<a class="button quiet" href="/account">Cancel</a>')
  expect(second.html).not.toContain(LEAVE)
  expect((await browser.get('/account')).heading).toBe('Your account')
  const done = await browser.follow(await send(browser, second, { code: codeOf(app, key) }))
  expect(done.url).toBe('/account/change-password')
})

describe('PAG-71 a form acts only on the user whom its page names', () => {
  const users = () => app.context.store.read(async q => q.select().from(q.tables.users))
  const requireFactor = (mfa_required: boolean) =>
    app.admin('PUT', '/organizations/default', { settings: { mfa_required } })
  /** Opens a step of `first`, signs `second` in from the same login page, and sends the first form. */
  const overtaken = async (
    [first, second]: [string, string],
    action: string,
    fieldsOf: (page: Page) => Record<string, string>,
    query = '',
  ) => {
    const browser = openBrowser(app)
    const login = await browser.get(authorizeUrl('web'))
    const page = await browser.get((await signIn(browser, login, first)).url + query)
    expect(page.html).toContain(first)
    const due = await signIn(browser, login, second)
    expect(due.html).toContain(second)
    const stored = async () => [await users(), await rows('factors'), await pendingOf()]
    const before = await stored()
    await app.events()
    const answer = await browser.submit(page, fieldsOf(page), action)
    expect([answer.status, answer.heading]).toEqual([400, 'This page has expired'])
    expect([await stored(), await app.events()]).toEqual([before, []])
    return { browser, due }
  }

  test('a new password', async () => {
    for (const name of ['xavier', 'yolanda']) {
      const { id } = await addUser(app, name)
      await app.admin('POST', `/users/${id}/reset-password`, { password: PASSWORD, temporary: true })
    }
    await requireFactor(true)
    const password = 'Another-horse-8'
    const fields = { password, password_repeat: password }
    const action = '/oauth/change-password'
    const { browser, due } = await overtaken(['xavier', 'yolanda'], action, () => fields)
    expect((await browser.follow(await browser.submit(due, fields))).heading).toBe('Protect your account')
    await requireFactor(false)
  })

  test('a new passkey', async () => {
    await addUser(app, 'xenia')
    await addUser(app, 'yvonne')
    await requireFactor(true)
    const created = (page: Page) => ({ credential: newPasskey().create(optionsOf(page)) })
    await overtaken(['xenia', 'yvonne'], '/oauth/enrol', created, '&kind=passkey')
    await requireFactor(false)
  })

  test('a second factor', async () => {
    const { user, key } = await withTotp()
    const { user: other } = await withTotp()
    await overtaken([user.username, other.username], '/oauth/second-factor', () => ({
      code: codeOf(app, key),
    }))
  })
})
