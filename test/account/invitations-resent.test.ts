import { expect, test } from 'bun:test'
import { HOUR } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { sendForm } from '#test/support/factors.ts'
import { addClient, addUser, PASSWORD } from '#test/support/people.ts'
import { grantTokens } from '#test/support/tokens.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
const desk = await addClient(app, 'desk', { scopes: ['openid', 'admin'] })

let made = 0
/** Creates a user without a password. Returns the user and the id of the user's invitation. */
const addInvited = async (invite: 'mail' | 'link', more: Json = {}) => {
  const username = `invited-${++made}`
  const email = `${username}@example.com`
  const user = await create(app, '/users', {
    username,
    email,
    first_name: '',
    last_name: '',
    roles: ['user'],
    invite,
    ...more,
  })
  const { data } = (await app.admin('GET', '/invitations?order=desc')).body
  return { user, invitation_id: data[0].id as string }
}

const rows = (table: 'invitations' | 'mails') => app.context.store.read(q => q.select().from(q.tables[table]))
const stored = async () => [await rows('invitations'), await rows('mails')]

/** Expects a refusal with this reason. Expects that the request stores, mails and records nothing. */
const expectRefused = async (invitation_id: string, reason: string) => {
  await app.events()
  const before = await stored()
  const { status, body } = await app.admin('POST', `/invitations/${invitation_id}/resend`)
  expect([status, body.error, body.error_description]).toEqual([
    409,
    'conflict',
    `The invitation cannot be accepted: ${reason}.`,
  ])
  expect(await stored()).toEqual(before)
  expect(await app.events()).toEqual([])
}

const expectSent = async (invitation_id: string): Promise<Json> => {
  await app.events()
  const { status, body } = await app.admin('POST', `/invitations/${invitation_id}/resend`)
  expect(status).toBe(200)
  expect((await app.events()).map(({ type }) => type)).toEqual(['invitation.sent'])
  return body
}

test.each(['mail', 'link'] as const)('PEO-46 is not sent to a user who cannot use it: %s', async invite => {
  const changes: [string, Json, Json?][] = [
    ['its user has another e-mail address by now', { email: `moved-${made}@example.com` }],
    ['its user is disabled', { enabled: false }, { enabled: true }],
  ]
  for (const [reason, change, back] of changes) {
    const { user, invitation_id } = await addInvited(invite)
    await app.admin('PUT', `/users/${user.id}`, change)
    await expectRefused(invitation_id, reason)
    await app.admin('PUT', `/users/${user.id}`, back ?? { email: user.email })
    await expectSent(invitation_id)
  }
  const { user, invitation_id } = await addInvited(invite)
  await app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD })
  await expectRefused(invitation_id, 'its user can sign in already')
})

test('PEO-46 is not sent, and not mailed, when a user has its address by now', async () => {
  const { id } = await create(app, '/invitations', { delivery: 'mail', email: 'taken@example.com' })
  await addUser(app, 'taken', { email: 'Taken@example.com' })
  await expectRefused(id, 'a user has its e-mail address by now')
  await deliverMails(app.context)
  expect(mail.mails.filter(({ to }) => to === 'taken@example.com')).toEqual([])
  expect(await rows('mails')).toEqual([])
})

test('PEO-46 stays open when only the letter case of the address changes', async () => {
  const { user, invitation_id } = await addInvited('link')
  const { invitation_url } = await expectSent(invitation_id)
  const { status } = await app.admin('PUT', `/users/${user.id}`, { email: user.email.toUpperCase() })
  expect(status).toBe(200)
  expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
    ['user.updated', { fields: ['email'] }],
  ])
  expect((await openBrowser(app).get(invitation_url)).status).toBe(200)
  await expectSent(invitation_id)
})

test('PEO-46 is not sent when its maker was dismissed or may no longer give what it gives', async () => {
  const maker = await addUser(app, 'maker', { roles: ['admin'] })
  const { access_token: token } = await grantTokens(app, desk, maker, { scope: 'openid admin' })
  const { body } = await app.admin('POST', '/invitations', { delivery: 'link', roles: ['admin'] }, token)
  const reason = 'the user or client that made it may no longer grant what it gives'
  await app.admin('PUT', `/users/${maker.id}?confirm=maker`, { roles: ['user'] })
  await expectRefused(body.id, reason)
  await app.admin('PUT', `/users/${maker.id}`, { roles: ['admin'] })
  const { invitation_url } = await expectSent(body.id)
  expect((await openBrowser(app).get(invitation_url)).status).toBe(200)
  await app.admin('PUT', `/users/${maker.id}?confirm=maker`, { enabled: false })
  await expectRefused(body.id, reason)
  await app.admin('DELETE', `/users/${maker.id}?confirm=maker`)
  await expectRefused(body.id, reason)
})

