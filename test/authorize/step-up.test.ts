import { describe, expect, test } from 'bun:test'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import {
  codeOf,
  enrolPasskey,
  enrolTotp,
  linkWith,
  openEnrolment,
  optionsOf,
  signInWith,
} from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, codeRow, logInTo, signIn, VERIFIER } from '#test/support/people.ts'
import { claimsOf } from '#test/support/tokens.ts'

const app = await startApp()
const client = await addClient(app, 'web')
let users = 0

const newUser = () => addUser(app, `user${++users}`)
const withTotp = async () => {
  const user = await newUser()
  const browser = openBrowser(app)
  const { key } = await enrolTotp(app, browser, await openEnrolment(browser, user.username))
  app.clock.advance(30 * SECOND)
  return { user, browser, key }
}
const classOf = async (page: Page) => {
  const row = await codeRow(app, answerOf(page).code)
  return [row.acr, row.amr]
}
const send = (browser: Browser, page: Page, fields: Record<string, string>) =>
  browser.submit(page, fields, '/oauth/second-factor')
const none = async (browser: Browser, acr_values: string) => {
  const page = await browser.get(authorizeUrl('web', { prompt: 'none', acr_values }))
  expect(browser.received).toEqual([])
  return answerOf(page).error
}

test('discovery lists the supported classes', async () => {
  const document = (await (await app.call('/.well-known/openid-configuration')).json()) as {
    acr_values_supported: string[]
  }
  expect(document.acr_values_supported).toEqual(['1', '2', 'phr'])
})

test('a login by password only has class 1, also in the ID token', async () => {
  const user = await newUser()
  const { code = '' } = await logInTo(openBrowser(app), 'web', user.username)
  const answer = await app.call('/oauth/token', {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`web:${client.client_secret}`)}` },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: 'https://app.example/callback',
      code_verifier: VERIFIER,
    }),
  })
  const { id_token } = (await answer.json()) as { id_token: string }
  const claims = claimsOf(id_token)
  expect([claims.acr, claims.amr]).toEqual(['1', ['pwd']])
})

describe('acr_values=2', () => {
  test('a login by password only: the user enrols a factor, which satisfies the request', async () => {
    const user = await newUser()
    const browser = openBrowser(app)
    await logInTo(browser, 'web', user.username)
    expect(await none(browser, '2')).toBe('interaction_required')
    const choice = await browser.get(authorizeUrl('web', { acr_values: '2' }))
    expect(choice.heading).toBe('Protect your account')
    expect(choice.html).toContain('The application asks for a stronger sign-in')
    const { page } = await enrolTotp(app, browser, choice)
    expect(await classOf(await browser.submit(page, {}, '/oauth/enrol'))).toEqual([
      '2',
      ['pwd', 'otp', 'mfa'],
    ])
    expect(await none(browser, '2')).toBeUndefined()
  })

  test('is satisfied by a passkey, and returned as requested', async () => {
    const user = await newUser()
    const browser = openBrowser(app)
    const { passkey } = await enrolPasskey(browser, await openEnrolment(browser, user.username))
    const fresh = openBrowser(app)
    const page = await fresh.get(authorizeUrl('web', { acr_values: '2' }))
    expect(await classOf(await signInWith(fresh, page, passkey))).toEqual(['2', ['hwk', 'mfa']])
    expect(await classOf(await fresh.get(authorizeUrl('web', { acr_values: 'phr 2' })))).toEqual([
      'phr',
      ['hwk', 'mfa'],
    ])
  })
})

describe('acr_values=phr', () => {
  test('a user with only an app: proves the app, then enrols a passkey', async () => {
    const { user, key } = await withTotp()
    const browser = openBrowser(app)
    const step = await signIn(
      browser,
      await browser.get(authorizeUrl('web', { acr_values: 'phr' })),
      user.username,
    )
    expect(step.heading).toBe('Two-step verification')
    const choice = await browser.follow(await send(browser, step, { code: codeOf(app, key) }))
    expect(choice.heading).toBe('Add a passkey')
    expect(await none(browser, 'phr')).toBe('login_required')
    const { page } = await enrolPasskey(browser, choice)
    expect(await classOf(page)).toEqual(['phr', ['pwd', 'otp', 'mfa', 'hwk']])
  })

  test('a user with a passkey is offered no codes, and none is accepted', async () => {
    const { user, browser, key } = await withTotp()
    const { passkey } = await enrolPasskey(
      browser,
      await browser.follow(await browser.get('/account/security/add')),
    )
    const other = openBrowser(app)
    const weak = await signIn(other, await other.get(authorizeUrl('web')), user.username)
    const form = await other.get(linkWith(weak, 'method=totp'))
    expect(await classOf(await send(other, form, { code: codeOf(app, key) }))).toEqual([
      '2',
      ['pwd', 'otp', 'mfa'],
    ])
    expect(await none(other, 'phr')).toBe('interaction_required')
    app.clock.advance(MINUTE)
    const step = await other.get(authorizeUrl('web', { acr_values: 'phr' }))
    expect(step.html).not.toMatch(/method=(totp|recovery)/)
    expect((await send(other, step, { code: codeOf(app, key) })).status).toBe(400)
    const credential = passkey.get(optionsOf(step))
    expect(await classOf(await send(other, step, { credential }))).toEqual([
      'phr',
      ['pwd', 'otp', 'mfa', 'hwk'],
    ])
  })
})

test('max_age passes while the page of the second factor is open: the user signs in again', async () => {
  const user = await newUser()
  const browser = openBrowser(app)
  await logInTo(browser, 'web', user.username)
  const elsewhere = openBrowser(app)
  const { key } = await enrolTotp(app, elsewhere, await openEnrolment(elsewhere, user.username))
  const step = await browser.get(authorizeUrl('web', { max_age: '60' }))
  expect(step.heading).toBe('Two-step verification')
  app.clock.advance(61 * SECOND)
  await app.events()
  const login = await browser.follow(await send(browser, step, { code: codeOf(app, key) }))
  expect([login.status, login.heading]).toEqual([200, 'Sign in'])
  expect(await app.events()).toEqual([])
  const again = await signIn(browser, login, user.username)
  // The code can be used now, because the refused request did not verify it.
  expect(await classOf(await send(browser, again, { code: codeOf(app, key) }))).toEqual([
    '2',
    ['pwd', 'otp', 'mfa'],
  ])
})

test('O-52 an unknown class is ignored', async () => {
  const user = await newUser()
  const browser = openBrowser(app)
  const page = await browser.get(authorizeUrl('web', { acr_values: 'urn:mace:incommon:iap:silver 0 mfa' }))
  expect(await classOf(await signIn(browser, page, user.username))).toEqual(['1', ['pwd']])
})

describe('O-46 prompt=none while a factor is due shows nothing and sets no cookie', () => {
  test('one that the user has enrolled', async () => {
    const { user } = await withTotp()
    const browser = openBrowser(app)
    await signIn(browser, await browser.get(authorizeUrl('web')), user.username)
    expect(await none(browser, '')).toBe('login_required')
    const old = await newUser()
    const early = openBrowser(app)
    await logInTo(early, 'web', old.username)
    expect(await none(early, '')).toBeUndefined()
    const elsewhere = openBrowser(app)
    await enrolTotp(app, elsewhere, await openEnrolment(elsewhere, old.username))
    expect(await none(early, '')).toBe('interaction_required')
  })

  test('one that the user has not enrolled', async () => {
    const user = await newUser()
    const browser = openBrowser(app)
    await logInTo(browser, 'web', user.username)
    expect(await none(browser, 'phr')).toBe('interaction_required')
  })
})
