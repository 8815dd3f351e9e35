import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { listAccounts, removeAccount } from '#src/directory/identity-providers/account-store.ts'
import type { UserId } from '#src/lib/ids.ts'
import { captureMail } from '#src/mail/captured.ts'
import { enrolTotp, linkWith, openEnrolment } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'
import { startLinking } from './linking-world.ts'
import { addProvider, atUpstream, goThrough, pathOf } from './upstream.ts'

const { app, upstream, honest, fresh, somebody, entry, usersBy, accountsOf, refusal } = await startLinking({
  mail: captureMail(),
})

afterEach(honest)

let made = 0
/** Adds a provider for one test. */
const own = async (more = {}): Promise<string> => {
  const alias = `own-${++made}`
  await addProvider(app, alias, { client_id: alias, ...more })
  return alias
}

/** Runs `change` while the server waits for the provider's tokens. */
const during = (change: () => Promise<unknown>): void => {
  upstream.intercept = async request => {
    if (new URL(request.url).pathname !== '/token') return undefined
    await change()
    return undefined
  }
}

const loginsOf = async (user_id: string) =>
  (await app.context.store.read(async q => q.select().from(q.tables.logins))).filter(
    login => login.user_id === user_id,
  )

const changes: [string, (alias: string) => Promise<unknown>][] = [
  ['disabled', alias => app.admin('PUT', `/identity-providers/${alias}`, { enabled: false })],
  ['deleted', alias => app.admin('DELETE', `/identity-providers/${alias}`)],
  [
    'moved to another issuer',
    async alias => {
      app.clock.advance(1)
      const issuer = { issuer: 'https://repaired.example', client_secret: 'another-secret' }
      return app.admin('PUT', `/identity-providers/${alias}`, issuer)
    },
  ],
]

test.each(changes)('FED-19 a provider that is %s amid a login signs nobody in', async (_, change) => {
  const alias = await own()
  const who = somebody()
  await goThrough(fresh(), upstream, entry(alias), who)
  const [user] = await usersBy(who.email)
  const before = await loginsOf(user?.id)
  during(() => change(alias))
  await app.events()
  const page = await goThrough(fresh(), upstream, entry(alias), who)
  expect([page.status, page.heading]).toEqual([400, 'Signing in didn’t work'])
  expect(await loginsOf(user?.id)).toEqual(before)
  expect((await refusal()).map(([type, , reason]) => [type, reason]).slice(1)).toEqual([
    ['user.login_failed', 'provider_changed'],
  ])
})

test.each(changes)('FED-19 a provider that is %s amid a first login makes no user', async (_, change) => {
  const alias = await own()
  const who = somebody()
  during(() => change(alias))
  const page = await goThrough(fresh(), upstream, entry(alias), who)
  expect([page.status, page.heading]).toEqual([400, 'Signing in didn’t work'])
  expect(await usersBy(who.email)).toEqual([])
})

test.each([
  ['off', 'approval'],
  ['approval', 'off'],
])('PEO-10 registration that changes from %s to %s amid a first login makes no user', async (old, now) => {
  const allow = (registration: string) =>
    app.admin('PUT', '/organizations/default', { settings: { registration } })
  await allow(old)
  const who = somebody()
  during(() => allow(now))
  const page = await goThrough(fresh(), upstream, entry(await own()), who)
  expect([page.status, page.heading]).toEqual([400, 'This page has expired'])
  expect(await usersBy(who.email)).toEqual([])
  await allow('off')
})

test.each(changes)('FED-19 a form after a callback ends when the provider is %s', async (_, change) => {
  const alias = await own()
  const who = somebody()
  const user = await addUser(app, who.sub)
  const browser = fresh()
  const asked = await goThrough(browser, upstream, entry(alias), who)
  await change(alias)
  await app.events()
  const page = await browser.submit(asked, { password: PASSWORD })
  expect([page.status, page.heading]).toEqual([400, 'This page has expired'])
  expect(await accountsOf(user.id)).toEqual([])
  expect((await refusal()).map(([type]) => type)).toEqual([])
})

/** Runs `change` right before the write that ends the callback. */
const beforeLastWrite = (change: () => Promise<unknown>): void =>
  during(async () => {
    const { store } = app.context
    const write = store.write.bind(store)
    const spy = spyOn(store, 'write').mockImplementationOnce((async (body: Parameters<typeof write>[0]) => {
      spy.mockRestore()
      await change()
      return write(body)
    }) as typeof write)
  })

const unlinkAll = (user_id: UserId) =>
  app.context.store.write(async tx => {
    for (const { account } of await listAccounts(tx, user_id)) await removeAccount(tx, account)
  })

test('FED-20 an account that is unlinked while a login through it begins signs nobody in', async () => {
  const who = somebody()
  await goThrough(fresh(), upstream, entry('asking'), who)
  const [user] = await usersBy(who.email)
  const before = await loginsOf(user?.id)
  beforeLastWrite(() => unlinkAll(user?.id))
  const page = await goThrough(fresh(), upstream, entry('asking'), who)
  expect([page.status, page.heading]).toEqual([400, 'This page has expired'])
  expect(await loginsOf(user?.id)).toEqual(before)
})

/** Links the accounts of a user to a new user. */
const passOn = async (of: UserId) => {
  const { id: user_id } = await addUser(app, somebody().sub)
  await app.context.store.write(async tx => {
    const { external_accounts: t } = tx.tables
    await tx.update(t).set({ user_id }).where(eq(t.user_id, of))
  })
}

