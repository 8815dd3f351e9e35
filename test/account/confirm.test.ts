import { expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { enrolPasskey, openEnrolment, signInWith } from '#test/support/factors.ts'
import { addOrganization, addUser, PASSWORD, signIn } from '#test/support/people.ts'

const app = await startApp()
await addOrganization(app, 'acme', { settings: { self_deletion: true } })
const CONFIRM = 'Confirm it’s you'
let users = 0

/** Signs a new user in, opens an account page and waits six minutes. */
const late = async (path: string) => {
  const organization = (await app.admin('GET', '/organizations/acme')).body
  const user = await addUser(app, `late${++users}`, { organization_id: organization.id })
  const browser = openBrowser(app)
  await signIn(browser, await browser.get('/account?organization=acme'), user.username)
  const page = await browser.get(path)
  app.clock.advance(6 * MINUTE)
  await app.events()
  return { user, browser, page }
}
const types = async () => (await app.events()).map(({ type }) => type)
const send = async (browser: Browser, page: Page, fields: Record<string, string>, action: string) =>
  browser.follow(await browser.submit(page, fields, action))
const pending = () => app.context.store.read(async q => q.select().from(q.tables.authorization_requests))

test('PAG-60 pages are viewed without a new proof; what changes a secret asks first and says where to go back', async () => {
  const { user, browser } = await late('/account')
  for (const path of ['/account', '/account/profile', '/account/security', '/account/data'])
    expect((await browser.get(path)).heading).not.toBe(CONFIRM)
  for (const [path, cancel] of [
    ['/account/change-password', '/account'],
    ['/account/security/add', '/account/security'],
  ] as const) {
    const page = await browser.get(path)
    expect(page.heading).toBe(CONFIRM)
    expect(page.html).toContain('You’re still signed in.')
    expect(page.html).toContain(`${user.username}@example.com`)
    expect(page.html).toContain(`<a class="button quiet" href="${cancel}">Cancel</a>`)
    expect(page.html).not.toContain('Then:')
    expect((await signIn(browser, page, user.username)).url).toStartWith(
      path.replace('/account/security/add', '/oauth/enrol'),
    )
    app.clock.advance(6 * MINUTE)
  }
})

test('PAG-61 a posted form continues once, in its browser alone, and is stored without csrf_token', async () => {
  const { user, browser, page } = await late('/account/profile')
  const asked = await send(browser, page, { first_name: 'Ada' }, '/account/profile')
  expect(asked.heading).toBe(CONFIRM)
  const [row] = (await pending()).slice(-1)
  expect(row?.request.confirm).toEqual({
    cancel: '/account/profile',
    intent: {
      path: '/account/profile',
      fields: { first_name: 'Ada', last_name: 'Example' },
      change: ['account-profile.title', 'account-profile.submit'],
    },
  })
  expect(asked.html).toContain('<p>Then: Profile\u00a0· Save</p>')
  const handle = asked.forms[0]?.fields.request
  const way = `/account/continue?request=${handle}`
  expect((await browser.follow(await browser.get(way))).heading).toBe(CONFIRM)
  expect((await openBrowser(app).get(way)).status).toBe(400)
  expect(await types()).toEqual([])
  const done = await signIn(browser, asked, user.username)
  expect(done.url).toBe('/account/profile?notice=saved')
  expect(await types()).toEqual(['user.login', 'user.updated'])
  expect((await browser.get(way)).status).toBe(400)
  expect(await types()).toEqual([])
})

test('PAG-61 a form whose confirmation came too late asks once more, and then continues', async () => {
  const { user, browser, page } = await late('/account/profile')
  const asked = await send(browser, page, { first_name: 'Ada' }, '/account/profile')
  const confirmed = await browser.submit(
    asked,
    { username: user.username, password: PASSWORD },
    '/oauth/login',
  )
  expect(confirmed.location).toStartWith('/account/continue?request=')
  app.clock.advance(6 * MINUTE)
  const again = await browser.follow(confirmed)
  expect(again.heading).toBe(CONFIRM)
  const done = await signIn(browser, again, user.username)
  expect(done.url).toBe('/account/profile?notice=saved')
  expect(await types()).toEqual(['user.login', 'user.login', 'user.updated'])
})

test('PAG-61 a cancelled form stays undone when the user confirms another one, and loads its page again', async () => {
  const { user, browser, page } = await late('/account/data')
  const cancelled = await send(browser, page, { username: user.username }, '/account/data/delete')
  const profile = await browser.get('/account/profile')
  const asked = await send(browser, profile, { first_name: 'Ada' }, '/account/profile')
  expect((await signIn(browser, asked, user.username)).url).toBe('/account/profile?notice=saved')
  expect(await types()).toEqual(['user.login', 'user.updated'])
  const handle = cancelled.forms[0]?.fields.request
  for (const path of [cancelled.url, `/account/continue?request=${handle}`])
    expect((await browser.follow(await browser.get(path))).heading).toBe(CONFIRM)
  expect((await app.admin('GET', `/users/${user.id}`)).status).toBe(200)
  expect(await types()).toEqual([])
  const again = await browser.get(cancelled.url)
  expect((await signIn(browser, again, user.username)).url).toBe('/account/deleted?organization=acme')
  expect((await browser.get(cancelled.url)).status).toBe(400)
  expect(await types()).toEqual(['user.deleted'])
})

test('PAG-61 after the confirmation a deletion continues, and a download returns to the page that offers it', async () => {
  const { user, browser, page } = await late('/account/data')
  const asked = await send(browser, page, {}, '/account/data/download')
  const back = await signIn(browser, asked, user.username)
  expect([back.url, back.heading]).toEqual(['/account/data?notice=confirmed', 'Your data'])
  expect((await browser.submit(back, {}, '/account/data/download')).headers.get('content-type')).toContain(
    'json',
  )
  app.clock.advance(6 * MINUTE)
  await app.events()
  const again = await send(browser, back, { username: user.username }, '/account/data/delete')
  expect(again.heading).toBe(CONFIRM)
  expect(again.html).toContain('<p>Then: Delete account</p>')
  expect((await signIn(browser, again, user.username)).url).toBe('/account/deleted?organization=acme')
  expect(await types()).toEqual(['user.deleted'])
})

test('PAG-61 a form that is too large to wait is dropped and its page shown; a password never waits', async () => {
  const { user, browser, page } = await late('/account/profile')
  const asked = await send(browser, page, { first_name: 'x'.repeat(5_000) }, '/account/profile')
  expect((await signIn(browser, asked, user.username)).url).toBe('/account/profile')
  const form = await browser.get('/account/change-password')
  app.clock.advance(6 * MINUTE)
  const next = { current_password: PASSWORD, password: 'Another-horse-8', password_repeat: 'Another-horse-8' }
  const confirm = await send(browser, form, next, '/account/change-password')
  expect(confirm.heading).toBe(CONFIRM)
  expect(JSON.stringify(await pending())).not.toContain('horse')
  expect((await signIn(browser, confirm, user.username)).url).toBe('/account/change-password')
  expect(await types()).toEqual(['user.login', 'user.login'])
})

test('PAG-62 no other user confirms: by name, by passkey, or after a forged name', async () => {
  const organization = (await app.admin('GET', '/organizations/acme')).body
  const other = await addUser(app, 'other', {
    organization_id: organization.id,
    password: 'Different-horse-9',
  })
  const theirs = openBrowser(app)
  await signIn(theirs, await theirs.get('/account?organization=acme'), 'other', 'Different-horse-9')
  const { passkey } = await enrolPasskey(
    theirs,
    await theirs.follow(await theirs.get('/account/security/add')),
  )
  const { user, browser, page } = await late('/account')
  await enrolPasskey(browser, await openEnrolment(browser, user.username))
  app.clock.advance(6 * MINUTE)
  await app.events()
  const asked = await browser.get('/account/change-password')
  expect(page.html).not.toContain('other@example.com')
  const refused = await signIn(browser, asked, 'other', 'Different-horse-9')
  expect([refused.status, refused.heading]).toEqual([401, CONFIRM])
  expect((await app.events()).map(({ type, target_id }) => [type, target_id])).toEqual([
    ['user.login_failed', user.id],
  ])
  const passed = await signInWith(browser, asked, passkey)
  expect([passed.status, passed.heading]).toEqual([403, CONFIRM])
  expect(passed.html).toContain('That is another account.')
  expect(await types()).toEqual([])
  const logins = await app.context.store.read(async q => q.select().from(q.tables.logins))
  expect(logins.filter(({ user_id }) => user_id === other.id)).toHaveLength(1)
})
