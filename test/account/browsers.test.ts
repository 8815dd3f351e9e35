import { describe, expect, test } from 'bun:test'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { enrolPasskey, enrolTotp, openEnrolment, signInWith } from '#test/support/factors.ts'
import {
  addClient,
  addUser,
  authorizeUrl,
  codeRow,
  logInTo,
  REDIRECT,
  signIn,
  VERIFIER,
} from '#test/support/people.ts'

const app = await startApp()
const { client_secret } = await addClient(app, 'web')
let users = 0
const newUser = () => addUser(app, `user${++users}`)

const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const edge = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Edg/140.0.0.0'
const thisBrowser = () => openBrowser(app, { headers: { 'user-agent': firefox } })
const otherBrowser = () => openBrowser(app, { ip: '198.51.100.7', headers: { 'user-agent': edge } })

const redeem = async (browser: Browser) => {
  const { code = '' } = answerOf(await browser.get(authorizeUrl('web')))
  const fields = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER }
  const headers = { authorization: `Basic ${btoa(`web:${client_secret}`)}` }
  const answer = await app.call('/oauth/token', {
    method: 'POST',
    headers,
    body: new URLSearchParams(fields),
  })
  return (await answer.json()) as { access_token: string; refresh_token: string }
}
const worksAt = async ({ access_token, refresh_token }: Awaited<ReturnType<typeof redeem>>) => {
  const info = await app.call('/oauth/userinfo', { headers: { authorization: `Bearer ${access_token}` } })
  const headers = { authorization: `Basic ${btoa(`web:${client_secret}`)}` }
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token })
  return [info.status, (await app.call('/oauth/token', { method: 'POST', headers, body })).status]
}
const DEAD = [401, 400]

/** Returns the page's sign-out buttons in page order, as `browser` or `session`. */
const offered = (page: Page) =>
  page.forms.flatMap(({ action }) =>
    action === '/account/logins' ? 'browser' : action === '/account/sessions' ? 'session' : [],
  )
const summary = (events: Awaited<ReturnType<typeof app.events>>) =>
  events.map(({ type, actor_id, metadata }) => [type, actor_id, metadata.reason])

test('the browsers of a user are listed with their sessions, this browser first', async () => {
  const user = await newUser()
  const mine = thisBrowser()
  await signIn(mine, await mine.get('/account'), user.username)
  await redeem(mine)
  app.clock.advance(MINUTE)
  const other = otherBrowser()
  await signIn(other, await other.get('/account'), user.username)
  const page = await mine.get('/account')
  expect(page.html.indexOf('Firefox on Linux')).toBeLessThan(page.html.indexOf('The web'))
  expect(page.html.indexOf('The web')).toBeLessThan(page.html.indexOf('Edge on Windows'))
  expect(page.html).toContain('198.51.100.7')
  expect(page.html.match(/This browser/g)).toHaveLength(1)
  expect(offered(page)).toEqual(['session', 'browser'])
  expect(offered(await other.get('/account'))).toEqual(['browser', 'session'])
  // The login has expired, but its session has not. The page lists the session without a login.
  app.clock.advance(DAY)
  const later = thisBrowser()
  const alone = await signIn(later, await later.get('/account'), user.username)
  expect(offered(alone)).toEqual(['session'])
  expect(alone.html).not.toContain('Edge on Windows')
  expect(alone.forms.map(({ action }) => action)).toContain('/account/logins/others')
})

test('signing out a browser ends every session from it, and no other user’s', async () => {
  const user = await newUser()
  const [mine, other, stranger] = [thisBrowser(), otherBrowser(), otherBrowser()]
  for (const browser of [mine, other]) await logInTo(browser, 'web', user.username)
  await logInTo(stranger, 'web', (await newUser()).username)
  const [kept, lost] = [await redeem(mine), await redeem(other)]
  const page = await mine.get('/account')
  const { csrf_token = '' } = formOf(page, '/account/logins').fields
  const foreign = /login_[\w-]+/.exec((await stranger.get('/account')).html)?.[0] ?? ''
  await app.events()
  for (const login_id of [foreign, 'login_junk', ''])
    expect((await mine.post('/account/logins', { csrf_token, login_id })).status).toBe(303)
  expect(await app.events()).toEqual([])
  expect((await stranger.get('/account')).heading).toBe('Your account')

  const done = await mine.follow(await mine.submit(page, {}, '/account/logins'))
  expect(done.html).toContain('That browser has been signed out')
  expect(summary(await app.events())).toEqual([
    ['user.logout', user.id, undefined],
    ['session.revoked', user.id, 'logout'],
  ])
  expect((await other.get('/account')).heading).toBe('Sign in')
  expect(await worksAt(lost)).toEqual(DEAD)
  expect(await worksAt(kept)).toEqual([200, 200])
  expect(done.forms.map(({ action }) => action)).not.toContain('/account/logins/others')
})

