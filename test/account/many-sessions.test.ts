import { expect, test } from 'bun:test'
import { newId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { createSession } from '#src/sessions/store.ts'
import { startApp } from '#test/support/app.ts'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { addClient, addUser, PASSWORD, signIn } from '#test/support/people.ts'

const app = await startApp()
const { store } = app.context
await addClient(app, 'spa', { type: 'public', token_endpoint_auth_method: 'none' })
const MANY = 1_300
let users = 0

/** Returns the browser of a new user who has many sessions. */
const withSessions = async () => {
  const user = await addUser(app, `user${++users}`)
  const browser = openBrowser(app)
  await browser.follow(await signIn(browser, await browser.get('/account'), user.username))
  const now = app.clock.now()
  const [login] = await store.read(q => q.select().from(q.tables.logins)).then(rows => rows.slice(-1))
  const session = {
    ...{ user_id: user.id, client_id: 'spa', organization_id: user.organization_id, scope: 'openid' },
    ...{ ip_address: '192.0.2.1', user_agent: 'test', location: '', refresh_hash: null, ends_by: null },
    ...{ login_id: login?.id ?? newId('login', now), started_at: now, expires_at: now + 3_600_000 },
  }
  await store.write(async tx => {
    for (let i = 0; i < MANY; i++) await createSession(tx, { ...session, id: newId('sess', now) })
  })
  await app.events()
  return { user, browser }
}
const activeOf = ({ id }: { id: string }) =>
  store.read(async q => {
    const rows = await q.select().from(q.tables.sessions)
    return rows.filter(({ user_id, ended_at }) => user_id === id && ended_at === null).length
  })

/** Runs `work` and returns the number of writes. */
const writesOf = async (work: () => Promise<unknown>): Promise<number> => {
  let writes = 0
  const { write } = store
  store.write = body => {
    writes++
    return write.call(store, body) as ReturnType<typeof body>
  }
  await work()
  store.write = write
  return writes
}

/** Each way has at least two writes of 500 sessions before its own write. */
test.each<[name: string, reason: string, end: (browser: Browser) => Promise<unknown>]>([
  [
    'sign-out',
    'logout',
    async browser => browser.submit(await browser.get('/account'), {}, '/account/logout'),
  ],
  [
    'sign-out at an application',
    'logout',
    async browser => browser.submit(await browser.get('/oauth/logout'), {}, '/oauth/logout'),
  ],
  [
    'disconnection of the application',
    'consent_withdrawn',
    async browser =>
      browser.submit(
        await browser.get('/account/applications'),
        { client_id: 'spa' },
        '/account/applications/disconnect',
      ),
  ],
  [
    'change of the password',
    'password_changed',
    async browser => {
      const page = await browser.get('/account/change-password')
      const password = 'Another-horse-8'
      return browser.submit(page, { current_password: PASSWORD, password, password_repeat: password })
    },
  ],
])('other requests run while many sessions end: %s', async (_, reason, end) => {
  const { user, browser } = await withSessions()
  expect(await writesOf(() => end(browser))).toBeGreaterThan(2)
  expect(await activeOf(user)).toBe(0)
  const ended = (await app.events()).filter(({ type }) => type === 'session.revoked')
  expect(ended.map(({ metadata }) => metadata.reason)).toEqual(Array(MANY).fill(reason))
})

test('other requests run while the logins in many other browsers end', async () => {
  const user = await addUser(app, 'many')
  const browser = openBrowser(app)
  await browser.follow(await signIn(browser, await browser.get('/account'), user.username))
  const loginsOf = async () =>
    (await store.read(q => q.select().from(q.tables.logins))).filter(({ user_id }) => user_id === user.id)
  const [own] = await loginsOf()
  if (!own) throw new Error('the user has no login')
  const others = Array.from({ length: 120 }, () => ({
    ...own,
    id: newId('login', app.clock.now()),
    browser_hash: hashSecret(newSecret()),
  }))
  await store.write(tx => tx.insert(tx.tables.logins).values(others))
  await app.events()
  const page = await browser.get('/account')
  expect(await writesOf(() => browser.submit(page, {}, '/account/logins/others'))).toBe(4)
  expect(await loginsOf()).toEqual([own])
  const signedOut = (await app.events()).filter(({ type }) => type === 'user.logout')
  expect(signedOut).toHaveLength(120)
})
