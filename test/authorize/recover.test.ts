import { beforeEach, describe, expect, test } from 'bun:test'
import { HOUR } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import {
  addPasskeyUser,
  enrolPasskey,
  linkWith,
  openEnrolment,
  optionsOf,
  recoveryCodesOf,
  sendForm,
} from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, PASSWORD, signIn, signInLink } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
await addClient(app, 'web')
let made = 0
const letters = async () => {
  mail.clear()
  await deliverMails(app.context)
  return mail.mails.map(({ to, subject }) => [to, subject])
}

const openPage = async (browser: Browser, url = authorizeUrl('web')) =>
  browser.get(linkWith(await browser.get(url), '/oauth/recover'))

const tryCode = async (browser: Browser, username: string, recovery_code: string, url?: string) =>
  browser.submit(await openPage(browser, url), { username, recovery_code }, '/oauth/recover')

/** Creates a passkey on the page of a single-use link. */
const enrolLink = async (browser: Browser, page: Page) => {
  const passkey = newPasskey()
  const credential = passkey.create(optionsOf(page))
  return { passkey, page: await sendForm(browser, page, 'credential', { credential }) }
}

const fullWidth = (letter: string) => String.fromCodePoint(letter.charCodeAt(0) + 0xfee0)
const persian = (digit: string) => String.fromCodePoint(0x6f0 + Number(digit))

const unusedCodes = async (user_id: string) =>
  (await app.context.store.read(async q => q.select().from(q.tables.recovery_codes))).filter(
    code => code.user_id === user_id,
  ).length

beforeEach(async () => {
  app.clock.advance(HOUR)
  await letters()
  await app.events()
})

describe('PEO-16 a user without a password', () => {
  test('recovers with a code, once, and adds a passkey before the login begins', async () => {
    const { user, codes } = await addPasskeyUser(app, `person${++made}`)
    const [recovery_code = ''] = codes
    await letters()
    await app.events()
    const browser = openBrowser(app)
    const asked = await browser.follow(await tryCode(browser, user.username, recovery_code, '/account'))
    expect(asked.heading).toBe('Add a passkey')
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.amr])).toEqual([
      ['user.first_factor_proven', ['otp']],
    ])
    expect((await browser.get('/account')).heading).toBe('Sign in')
    const { passkey, page } = await enrolPasskey(browser, asked)
    expect(page.heading).toBe('Your account')
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.fields])).toEqual([
      ['user.updated', ['factors']],
      ['user.login', undefined],
    ])
    expect(await letters()).toEqual([
      [user.email, 'A recovery code was used at Gatehouse'],
      [user.email, 'A new way to sign in to Gatehouse'],
      [user.email, 'New sign-in to Gatehouse'],
    ])
    const own = (await app.context.store.read(async q => q.select().from(q.tables.factors))).filter(
      ({ user_id }) => user_id === user.id,
    )
    expect(own.map(({ alone }) => alone)).toEqual([true, true])
    expect(own.some(({ credential_id }) => credential_id === passkey.id)).toBe(true)
    // The recovery code is used up.
    const again = await tryCode(openBrowser(app), user.username, recovery_code)
    expect(again.status).toBe(401)
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.failure_reason])).toEqual([
      ['user.login_failed', 'wrong_recovery_code'],
    ])
  })

  test.each([
    ['full-width characters', (code: string) => code.replace(/[!-~]/g, letter => fullWidth(letter))],
    ['the long vowel mark of a Japanese keyboard', (code: string) => code.replaceAll('-', '\u30fc')],
    ['the dashes of a word processor', (code: string) => code.replace('-', '\u2011').replace('-', '\u2013')],
    ['an invisible character', (code: string) => `${code}\u200b`],
    ['the digits of a Persian keyboard', (code: string) => code.replace(/\d/g, digit => persian(digit))],
  ])('recovers with a code that contains %s', async (_, written) => {
    const { user, codes } = await addPasskeyUser(app, `person${++made}`)
    await app.events()
    const browser = openBrowser(app)
    const page = await browser.follow(await tryCode(browser, user.username, written(codes[0] ?? '')))
    expect(page.heading).toBe('Add a passkey')
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.amr])).toEqual([
      ['user.first_factor_proven', ['otp']],
    ])
    expect(await unusedCodes(user.id)).toBe(codes.length - 1)
  })

  test('gets the same answer as an unknown user and as a user with a password', async () => {
    const { user } = await addPasskeyUser(app, `person${++made}`)
    const armed = await addUser(app, `person${++made}`)
    const browser = openBrowser(app)
    const { page } = await enrolPasskey(browser, await openEnrolment(browser, armed.username))
    const [code = ''] = recoveryCodesOf(page)
    await app.events()
    const answers = []
    for (const [name, typed] of [
      [user.username, 'aaaa-bbbb-cccc'],
      ['nobody', 'aaaa-bbbb-cccc'],
      [armed.username, code],
      [user.username, 'short'],
    ] as const) {
      const { status, html } = await tryCode(openBrowser(app), name, typed)
      answers.push([status, /<div class="alert[\s\S]*?<\/div>/.exec(html)?.[0]])
    }
    expect(answers[0]?.[0]).toBe(401)
    expect(new Set(answers.map(answer => JSON.stringify(answer))).size).toBe(1)
    expect((await app.events()).map(({ metadata }) => metadata.failure_reason)).toEqual([
      'wrong_recovery_code',
      'unknown_user',
      'wrong_recovery_code',
      'wrong_recovery_code',
    ])
  })

  test('waits after wrong codes as after wrong passwords', async () => {
    const { user, codes } = await addPasskeyUser(app, `person${++made}`)
    const browser = openBrowser(app, { ip: '203.0.113.77' })
    for (let count = 0; count < 5; count++)
      expect((await tryCode(browser, user.username, 'aaaa-bbbb-cccc')).status).toBe(401)
    const answer = await tryCode(browser, user.username, codes[0] ?? '')
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '60'])
  })

  const reactions: Record<string, (browser: Browser, user: Json) => Promise<unknown>> = {
    'gets new codes': async browser =>
      browser.submit(await browser.get('/account/security'), {}, '/account/security/codes'),
    'is signed out by an administrator': (_, user) => app.admin('DELETE', `/users/${user.id}/sessions`),
  }
  for (const [what, react] of Object.entries(reactions))
    test(`stops a thief who has used a code and adds no passkey yet, when the owner ${what}`, async () => {
      const { user, browser, codes } = await addPasskeyUser(app, `person${++made}`)
      const thief = openBrowser(app)
      const asked = await thief.follow(await tryCode(thief, user.username, codes[0] ?? '', '/account'))
      expect(asked.heading).toBe('Add a passkey')
      await react(browser, user)
      await app.events()
      expect((await enrolPasskey(thief, asked)).page.status).toBe(400)
      expect((await thief.get('/account')).heading).toBe('Sign in')
      const own = await app.context.store.read(async q => q.select().from(q.tables.factors))
      expect(own.filter(({ user_id }) => user_id === user.id)).toHaveLength(1)
      expect(await app.events()).toEqual([])
    })

  test('is stopped by a password that an administrator sets while the code is checked', async () => {
    const { user, codes } = await addPasskeyUser(app, `person${++made}`)
    const browser = openBrowser(app)
    const page = await openPage(browser)
    const { store } = app.context
    const { write } = store
    store.write = async body => {
      store.write = write
      await app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD })
      return write(body)
    }
    const form = { username: user.username, recovery_code: codes[0] ?? '' }
    const late = await browser.submit(page, form, '/oauth/recover')
    expect([late.status, late.heading]).toEqual([400, 'This page has expired'])
    expect(await unusedCodes(user.id)).toBe(codes.length)
  })

  test('is let in by only one of two requests with one code at once', async () => {
    const { user, codes } = await addPasskeyUser(app, `person${++made}`)
    const [one, two] = [openBrowser(app), openBrowser(app)]
    const answers = await Promise.all(
      [one, two].map(browser => tryCode(browser, user.username, codes[0] ?? '')),
    )
    expect(answers.filter(({ location }) => location?.startsWith('/oauth/enrol'))).toHaveLength(1)
  })
})