/** Returns a signed-in user who is linking an account. `back` is the callback with the provider's answer. */
const linking = async (alias: string) => {
  const { sub } = somebody()
  const user = await addUser(app, sub)
  const browser = fresh()
  const page = await signIn(browser, await browser.get('/account'), sub)
  const { csrf_token = '' } = page.forms[0]?.fields ?? {}
  const away = await browser.follow(
    await browser.post('/account/identities/link', { csrf_token, provider: alias }),
  )
  return { user, browser, back: pathOf(await atUpstream(upstream, away.location ?? '', somebody())) }
}

test.each(changes)('FED-19 a provider that is %s amid a link links no account', async (_, change) => {
  const alias = await own()
  const { user, browser, back } = await linking(alias)
  beforeLastWrite(() => change(alias))
  await app.events()
  expect((await browser.get(back)).status).toBe(400)
  expect((await refusal()).at(-1)?.[2]).toBe('provider_changed')
  expect(await accountsOf(user.id)).toEqual([])
})

test('FED-20 an account is not linked by a login that ends at the same time', async () => {
  const { user, browser, back } = await linking('asking')
  beforeLastWrite(() => app.admin('DELETE', `/users/${user.id}/sessions`))
  await app.events()
  expect((await browser.get(back)).status).toBe(400)
  expect((await refusal()).at(-1)?.[2]).toBe('not_logged_in')
  expect(await accountsOf(user.id)).toEqual([])
})

test('FED-20 an account is not linked by a login that lacks the second factor that was added', async () => {
  const { user, browser: thief, back } = await linking('asking')
  const owner = fresh()
  await enrolTotp(app, owner, await openEnrolment(owner, user.username))
  await app.events()
  expect((await thief.get(back)).status).toBe(400)
  expect((await refusal()).map(([, , reason]) => reason)).toEqual(['not_logged_in'])
  expect(await accountsOf(user.id)).toEqual([])
})

describe('FED-20 a login that waits for the second factor', () => {
  /**
   * Signs in at the provider as a user without a second factor. Returns the page that asks the user to add a
   * factor.
   */
  const waiting = async () => {
    const name = `strict-${made + 1}`
    const { id: organization_id } = await addOrganization(app, name, { settings: { mfa_required: true } })
    await addClient(app, name, { organization_id })
    const alias = await own({ organization_id })
    const at = authorizeUrl(name).replace('/oauth/authorize', `/oauth/social/${alias}`)
    const browser = fresh()
    const who = somebody()
    const step = await goThrough(browser, upstream, at, who)
    expect(step.heading).toBe('Protect your account')
    const [account] = (
      await app.context.store.read(async q => q.select().from(q.tables.external_accounts))
    ).slice(-1)
    await app.events()
    return { alias, user_id: account?.user_id as UserId, browser, step, who, at }
  }

  const ends: [string, (given: { alias: string; user_id: UserId }) => Promise<unknown>][] = [
    ['its provider is disabled', ({ alias }) => changes[0]?.[1](alias) as Promise<unknown>],
    ['its provider is deleted', ({ alias }) => changes[1]?.[1](alias) as Promise<unknown>],
    ['its provider is moved', ({ alias }) => changes[2]?.[1](alias) as Promise<unknown>],
    ['its account is unlinked', ({ user_id }) => unlinkAll(user_id)],
    ['its account is linked to another user', ({ user_id }) => passOn(user_id)],
  ]

  test.each(ends)('ends when %s, and adds no factor', async (_, end) => {
    const { browser, step, ...given } = await waiting()
    await end(given)
    const { page } = await enrolTotp(app, browser, step)
    expect([page.status, page.heading]).toEqual([400, 'This page has expired'])
    expect(await loginsOf(given.user_id)).toEqual([])
    const factors = await app.context.store.read(async q => q.select().from(q.tables.factors))
    expect(factors.filter(({ user_id }) => user_id === given.user_id)).toEqual([])
  })

  test.each(ends)('ends when %s, and stores no new password', async (_, end) => {
    const { alias, user_id, who, at } = await waiting()
    const temporary = { password: PASSWORD, temporary: true }
    await app.admin('POST', `/users/${user_id}/reset-password`, temporary)
    const browser = fresh()
    // A temporary password is replaced only after an authentication within the last minutes.
    const again = linkWith(await goThrough(browser, upstream, at, who), '/oauth/social/')
    const choice = await goThrough(browser, upstream, again, who)
    expect(choice.heading).toBe('Choose a new password')
    const given = { password: 'Another-horse-9', password_repeat: 'Another-horse-9' }
    const step = await browser.follow(await browser.submit(choice, given, '/oauth/change-password'))
    expect(step.heading).toBe('Protect your account')
    await end({ alias, user_id })
    await app.events()
    const { page } = await enrolTotp(app, browser, step)
    expect([page.status, page.heading]).toEqual([400, 'This page has expired'])
    expect(await loginsOf(user_id)).toEqual([])
    const users = await app.context.store.read(async q => q.select().from(q.tables.users))
    expect(users.find(({ id }) => id === user_id)?.password_temporary).toBe(true)
    expect(await app.events()).toEqual([])
  })

  test('begins when only the name of its provider changes', async () => {
    const { alias, user_id, browser, step } = await waiting()
    app.clock.advance(1)
    expect((await app.admin('PUT', `/identity-providers/${alias}`, { name: 'Renamed' })).status).toBe(200)
    await enrolTotp(app, browser, step)
    expect(await loginsOf(user_id)).toHaveLength(1)
  })
})