const bot = {
  client_id: 'bot',
  name: 'Bot',
  type: 'confidential',
  grant_types: ['client_credentials'],
  scopes: ['admin'],
}

test('PEO-04, PEO-46 stays without effect when the client that made it is registered again', async () => {
  const { client_secret } = await create(app, '/clients', bot)
  const token = await app.tokenOf('bot', client_secret)
  const { body } = await app.admin('POST', '/invitations', { delivery: 'link', roles: ['admin'] }, token)
  const open = async () => (await openBrowser(app).get(body.invitation_url)).status
  expect(await open()).toBe(200)
  await app.admin('DELETE', '/clients/bot')
  expect(await open()).toBe(410)
  // In another organization, within the same millisecond.
  const { id: organization_id } = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  await create(app, '/clients', { ...bot, organization_id })
  expect(await open()).toBe(410)
  await app.admin('DELETE', '/clients/bot')
  app.clock.advance(1000)
  await create(app, '/clients', bot)
  expect(await open()).toBe(410)
  await expectRefused(body.id, 'the user or client that made it may no longer grant what it gives')
})

test('PEO-46 is sent for a client that was created before the clock was set back', async () => {
  app.clock.advance(3 * HOUR)
  const { client_secret } = await create(app, '/clients', { ...bot, client_id: 'ahead' })
  app.clock.advance(-3 * HOUR)
  const token = await app.tokenOf('ahead', client_secret)
  const { body } = await app.admin('POST', '/invitations', { delivery: 'link', roles: ['user'] }, token)
  // The administrator gets another token here, because the clock was moved.
  await app.admin('GET', `/invitations/${body.id}`)
  const { invitation_url } = await expectSent(body.id)
  expect((await openBrowser(app).get(invitation_url)).status).toBe(200)
})

test('PEO-46 a mail that waits is not sent once its maker may no longer invite', async () => {
  const maker = await addUser(app, 'former', { roles: ['admin'] })
  const { access_token: token } = await grantTokens(app, desk, maker, { scope: 'openid admin' })
  await deliverMails(app.context)
  const invitation = { delivery: 'mail', email: 'late@example.com', roles: ['user'] }
  const { status } = await app.admin('POST', '/invitations', invitation, token)
  expect(status).toBe(201)
  await app.admin('PUT', `/users/${maker.id}?confirm=former`, { roles: ['user'] })
  const before = await rows('invitations')
  mail.clear()
  await deliverMails(app.context)
  expect([mail.mails.map(({ to }) => to), await stored()]).toEqual([[], [before, []]])
})

test('PEO-46 a mail that waits is not sent once the invitation has expired', async () => {
  await deliverMails(app.context)
  const invitation = { delivery: 'mail', email: 'expired@example.com', roles: ['user'], expires_in: 3600 }
  await create(app, '/invitations', invitation)
  app.clock.advance(HOUR)
  const before = await rows('invitations')
  mail.clear()
  await deliverMails(app.context)
  expect([mail.mails.map(({ to }) => to), await stored()]).toEqual([[], [before, []]])
})

test.each([
  [false, [{ fields: ['email_verified'] }]],
  [true, []],
])('PEO-06 by mail verifies the address, which was verified before: %p', async (email_verified, changes) => {
  const { user } = await addInvited('mail', { email_verified })
  mail.clear()
  await deliverMails(app.context)
  const browser = openBrowser(app)
  const page = await browser.get(/http:\S+/.exec(mail.mails[0]?.text ?? '')?.[0] ?? '')
  await app.events()
  await sendForm(browser, page, 'password', { password: PASSWORD, password_repeat: PASSWORD })
  const updates = (await app.events()).filter(({ type }) => type === 'user.updated')
  expect(updates.map(({ metadata }) => metadata)).toEqual(changes)
  expect((await app.admin('GET', `/users/${user.id}`)).body.email_verified).toBe(true)
})

test('O-70 is neither sent nor withdrawn for a caller who lacks what it gives', async () => {
  const token = await callerOf(app, 'org_default', ['users:create', 'users:update', 'users:delete'])
  const invited = await addUser(app, 'chief', { roles: ['admin'], password: undefined, invite: 'link' })
  const { data } = (await app.admin('GET', '/invitations?order=desc&limit=1')).body
  const { id } = await create(app, '/invitations', { delivery: 'link', roles: ['admin'] })
  expect(data[0].user_id).toBe(invited.id)
  const before = await stored()
  await app.events()
  for (const invitation_id of [id, data[0].id])
    for (const [method, path] of [
      ['POST', `/invitations/${invitation_id}/resend`],
      ['DELETE', `/invitations/${invitation_id}`],
    ] as const) {
      const { status, body } = await app.admin(method, path, undefined, token)
      expect([method, status]).toEqual([method, 403])
      expect(body.error_description).toStartWith('The target has permissions that you lack: ')
    }
  expect(await stored()).toEqual(before)
  expect(await app.events()).toEqual([])
})
