import { expect, spyOn, test } from 'bun:test'
import { setPassword } from '#src/directory/users/store.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { type Browser, openBrowser, type Page, unescapeHtml } from '#test/support/browser.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { addClient, addUser, PASSWORD, signIn } from '#test/support/people.ts'
import { grantTokens } from '#test/support/tokens.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
const chosen = { password: PASSWORD, password_repeat: PASSWORD }

const allow = (registration: string) =>
  app.admin('PUT', '/organizations/default', { settings: { registration } })
const users = () => app.context.store.read(async q => q.select().from(q.tables.users))

/** Submits the form with the new password. Makes the change while the password is hashed. */
const submitDuring = async (
  change: () => Promise<unknown>,
  browser: Browser,
  page: Page,
  fields: Record<string, string> = chosen,
): Promise<Page> => {
  const hash = spyOn(Bun.password, 'hash').mockImplementationOnce(async () => {
    await change()
    await app.events()
    return '$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$dGFndGFndGFndGFndGFndGFn'
  })
  const forms = page.forms.filter(form => Object.hasOwn(form.fields, 'password'))
  const answer = await browser.submit({ ...page, forms }, fields)
  expect(hash).toHaveBeenCalledTimes(1)
  hash.mockRestore()
  return answer
}

test.each([
  ['open', 'off'],
  ['open', 'approval'],
  ['approval', 'open'],
])(
  'PEO-07 while a password is hashed, registration changes from %s to %s: no user',
  async (before, after) => {
    const username = `from-${before}-to-${after}`
    const email = `${username}@example.com`
    await allow(before)
    const browser = openBrowser(app)
    const login = await browser.get('/account')
    const form = await browser.get(unescapeHtml(/href="(\/oauth\/sign-up[^"]*)"/.exec(login.html)?.[1] ?? ''))
    await browser.submit(form, { email })
    await deliverMails(app.context)
    const link = /http:\S+/.exec(mail.mails.at(-1)?.text ?? '')?.[0] ?? ''
    const page = await browser.submit(await browser.get(link), {
      username,
      first_name: 'Bob',
      last_name: 'Roe',
    })
    expect((await submitDuring(() => allow(after), browser, page)).status).toBe(410)
    expect((await users()).some(user => user.email === email)).toBe(false)
    expect(await app.events()).toEqual([])
  },
)

test('PEO-04 while a password is hashed, its maker loses what a group of the invitation grants: no user', async () => {
  await create(app, '/roles', { name: 'reader', permissions: ['events:read'] })
  const group = await create(app, '/groups', { name: 'Readers', roles: ['reader'] })
  const own = ['users:create', 'groups:update', 'profile:read', 'profile:update']
  await create(app, '/roles', { name: 'host', permissions: [...own, 'events:read'] })
  await create(app, '/roles', { name: 'greeter', permissions: own })
  const maker = await addUser(app, 'maker', { roles: ['host'] })
  const client = await addClient(app, 'desk', { scopes: ['openid', 'admin'] })
  const { access_token } = await grantTokens(app, client, maker, { scope: 'openid admin' })
  const wanted: Json = { delivery: 'link', groups: [group.id] }
  const { status, body } = await app.admin('POST', '/invitations', wanted, access_token)
  expect(status).toBe(201)
  const browser = openBrowser(app)
  const person = { username: 'bob', email: 'bob@example.com', first_name: 'Bob', last_name: 'Roe' }
  const page = await browser.submit(await browser.get(body.invitation_url), person)
  const dismiss = () => app.admin('PUT', `/users/${maker.id}`, { roles: ['greeter'] })
  expect((await submitDuring(dismiss, browser, page)).status).toBe(410)
  expect((await users()).some(user => user.username === 'bob')).toBe(false)
  expect((await app.admin('GET', `/groups/${group.id}`)).body.member_count).toBe(0)
  expect(await app.events()).toEqual([])
})

test('a password that an administrator sets while the user changes it is kept', async () => {
  const user = await addUser(app, 'carol')
  const browser = openBrowser(app)
  await signIn(browser, await browser.get('/account'), user.username)
  const page = await browser.get('/account/change-password')
  const password_changed_at = app.clock.now() + 1
  const reset = { password_hash: 'of another', password_temporary: false, password_changed_at }
  const change = () =>
    app.context.store.write(tx => setPassword(tx, user.id, { ...reset, updated_at: password_changed_at }))
  const fields = { current_password: PASSWORD, password: 'Own-horse-8', password_repeat: 'Own-horse-8' }
  const answer = await submitDuring(change, browser, page, fields)
  expect([answer.status, answer.location]).toEqual([400, undefined])
  expect(await app.events()).toEqual([])
  expect((await users()).find(({ id }) => id === user.id)).toMatchObject(reset)
})

test('O-70 while an administrator resets a password, the user gets rights that the caller lacks: refused', async () => {
  const user = await addUser(app, 'dave')
  const token = await callerOf(app, 'org_default', ['users:update', 'profile:read', 'profile:update'])
  const before = (await users()).find(({ id }) => id === user.id)
  const hash = spyOn(Bun.password, 'hash').mockImplementationOnce(async () => {
    await app.admin('PUT', `/users/${user.id}`, { roles: ['admin'] })
    await app.events()
    return 'of the new password'
  })
  const path = `/users/${user.id}/reset-password`
  expect((await app.admin('POST', path, { password: 'Reset-horse-9' }, token)).status).toBe(403)
  hash.mockRestore()
  expect((await users()).find(({ id }) => id === user.id)?.password_hash).toBe(before?.password_hash ?? '')
  expect(await app.events()).toEqual([])
})
