import { beforeEach, expect, test } from 'bun:test'
import { insertAccount } from '#src/directory/identity-providers/account-store.ts'
import { HOUR, MINUTE } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { addPasskeyUser, enrolTotp, linkWith } from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, signIn } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
await addClient(app, 'web')
await app.admin('PUT', '/organizations/default', { settings: { email_code: 'users' } })
const CONFIRM = 'Confirm it’s you'
const ADD = '/account/security/add'
const PROFILE = '/account/profile'
let made = 0

/** A user who has a verified address and a password. */
const withPassword = () => addUser(app, `person${++made}`, { email_verified: true })

/** A user who has a verified address, but no password, no passkey and no account at a provider. */
const withoutWays = async (): Promise<Json> => {
  const { user } = await addPasskeyUser(app, `person${++made}`, { email_verified: true })
  await app.admin('DELETE', `/users/${user.id}/factors?only_way_in=true`)
  return user
}

/** Signs in with a code by mail. `page` is a login page or another page with a link to such a code. */
const signInByMail = async (browser: Browser, page: Page, { username }: Json): Promise<Page> => {
  await deliverMails(app.context)
  mail.clear()
  const entry = await browser.get(linkWith(page, '/oauth/email-code'))
  const asked = await browser.follow(await browser.submit(entry, { username }, '/oauth/email-code'))
  await deliverMails(app.context)
  const code = /^\d{6}$/m.exec(mail.mails[0]?.text ?? '')?.[0] ?? ''
  const done = await browser.follow(await browser.submit(asked, { code }, '/oauth/email-code'))
  await app.events()
  return done
}

const enter = async (user: Json) => {
  const browser = openBrowser(app, { ip: `198.51.100.${++made}` })
  await signInByMail(browser, await browser.get('/account'), user)
  return browser
}
const enterByPassword = async (user: Json) => {
  const browser = openBrowser(app, { ip: `198.51.100.${++made}` })
  await signIn(browser, await browser.get('/account'), user.username)
  return browser
}
const types = async () => (await app.events()).map(({ type }) => type)
const firstNameOf = async ({ id }: Json) => (await app.admin('GET', `/users/${id}`)).body.first_name

beforeEach(() => app.clock.advance(2 * HOUR))

test('MCD-02 a user with a password confirms who they are after a login by a code, also a repeated one', async () => {
  const user = await withPassword()
  const browser = await enter(user)
  await signInByMail(browser, await browser.get(authorizeUrl('web', { prompt: 'login' })), user)
  const asked = await browser.get(ADD)
  expect([asked.heading, asked.html.includes('email-code')]).toEqual([CONFIRM, false])
  const handle = asked.forms[0]?.fields.request
  expect((await browser.get(`/oauth/email-code?request=${handle}`)).status).toBe(404)
  expect((await signIn(browser, asked, user.username)).url).toStartWith('/oauth/enrol')
})

test('MCD-02 a code adds no factor for a user with a password, although a client asks for it', async () => {
  const user = await withPassword()
  const browser = openBrowser(app, { ip: `198.51.100.${++made}` })
  const link = authorizeUrl('web', { acr_values: '2' })
  const asked = await signInByMail(browser, await browser.get(link), user)
  expect([asked.heading, asked.html.includes('email-code')]).toEqual([CONFIRM, false])
  const handle = asked.forms[0]?.fields.request
  expect((await browser.get(`/oauth/enrol?request=${handle}`)).heading).toBe(CONFIRM)
  expect((await signIn(browser, asked, user.username)).url).toStartWith('/oauth/enrol')
  // A login that began with a code for another request adds no factor either.
  const other = await enter(await withPassword())
  expect((await other.follow(await other.get(link))).heading).toBe(CONFIRM)
})

