import { expect, test } from 'bun:test'
import { newId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { createSession } from '#src/sessions/store.ts'
import { startApp } from '#test/support/app.ts'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { enrolTotp } from '#test/support/factors.ts'
import { addClient, addUser, PASSWORD, signIn } from '#test/support/people.ts'

const app = await startApp()
const { store } = app.context
const { write } = store
await addClient(app, 'spa', { type: 'public', token_endpoint_auth_method: 'none' })
const MANY = 1_300
let users = 0

/**
 * Returns the browser of a new user with many sessions. The sessions belong to the login in that browser, or
 * to a login that has ended.
 */
const withSessions = async (of: 'own' | 'ended' = 'own') => {
  const user = await addUser(app, `user${++users}`)
  const browser = openBrowser(app)
  await browser.follow(await signIn(browser, await browser.get('/account'), user.username))
  const now = app.clock.now()
  const [login] = await store.read(q => q.select().from(q.tables.logins)).then(rows => rows.slice(-1))
  const session = {
    ...{ user_id: user.id, client_id: 'spa', organization_id: user.organization_id, scope: 'openid' },
    ...{ ip_address: '192.0.2.1', user_agent: 'test', location: '', refresh_hash: null, ends_by: null },
    ...{ login_id: (of === 'own' && login?.id) || newId('login', now), expires_at: now + 3_600_000 },
  }
  const begin = (count: number) =>
    write.call(store, async tx => {
      const started_at = app.clock.now()
      for (let i = 0; i < count; i++)
        await createSession(tx, { ...session, id: newId('sess', now), started_at })
    })
  await begin(MANY)
  await app.events()
  return { user, browser, begin }
}
const activeOf = ({ id }: { id: string }) =>
  store.read(async q => {
    const rows = await q.select().from(q.tables.sessions)
    return rows.filter(({ user_id, ended_at }) => user_id === id && ended_at === null).length
  })

/** Runs `work` and returns the number of writes. `between` runs after each write. */
const writesOf = async (
  work: () => Promise<unknown>,
  between: (writes: number) => unknown = () => undefined,
): Promise<number> => {
  let writes = 0
  store.write = async body => {
    const done = (await write.call(store, body)) as Awaited<ReturnType<typeof body>>
    await between(++writes)
    return done
  }
  await work()
  store.write = write
  return writes
}

const changePassword = async (browser: Browser) => {
  const page = await browser.get('/account/change-password')
  const password = 'Another-horse-8'
  return browser.submit(page, { current_password: PASSWORD, password, password_repeat: password })
}

/**
 * Each request makes at least two writes that end 500 sessions each, and then one write for its own change.
 */
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
  ['change of the password', 'password_changed', changePassword],
])('other requests run while many sessions end: %s', async (_, reason, end) => {
  const { user, browser } = await withSessions()
  expect(await writesOf(() => end(browser))).toBeGreaterThan(2)
  expect(await activeOf(user)).toBe(0)
  const ended = (await app.events()).filter(({ type }) => type === 'session.revoked')
  expect(ended.map(({ metadata }) => metadata.reason)).toEqual(Array(MANY).fill(reason))
})

test('other requests run while the removal of a factor ends many sessions', async () => {
  const { user, browser } = await withSessions('ended')
  await enrolTotp(app, browser, await browser.follow(await browser.get('/account/security/add')))
  const page = await browser.get('/account/security')
  await app.events()
  expect(await writesOf(() => browser.submit(page, {}, '/account/security/remove'))).toBe(3)
  expect(await activeOf(user)).toBe(0)
  const ended = (await app.events()).filter(({ type }) => type === 'session.revoked')
  expect(ended.map(({ metadata }) => metadata.reason)).toEqual(Array(MANY).fill('factor_removed'))
})

test('sessions that begin meanwhile do not delay a change of the password, and end with it', async () => {
  const { user, browser, begin } = await withSessions()
  const writes = await writesOf(
    () => changePassword(browser),
    async count => {
      app.clock.advance(1)
      if (count > 1 && count < 9 && (await activeOf(user)) > 0) await begin(600)
    },
  )
  // The first write records the correct password. Two writes end 500 sessions each, and the last write ends
  // the other sessions.
  expect(writes).toBe(4)
  expect(await activeOf(user)).toBe(0)
})

/** Signs in a new user in 121 browsers and returns one of the browsers. */
const withLogins = async () => {
  const user = await addUser(app, `user${++users}`)
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
  const insert = (rows: typeof others) => write.call(store, tx => tx.insert(tx.tables.logins).values(rows))
  await insert(others)
  await app.events()
  const begin = () => insert([{ ...own, id: newId('login', app.clock.now()) }])
  return { browser, own, loginsOf, begin }
}
const logouts = async () => (await app.events()).filter(({ type }) => type === 'user.logout').length

test('other requests run while the logins in many other browsers end', async () => {
  const { browser, own, loginsOf } = await withLogins()
  const page = await browser.get('/account')
  expect(await writesOf(() => browser.submit(page, {}, '/account/logins/others'))).toBe(4)
  expect(await loginsOf()).toEqual([own])
  expect(await logouts()).toBe(120)
})

test('a login that begins meanwhile ends, too, and its logout is recorded', async () => {
  const { browser, own, loginsOf, begin } = await withLogins()
  const page = await browser.get('/account')
  await writesOf(
    () => browser.submit(page, {}, '/account/logins/others'),
    count => (count === 2 ? begin() : undefined),
  )
  expect(await loginsOf()).toEqual([own])
  expect(await logouts()).toBe(121)
})

test('two requests at once that end the same logins record each logout once', async () => {
  const { browser, own, loginsOf } = await withLogins()
  const account = await browser.get('/account')
  const endOthers = () => browser.submit(account, {}, '/account/logins/others')
  await Promise.all([endOthers(), endOthers()])
  expect(await loginsOf()).toEqual([own])
  expect(await logouts()).toBe(120)
  const page = await browser.get('/oauth/logout')
  const signOut = () => browser.submit(page, {}, '/oauth/logout')
  await Promise.all([signOut(), signOut()])
  expect(await loginsOf()).toEqual([])
  expect(await logouts()).toBe(1)
})