const requests = () => app.context.store.read(async q => q.select().from(q.tables.authorization_requests))
/** Returns a function that reads the request in which the user recovers the account. */
const recoveryOf = async (user_id: string) => {
  const hash = (await requests()).find(({ recovered_by }) => recovered_by === user_id)?.request_hash
  return async () => (await requests()).find(({ request_hash }) => hash && Bun.deepEquals(request_hash, hash))
}

test('PAG-65 a recovery that is left for another account ends', async () => {
  const { user, codes } = await addPasskeyUser(app, `person${++made}`)
  const browser = openBrowser(app)
  const asked = await browser.follow(await tryCode(browser, user.username, codes[0] ?? ''))
  const pending = await recoveryOf(user.id)
  expect(await pending()).toMatchObject({ recovered_by: user.id, proof: { user_id: user.id } })
  const left = await browser.follow(await browser.submit(asked, {}, '/oauth/other-account'))
  expect(left.heading).toBe('Sign in')
  expect(await pending()).toMatchObject({ recovered_by: null, proof: null, login_id: null })
})

test('a recovery ends when an account of the browser is chosen', async () => {
  const { user, codes } = await addPasskeyUser(app, `person${++made}`)
  const browser = openBrowser(app)
  for (let i = 0; i < 2; i++) {
    const { username } = await addUser(app, `person${++made}`)
    await signIn(browser, await browser.get(authorizeUrl('web', { prompt: 'login' })), username)
  }
  const chooser = await browser.get(authorizeUrl('web', { prompt: 'select_account' }))
  const login = await browser.follow(await browser.submit(chooser, { login: 'other' }))
  const form = await browser.get(linkWith(login, '/oauth/recover'))
  const fields = { username: user.username, recovery_code: codes[0] ?? '' }
  await browser.submit(form, fields, '/oauth/recover')
  const pending = await recoveryOf(user.id)
  expect(await pending()).toMatchObject({ recovered_by: user.id, proof: { user_id: user.id } })
  await browser.submit(chooser, { login: 'other' })
  expect(await pending()).toMatchObject({ recovered_by: null, proof: null })
})