test('MCD-02 the confirmation is for the user of the step, not for another login of the browser', async () => {
  const [ada, bob] = [await withPassword(), await withPassword()]
  const browser = await enterByPassword(ada)
  const choice = await browser.follow(await browser.get(ADD))
  expect(choice.url).toStartWith('/oauth/enrol')
  await signInByMail(browser, await browser.get(authorizeUrl('web', { prompt: 'login' })), bob)
  app.clock.advance(6 * MINUTE)
  const asked = await browser.get(choice.url)
  expect([asked.heading, formOf(asked, '/oauth/login').fields.username]).toEqual(['Sign in', ada.username])
  expect((await signIn(browser, asked, ada.username)).url).toStartWith('/oauth/enrol')
  expect(await types()).toEqual([])
})

test('MCD-02 Back, and a second copy of the form with the code, lead to the confirmation', async () => {
  const user = await withPassword()
  const browser = openBrowser(app, { ip: `198.51.100.${++made}` })
  const first = await browser.get(authorizeUrl('web', { acr_values: '2' }))
  const form = await browser.get(linkWith(first, '/oauth/email-code'))
  await signInByMail(browser, first, user)
  for (const again of [await browser.get(form.url), await browser.submit(form, { code: '123456' })]) {
    expect([again.status, again.location]).toEqual([303, form.url.replace('email-code', 'login')])
    expect((await browser.follow(again)).heading).toBe(CONFIRM)
  }
  expect(await types()).toEqual([])
})

test('MCD-02 PAG-65 the confirmation before a factor can be left for another account', async () => {
  const [ada, bob] = [await withPassword(), await withPassword()]
  const browser = await enter(bob)
  const asked = await browser.follow(await browser.get(authorizeUrl('web', { acr_values: '2' })))
  expect([asked.heading, asked.html.includes('>Cancel<')]).toEqual([CONFIRM, false])
  const login = await browser.follow(await browser.submit(asked, {}, '/oauth/other-account'))
  expect(login.heading).toBe('Sign in')
  expect((await signIn(browser, login, ada.username)).url).toStartWith('/oauth/enrol')
})

test('MCD-02 a user with a temporary password confirms with it before a new one is chosen', async () => {
  const user = await withPassword()
  const temporary = 'Temporary-9-word'
  await app.admin('POST', `/users/${user.id}/reset-password`, { password: temporary, temporary: true })
  const browser = openBrowser(app, { ip: `198.51.100.${++made}` })
  const link = authorizeUrl('web', { acr_values: '2' })
  const asked = await signInByMail(browser, await browser.get(link), user)
  expect(asked.heading).toBe(CONFIRM)
  const change = await signIn(browser, asked, user.username, temporary)
  expect(change.heading).toBe('Choose a new password')
  const password = 'Another-horse-8'
  const choice = await browser.follow(await browser.submit(change, { password, password_repeat: password }))
  expect(choice.url).toStartWith('/oauth/enrol')
  const { page } = await enrolTotp(app, browser, choice)
  expect((await browser.submit(page, {}, '/oauth/enrol')).location).toContain('code=')
  expect((await app.events()).map(({ type }) => type)).toEqual(['user.mfa_enabled', 'user.password_changed'])
  const other = openBrowser(app)
  expect((await signIn(other, await other.get('/account'), user.username, password)).url).toStartWith(
    '/oauth/second-factor',
  )
})

test('MCD-02 a disabled user confirms nothing, and the browser gets the login page', async () => {
  const [ada, bob] = [await withPassword(), await withPassword()]
  const browser = await enter(bob)
  const link = authorizeUrl('web', { acr_values: '2' })
  expect((await browser.follow(await browser.get(link))).heading).toBe(CONFIRM)
  await app.admin('PUT', `/users/${bob.id}`, { enabled: false })
  const page = await browser.follow(await browser.get(link))
  expect(page.heading).toBe('Sign in')
  expect((await signIn(browser, page, ada.username)).url).toStartWith('/oauth/enrol')
})

