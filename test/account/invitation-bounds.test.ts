/** Tests what a form of an invitation, or of a login with a step to complete, must not do. */
import { beforeEach, expect, test } from 'bun:test'
import { HOUR } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { linkWith, optionsOf, sendForm } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
const acme = await addOrganization(app, 'acme')
await addClient(app, 'acme-web', { organization_id: acme.id })
const chosen = { password: PASSWORD, password_repeat: PASSWORD }

let made = 0
const somebody = () => {
  const username = `person-${++made}`
  return { first_name: 'Bob', last_name: 'Roe', username, email: `${username}@example.com` }
}
const invite = (): Promise<Json> => create(app, '/invitations', { delivery: 'link' })
const userNamed = async (username: string) =>
  (await app.context.store.read(async q => q.select().from(q.tables.users))).find(
    user => user.username === username,
  )
const withField = (page: Page, field: string): Page => ({
  ...page,
  forms: page.forms.filter(({ fields }) => Object.hasOwn(fields, field)),
})
const types = async () => (await app.events()).map(({ type }) => type)
/** Asks to register. Returns the link in the mail. */
const register = async (browser: Browser, email: string): Promise<string> => {
  const login = await browser.get('/account')
  await browser.submit(await browser.get(linkWith(login, '/oauth/sign-up')), { email })
  await deliverMails(app.context)
  return /http:\S+/.exec(mail.mails.at(-1)?.text ?? '')?.[0] ?? ''
}
const allow = async (registration: string) =>
  expect((await app.admin('PUT', '/organizations/default', { settings: { registration } })).status).toBe(200)

beforeEach(async () => {
  await app.events()
})

test('PEO-05 O-28 a form of an invitation that another site posts makes no user', async () => {
  const who = somebody()
  const browser = openBrowser(app)
  const page = await browser.submit(await browser.get((await invite()).invitation_url), who)
  await app.events()
  const form = formOf(withField(page, 'password'))
  for (const origin of ['https://evil.example', 'null']) {
    const answer = await browser.post(form.action, { ...form.fields, ...chosen }, { origin })
    expect(answer.status).toBe(403)
  }
  expect([await userNamed(who.username), await types()]).toEqual([undefined, []])
  const done = await browser.follow(await sendForm(browser, page, 'password', chosen))
  expect(done.heading).toBe('Your account')
})

test('PEO-44 a network records a limited number of refused links', async () => {
  const { invitation_url } = await create(app, '/invitations', { delivery: 'link', expires_in: 3600 })
  app.clock.advance(HOUR)
  await app.events()
  const ip = '198.51.100.44'
  app.context.charges.networks.take(`refusal:${ip}`, { burst: 60, per_second: 0.1 }, app.clock.now(), 60)
  expect((await openBrowser(app, { ip }).get(invitation_url)).status).toBe(410)
  expect(await types()).toEqual([])
  expect((await openBrowser(app, { ip: '198.51.100.45' }).get(invitation_url)).status).toBe(410)
  expect(await types()).toEqual(['invitation.refused'])
})

test('PEO-09 an invitation does not continue the authorization request of another organization', async () => {
  const who = somebody()
  const browser = openBrowser(app)
  const { request = '' } = formOf(await browser.get(authorizeUrl('acme-web'))).fields
  const url = `${(await invite()).invitation_url}&request=${request}`
  const page = await browser.submit(await browser.get(url), who)
  expect(formOf(withField(page, 'password')).fields.request).toBe(request)
  const done = await browser.follow(await sendForm(browser, page, 'password', chosen))
  expect([done.url, done.heading]).toEqual(['/account', 'Your account'])
  expect((await userNamed(who.username))?.organization_id).toBe('org_default')
})

test('PEO-10 a person who waits for approval gets no recovery codes that nobody has seen', async () => {
  await allow('approval')
  const who = somebody()
  const browser = openBrowser(app)
  const page = await browser.submit(await browser.get(await register(browser, who.email)), who)
  const credential = newPasskey().create(optionsOf(page))
  const done = await sendForm(browser, page, 'credential', { credential })
  expect(done.heading).toBe('Waiting for approval')
  const { id } = (await userNamed(who.username)) ?? {}
  const [codes, factors] = await app.context.store.read(async q => [
    await q.select().from(q.tables.recovery_codes),
    await q.select().from(q.tables.factors),
  ])
  expect(factors.filter(({ user_id }) => user_id === id)).toHaveLength(1)
  expect(codes.filter(({ user_id }) => user_id === id)).toEqual([])
})

test('a form of a login that has a step to complete changes nothing, but signs out', async () => {
  const user = await addUser(app, 'due', { organization_id: acme.id })
  const [mine, other] = [openBrowser(app), openBrowser(app)]
  for (const browser of [mine, other])
    await signIn(browser, await browser.get('/account?organization=acme'), user.username)
  const page = await mine.get('/account?organization=acme')
  await app.admin('PUT', '/organizations/acme', { settings: { mfa_required: true } })
  await app.events()
  const late = await mine.submit(page, {}, '/account/logins/others')
  expect([late.status, late.heading]).toEqual([400, 'This page has expired'])
  expect(await types()).toEqual([])
  expect((await mine.submit(page, {}, '/account/logout')).status).toBe(303)
  expect(await types()).toEqual(['user.logout'])
})