test('new recovery codes are announced by mail, because a thief may have made them', async () => {
  const { user, browser } = await addPasskeyUser(app, `person${++made}`)
  const page = await browser.get('/account/security')
  await letters()
  await app.events()
  expect((await browser.submit(page, {}, '/account/security/codes')).heading).toBe('Save your recovery codes')
  expect(await letters()).toEqual([[user.email, 'New recovery codes for Gatehouse']])
  expect(mail.mails[0]?.text).toContain(`New recovery codes were made for your account ${user.username}`)
  expect((await app.events()).map(({ type, metadata }) => [type, metadata.fields])).toEqual([
    ['user.updated', ['recovery_codes']],
  ])
})

test('new recovery codes are charged as mail: a user cannot fill the outbox with them', async () => {
  const { browser } = await addPasskeyUser(app, `person${++made}`)
  const page = await browser.get('/account/security')
  await letters()
  const statuses: number[] = []
  for (let i = 0; i < 81; i++)
    statuses.push((await browser.submit(page, {}, '/account/security/codes')).status)
  expect([statuses.slice(0, -1).every(status => status === 200), statuses.at(-1)]).toEqual([true, 429])
  expect(await letters()).toHaveLength(20)
})

describe('PEO-17 a mailed link', () => {
  test('gives a user without a password no login without the passkey or a recovery code', async () => {
    const { user, codes } = await addPasskeyUser(app, `person${++made}`, { email_verified: true })
    await letters()
    expect((await app.admin('POST', `/users/${user.id}/send-password-reset`)).status).toBe(204)
    await letters()
    const url = /http:\S+/.exec(mail.mails.at(-1)?.text ?? '')?.[0] ?? ''
    const browser = openBrowser(app)
    const page = await browser.get(url)
    expect(page.html).not.toContain('data-passkey="create"')
    const typed = { password: PASSWORD, password_repeat: PASSWORD }
    const step = await browser.follow(await browser.submit(page, typed))
    expect(step.heading).toBe('Two-step verification')
    expect((await browser.get('/account')).heading).toBe('Sign in')
    const stored = async () =>
      (await app.context.store.read(async q => q.select().from(q.tables.users))).find(
        ({ id }) => id === user.id,
      )?.password_hash
    expect(await stored()).toBeNull()
    const recover = await browser.get(linkWith(step, 'method=recovery'))
    const code = { recovery_code: codes[0] ?? '' }
    const done = await browser.follow(await browser.submit(recover, code, '/oauth/second-factor'))
    expect(done.heading).toBe('Security')
    expect(await stored()).toBeString()
  })
})

describe('PEO-19 an administrator’s link', () => {
  test('lets a user without a factor choose a passkey, once, and ends the sessions', async () => {
    const { user } = await addPasskeyUser(app, `person${++made}`)
    await app.admin('DELETE', `/users/${user.id}/factors?only_way_in=true`)
    const url = await signInLink(app, user)
    await app.events()
    const [browser, other] = [openBrowser(app), openBrowser(app)]
    const [page, copy] = [await browser.get(url), await other.get(url)]
    expect(page.heading).toBe('Choose how you sign in')
    const wrong = await browser.submit(page, { credential: '{}' })
    expect(wrong.status).toBe(400)
    const { passkey, page: saved } = await enrolLink(browser, page)
    expect(saved.heading).toBe('Save your recovery codes')
    expect((await browser.get('/account')).heading).toBe('Your account')
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.mfa_enabled', 'user.login'])
    expect(passkey.id).toBeString()
    expect((await enrolLink(other, copy)).page.status).toBe(410)
  })

  test('takes no passkey for a user who has a factor', async () => {
    const { user } = await addPasskeyUser(app, `person${++made}`)
    const browser = openBrowser(app)
    const page = await browser.get(await signInLink(app, user))
    expect(page.heading).toBe('Choose a new password')
    expect((await browser.submit(page, { credential: '{}' })).status).toBe(400)
    const typed = { password: PASSWORD, password_repeat: PASSWORD }
    expect((await browser.follow(await browser.submit(page, typed))).heading).toBe('Two-step verification')
  })
})

test('PEO-16 a user with a password is sent to the password', async () => {
  const user = await addUser(app, `person${++made}`)
  const browser = openBrowser(app)
  const page = await tryCode(browser, user.username, 'aaaa-bbbb-cccc')
  expect(page.html).toContain('If it has one, sign in with the password first.')
  const login = await browser.get(linkWith(page, '/oauth/login'))
  expect((await signIn(browser, login, user.username)).location).toStartWith('https://app.example/callback')
})
