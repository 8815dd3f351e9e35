import { beforeEach, expect, test } from 'bun:test'
import { charge } from '#src/http/rate-limits.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { addClient, addUser, authorizeUrl, PASSWORD } from '#test/support/people.ts'
import { addProvider, goThrough, startFederated } from './upstream.ts'

const { app, upstream, honest } = await startFederated()
await addClient(app, 'asking', { consent_required: true })
await addProvider(app, 'upstream')
const entry = authorizeUrl('asking').replace('/oauth/authorize', '/oauth/social/upstream')

let made = 0
const fresh = (): Browser => openBrowser(app, { ip: `198.51.100.${made++ & 255}` })
const logins = () => app.context.store.read(async q => q.select().from(q.tables.logins))
const logOut = async (browser: Browser): Promise<void> => {
  const { status } = await browser.submit(await browser.get('/oauth/logout'))
  expect([status, await logins()]).toEqual([200, []])
  await app.events()
}
const newcomer = () => ({ sub: `newcomer-${++made}`, email: '' })
const answers = () => ({ email: `newcomer-${made}@example.com`, first_name: 'New', last_name: 'Comer' })
const isRefused = async (browser: Browser, page: Page) => {
  expect([page.status, page.heading]).toEqual([400, 'This page has expired'])
  expect(await logins()).toEqual([])
  expect(await app.events()).toEqual([])
  expect((await browser.get('/account')).heading).toBe('Sign in')
}

beforeEach(async () => {
  await app.context.store.write(async tx => {
    await tx.delete(tx.tables.logins)
  })
})

test('H-31 a complete-profile form signs in once, and not again after signing out', async () => {
  const browser = fresh()
  const page = await goThrough(browser, upstream, entry, newcomer())
  const consent = await browser.follow(await browser.submit(page, answers()))
  expect(consent.url).toStartWith('/oauth/consent')
  await logOut(browser)
  await isRefused(browser, await browser.submit(page, answers()))
  await isRefused(browser, await browser.get(page.url))
})

test('FED-21 an address that is typed is not verified, whatever the provider says without an address', async () => {
  await addProvider(app, 'trusted', { trust_email: true, client_id: 'trusted' })
  upstream.twist = ({ claims, userinfo }) => {
    for (const said of [claims, userinfo]) said.email_verified = true
  }
  const browser = fresh()
  const page = await goThrough(browser, upstream, entry.replace('/upstream', '/trusted'), newcomer())
  honest()
  const victim = await addUser(app, 'victim', { email_verified: true })
  const asked = await browser.follow(await browser.submit(page, { ...answers(), email: victim.email }))
  expect(asked.heading).toBe('Is this you?')
  await browser.submit(await browser.get(page.url), answers())
  const { data } = (await app.admin('GET', `/users?search=${answers().email}`)).body
  expect(data).toMatchObject([{ email_verified: false }])
  const accounts = await app.context.store.read(async q => q.select().from(q.tables.external_accounts))
  expect(accounts.map(({ user_id }) => user_id)).not.toContain(victim.id)
})

test('H-31 a form that led to a second form is used up by the login of the second form', async () => {
  const user = await addUser(app, 'existing')
  const browser = fresh()
  const first = await goThrough(browser, upstream, entry, newcomer())
  const second = await browser.follow(await browser.submit(first, { ...answers(), email: user.email }))
  // Until the password is proven, the user can go back and correct a mistyped address.
  expect((await browser.get(first.url)).status).toBe(200)
  const consent = await browser.follow(await browser.submit(second, { password: PASSWORD }))
  expect(consent.url).toStartWith('/oauth/consent')
  await logOut(browser)
  await isRefused(browser, await browser.submit(first, answers()))
  await isRefused(browser, await browser.submit(second, { password: PASSWORD }))
})

test('H-31 only one of two forms sent at once signs in', async () => {
  const browser = fresh()
  const page = await goThrough(browser, upstream, entry, newcomer())
  const sent = await Promise.all([browser.submit(page, answers()), browser.submit(page, answers())])
  expect(sent.map(({ status }) => status).toSorted()).toEqual([303, 400])
  expect(await logins()).toHaveLength(1)
})

test('PAG-65 a complete-profile form that was left for another account is used up', async () => {
  const browser = fresh()
  const page = await goThrough(browser, upstream, entry, newcomer())
  const login = await browser.follow(await browser.submit(page, {}, '/oauth/other-account'))
  expect(login.heading).toBe('Sign in')
  await app.events()
  await isRefused(browser, await browser.submit(page, answers()))
  await isRefused(browser, await browser.get(page.url))
})

test('H-59 a complete-profile form that is sent again and again is charged, and stores nothing more', async () => {
  const user = await addUser(app, 'asked-for')
  const ip = '203.0.113.59'
  const browser = openBrowser(app, { ip })
  const page = await goThrough(browser, upstream, entry, newcomer())
  const stored = () => app.context.store.read(async q => q.$count(q.tables.upstream_requests))
  const send = () => browser.submit(page, { ...answers(), email: user.email })
  expect((await send()).status).toBe(303)
  const before = await stored()
  expect(() => {
    for (;;) charge(app.context, { ip_address: ip, organization_id: DEFAULT_ORGANIZATION, kind: 'commit' })
  }).toThrow()
  await app.events()
  expect((await send()).status).toBe(429)
  expect([await stored(), await app.events()]).toEqual([before, []])
})
