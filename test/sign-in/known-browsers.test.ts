import { beforeEach, expect, test } from 'bun:test'
import { touchDevice } from '#src/directory/users/device-store.ts'
import { HOUR } from '#src/lib/duration.ts'
import { hashSecret, newSecret, type SecretHash } from '#src/lib/secrets.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { linkWith } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, logInTo, PASSWORD } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
await addClient(app, 'web')
const NEW = 'Another-horse-8'
let made = 0

const post = async () => {
  mail.clear()
  await deliverMails(app.context)
  return mail.mails.map(({ subject }) => subject)
}

/** Tries a wrong password and returns the status. */
const guess = async (browser: Browser, username: string) =>
  (
    await browser.submit(await browser.get(authorizeUrl('web', { prompt: 'login' })), {
      username,
      password: 'wrong',
    })
  ).status

/** Returns a user, and four browsers in which the user has signed in. Two of them belong to a thief. */
const known = async () => {
  const user = await addUser(app, `user${++made}`)
  const ip = `203.0.113.${made}`
  const [own, other, thief, second] = [ip, ip, '192.0.2.66', '192.0.2.66'].map(from =>
    openBrowser(app, { ip: from }),
  ) as [Browser, Browser, Browser, Browser]
  for (const browser of [own, other, thief, second]) await logInTo(browser, 'web', user.username)
  await post()
  return { user, own, other, thief, second }
}

const devicesOf = async (id: string) =>
  (await app.context.store.read(async q => q.select().from(q.tables.devices))).filter(
    ({ user_id }) => user_id === id,
  )

type World = Awaited<ReturnType<typeof known>>

const byOwner: Record<string, (world: World) => Promise<unknown>> = {
  'changes the password': async ({ own }) =>
    own.submit(await own.get('/account/change-password'), {
      current_password: PASSWORD,
      password: NEW,
      password_repeat: NEW,
    }),
  'chooses a password by mail': async ({ own, user }) => {
    await app.admin('PUT', `/users/${user.id}`, { email_verified: true })
    const login = await own.get(authorizeUrl('web', { prompt: 'login' }))
    await own.submit(await own.get(linkWith(login, '/oauth/reset-password')), { username: user.username })
    await post()
    const url = /http:\S+/.exec(mail.mails[0]?.text ?? '')?.[0] ?? ''
    return own.submit(await own.get(url), { password: NEW, password_repeat: NEW })
  },
  'signs out everywhere else': async ({ own }) =>
    own.submit(await own.get('/account'), {}, '/account/logins/others'),
}

const byAdmin: Record<string, (world: World) => Promise<unknown>> = {
  'sets a password': ({ user }) =>
    app.admin('POST', `/users/${user.id}/reset-password`, { password: NEW, temporary: false }),
  'ends the sessions': ({ user }) => app.admin('DELETE', `/users/${user.id}/sessions`),
}

beforeEach(() => {
  app.clock.advance(25 * HOUR)
})

test.each(Object.entries(byOwner))(
  'PEO-47 only this browser stays known when the user %s',
  async (_, act) => {
    const world = await known()
    const { user, own, thief, second } = world
    await act(world)
    expect(await devicesOf(user.id)).toHaveLength(1)
    await app.events()
    for (let count = 0; count < 5; count++) expect(await guess(thief, user.username)).toBe(401)
    expect([await guess(thief, user.username), await guess(second, user.username)]).toEqual([429, 429])
    expect(await guess(own, user.username)).toBe(401)
    expect((await app.events()).map(({ type }) => type)).toEqual(Array(6).fill('user.login_failed'))
  },
)

test.each(Object.entries(byAdmin))(
  'PEO-47 no browser stays known when an administrator %s',
  async (_, act) => {
    const world = await known()
    await act(world)
    expect(await devicesOf(world.user.id)).toEqual([])
  },
)

test('PEO-47 a browser that is forgotten causes a notice at its next login, and is known again', async () => {
  const { user, own, other } = await known()
  await own.submit(await own.get('/account'), {}, '/account/logins/others')
  expect(await post()).toEqual([])
  await logInTo(other, 'web', user.username)
  await logInTo(other, 'web', user.username, { prompt: 'login' })
  expect(await post()).toEqual(['New sign-in to Gatehouse'])
  expect(await devicesOf(user.id)).toHaveLength(2)
  await app.admin('DELETE', `/users/${user.id}/sessions`)
  await logInTo(own, 'web', user.username)
  expect(await post()).toEqual(['New sign-in to Gatehouse'])
})

test('PEO-47 an administrator of another organization forgets no browser', async () => {
  const { user } = await known()
  const { id } = await addOrganization(app, `far-${made}`)
  const answer = await app.admin('DELETE', `/sessions?user_id=${user.id}&organization_id=${id}`)
  expect(answer.status).toBe(200)
  expect(await devicesOf(user.id)).toHaveLength(4)
})

test('of a user’s browsers the latest 50 are kept, and a browser of two users is kept for the other', async () => {
  const [first, second] = [await addUser(app, 'many'), await addUser(app, 'few')]
  const shared = hashSecret(newSecret())
  const touch = (user: Json, device_hash: SecretHash, last_seen_at: number) =>
    app.context.store.write(tx => touchDevice(tx, { user_id: user.id, device_hash, last_seen_at }))
  for (const user of [first, second]) await touch(user, shared, 1)
  for (let seen = 2; seen < 52; seen++) await touch(first, hashSecret(newSecret()), seen)
  const kept = (await devicesOf(first.id)).map(({ last_seen_at }) => last_seen_at)
  expect(kept.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i + 2))
  expect(await devicesOf(second.id)).toMatchObject([{ device_hash: shared }])
})