test('MCD-02 a login page that is open when another user signs in by a code takes its own name', async () => {
  const [ada, bob] = [await withPassword(), await withPassword()]
  const browser = openBrowser(app, { ip: `198.51.100.${++made}` })
  const page = await browser.get(authorizeUrl('web', { acr_values: '2' }))
  await signInByMail(browser, await browser.get('/account'), bob)
  const enrolment = await signIn(browser, page, ada.username)
  expect([enrolment.url.split('?')[0], enrolment.html.includes(ada.email)]).toEqual(['/oauth/enrol', true])
})

test('MCD-02 a code is enough to add the factor when it is the only way in', async () => {
  const browser = openBrowser(app, { ip: `198.51.100.${++made}` })
  const page = await browser.get(authorizeUrl('web', { acr_values: '2' }))
  expect((await signInByMail(browser, page, await withoutWays())).url).toStartWith('/oauth/enrol')
})

test('MCD-02 a form that is posted after a login by a code waits for the password', async () => {
  const user = await withPassword()
  const browser = await enter(user)
  const page = await browser.get(PROFILE)
  const asked = await browser.follow(await browser.submit(page, { first_name: 'Ada' }, PROFILE))
  expect([asked.heading, await firstNameOf(user), await types()]).toEqual([CONFIRM, user.first_name, []])
  expect((await signIn(browser, asked, user.username)).url).toBe(`${PROFILE}?notice=saved`)
  expect([await firstNameOf(user), await types()]).toEqual(['Ada', ['user.login', 'user.updated']])
})

test('MCD-02 a code in place of an ended login does not confirm who the user is', async () => {
  const user = await withPassword()
  const browser = await enter(user)
  const asked = await browser.get(ADD)
  browser.cookies.delete('gatehouse_login_8080')
  const page = await browser.get(`/oauth/login?request=${asked.forms[0]?.fields.request}`)
  expect(page.heading).toBe('Sign in')
  expect((await signInByMail(browser, page, user)).heading).toBe(CONFIRM)
})

test('MCD-02 a user with a linked provider alone confirms there', async () => {
  const user = await withoutWays()
  const provider = await app.admin('POST', '/identity-providers', {
    type: 'oauth2',
    preset: 'github',
    alias: 'github',
    name: 'GitHub',
    client_id: 'there',
    client_secret: 'secret',
  })
  expect(provider.status).toBe(201)
  await app.context.store.write(tx =>
    insertAccount(tx, {
      ...{ provider_id: provider.body.id, subject: 'somebody', label: '', user_id: user.id as never },
      ...{ organization_id: user.organization_id, created_at: app.clock.now() },
    }),
  )
  const browser = await enter(user)
  const asked = await browser.get(ADD)
  expect([asked.heading, asked.html.includes('email-code')]).toEqual([CONFIRM, false])
  expect(linkWith(asked, '/oauth/social/github')).toContain('request=')
  await app.admin('PUT', `/identity-providers/${provider.body.id}`, { enabled: false })
  expect((await browser.follow(await browser.get(ADD))).url).toStartWith('/oauth/enrol')
})

test('MCD-02 a user whose only way in is the code signs in with a code before a change', async () => {
  const user = await withoutWays()
  const browser = await enter(user)
  expect((await browser.follow(await browser.get(ADD))).url).toStartWith('/oauth/enrol')
  const page = await browser.get(PROFILE)
  app.clock.advance(6 * MINUTE)
  const asked = await browser.follow(await browser.submit(page, { first_name: 'Ada' }, PROFILE))
  expect([asked.heading, await firstNameOf(user), await types()]).toEqual(['Sign in', user.first_name, []])
  expect((await signInByMail(browser, asked, user)).url).toBe(`${PROFILE}?notice=saved`)
  expect(await firstNameOf(user)).toBe('Ada')
})

test('MCD-02 PAG-62 no other user signs in with a code in place of the one who makes the change', async () => {
  const browser = await enter(await withoutWays())
  app.clock.advance(6 * MINUTE)
  const refused = await signInByMail(browser, await browser.get(ADD), await withPassword())
  expect([refused.status, refused.html.includes('That is another account.')]).toEqual([403, true])
})