test('every page names the user of the latest login', async () => {
  const [first, latest] = [await newUser(), await newUser()]
  const browser = thisBrowser()
  await signIn(browser, await browser.get('/account'), first.username)
  await signIn(browser, await browser.get(authorizeUrl('web', { prompt: 'login' })), latest.username)
  await browser.get('/account')
  await app.events()
  for (const path of ['', '/profile', '/security', '/applications', '/history', '/data']) {
    const { html } = await browser.get(`/account${path}`)
    expect(/<header[\s\S]*<\/header>/.exec(html)?.[0]).toContain(latest.email)
    expect(html).not.toContain(first.email)
  }
  expect(await app.events()).toEqual([])
})

test('signing out everywhere else takes one request, and ends sessions that outlived their browser', async () => {
  const user = await newUser()
  const old = otherBrowser()
  await logInTo(old, 'web', user.username)
  const orphan = await redeem(old)
  app.clock.advance(DAY)
  const [mine, other] = [thisBrowser(), otherBrowser()]
  for (const browser of [mine, other]) await logInTo(browser, 'web', user.username)
  const [kept, lost] = [await redeem(mine), await redeem(other)]
  const waiting = answerOf(await other.get(authorizeUrl('web')))
  const own = answerOf(await mine.get(authorizeUrl('web')))
  await app.events()
  const page = await mine.get('/account')
  const done = await mine.follow(await mine.submit(page, {}, '/account/logins/others'))
  expect(done.html).toContain('You have been signed out everywhere else')
  expect(summary(await app.events())).toEqual([
    ['user.logout', user.id, undefined],
    ['session.revoked', user.id, 'logout'],
    ['session.revoked', user.id, 'user'],
  ])
  for (const tokens of [orphan, lost]) expect(await worksAt(tokens)).toEqual(DEAD)
  expect(await worksAt(kept)).toEqual([200, 200])
  expect((await other.get('/account')).heading).toBe('Sign in')
  expect((await codeRow(app, own.code)).user_id).toBe(user.id)
  await expect(codeRow(app, waiting.code)).rejects.toThrow('no code')
  expect(offered(done)).toEqual(['session'])
})

describe('removing a factor', () => {
  test('by its owner ends every other login and its sessions', async () => {
    const user = await newUser()
    const mine = thisBrowser()
    const { passkey } = await enrolPasskey(mine, await openEnrolment(mine, user.username))
    const thief = otherBrowser()
    await signInWith(thief, await thief.get('/account'), passkey)
    const [kept, lost] = [await redeem(mine), await redeem(thief)]
    const security = await mine.get('/account/security')
    await app.events()
    const done = await mine.follow(await mine.submit(security, {}, '/account/security/remove'))
    expect(done.html).toContain('You have been signed out everywhere else')
    expect(summary(await app.events())).toEqual([
      ['user.mfa_disabled', user.id, undefined],
      ['session.revoked', user.id, 'factor_removed'],
    ])
    expect((await thief.get('/account')).heading).toBe('Sign in')
    expect(await worksAt(lost)).toEqual(DEAD)
    expect(await worksAt(kept)).toEqual([200, 200])
    expect((await mine.get('/account/security')).heading).toBe('Security')
  })

  test('of another user ends nothing', async () => {
    const user = await newUser()
    const mine = thisBrowser()
    await enrolTotp(app, mine, await openEnrolment(mine, user.username))
    app.clock.advance(MINUTE)
    const security = await mine.get('/account/security')
    const tokens = await redeem(mine)
    await app.events()
    await mine.submit(security, { factor_id: 'fac_junk' }, '/account/security/remove')
    expect(await app.events()).toEqual([])
    expect(await worksAt(tokens)).toEqual([200, 200])
  })

  test.each(['one', 'all'])('by an administrator ends every login: %s', async which => {
    const user = await newUser()
    const mine = thisBrowser()
    await enrolTotp(app, mine, await openEnrolment(mine, user.username))
    const tokens = await redeem(mine)
    const { body } = await app.admin('GET', `/users/${user.id}/factors`)
    const path = which === 'one' ? `/factors/${body.data[0].id}` : '/factors'
    expect((await app.admin('DELETE', `/users/${user.id}${path}`)).status).toBe(204)
    expect((await mine.get('/account')).heading).toBe('Sign in')
    expect(await worksAt(tokens)).toEqual(DEAD)
  })
})
