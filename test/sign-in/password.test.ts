import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { setPassword } from '#src/directory/users/store.ts'
import { DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import { provePassword } from '#src/sign-in/password.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, logInTo, PASSWORD } from '#test/support/people.ts'
import { isPostgres } from '#test/support/store.ts'

const app = await startApp()
await addClient(app, 'web')
const dora = await addUser(app, 'dora')
await app.admin('PUT', `/users/${dora.id}`, { enabled: false })
const elsewhere = await addOrganization(app, 'elsewhere')
await addUser(app, 'foreign', { organization_id: elsewhere.id })
const without = await addUser(app, 'without')
await app.context.store.write(tx => {
  const { users } = tx.tables
  return tx.update(users).set({ password_hash: null }).where(eq(users.id, without.id))
})
let users = 0
const newUser = () => addUser(app, `user${++users}`)

const attempt = async (username: string, password: string, ip = '192.0.2.10', headers = {}) => {
  const browser = openBrowser(app, { ip, headers })
  return browser.submit(await browser.get(authorizeUrl('web')), { username, password })
}
const fail = async (times: number, username: string, ip?: string) => {
  for (let i = 0; i < times; i++) expect((await attempt(username, 'wrong', ip)).status).toBe(401)
}

let network = 0
/** Addresses that no other test has used. */
const newAddress = () => `10.1.${Math.floor(++network / 250)}.${(network % 250) + 1}`

describe('O-34 the same hashes are computed whoever is asked for', () => {
  const verify = spyOn(Bun.password, 'verify')
  afterEach(() => verify.mockClear())

  test.each([
    ['a right password', 'known', PASSWORD],
    ['a wrong one', 'known', 'wrong'],
    ['an unknown user', 'nobody', PASSWORD],
    ['a disabled user', 'dora', PASSWORD],
    ['a user of another organization', 'foreign', PASSWORD],
    ['somebody who has no password here', 'without', PASSWORD],
  ])('%s', async (_, username, password) => {
    if (username === 'known') await addUser(app, `known${password.length}`)
    verify.mockClear()
    await attempt(username === 'known' ? `known${password.length}` : username, password, newAddress())
    expect(verify).toHaveBeenCalledTimes(1)
    const [, hash] = verify.mock.calls[0] ?? []
    expect(String(hash)).toStartWith('$argon2id$v=19$m=64,t=1,p=1$')
  })

  test('none while the account or the address has to wait, or above 1,024 bytes', async () => {
    const { username } = await newUser()
    await fail(5, username, newAddress())
    verify.mockClear()
    expect((await attempt(username, PASSWORD, newAddress())).status).toBe(429)
    expect((await attempt('anybody', 'x'.repeat(1025), newAddress())).status).toBe(401)
    expect(verify).not.toHaveBeenCalled()
  })
})

/** Where a look at the count takes a round trip, some come in while the first four failures are being counted. */
const ABREAST = isPostgres ? 24 : 20

describe('O-35 an account', () => {
  test('is slowed down after five failures in a row, and the page says how long', async () => {
    const { username } = await newUser()
    await fail(5, username)
    await app.events()
    const blocked = await attempt(username, PASSWORD)
    expect([blocked.status, blocked.headers.get('retry-after')]).toEqual([429, '1'])
    expect(blocked.html).toMatch(/Too many attempts\. Wait 1\s+second, then try again\./)
    // Nobody was asked, so nothing counts.
    expect(await app.events()).toEqual([])
    app.clock.advance(SECOND)
    expect(answerOf(await attempt(username, PASSWORD)).code).toBeString()
  })

  test('waits twice as long each time, a minute at most, and attempt_count counts on', async () => {
    const { username } = await newUser()
    await fail(5, username, newAddress())
    const waits: number[] = []
    await app.events()
    for (let i = 0; i < 9; i++) {
      const wait = Number((await attempt(username, 'wrong', newAddress())).headers.get('retry-after'))
      waits.push(wait)
      app.clock.advance(wait * SECOND)
      await fail(1, username, newAddress())
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60])
    const counts = (await app.events()).map(({ metadata }) => metadata.attempt_count)
    expect(counts).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14])
  })

  test('is freed by its owner’s success', async () => {
    const { username } = await newUser()
    const ip = newAddress()
    await fail(4, username, ip)
    expect((await attempt(username, PASSWORD, ip)).status).toBe(302)
    await fail(4, username, ip)
    expect((await attempt(username, PASSWORD, ip)).status).toBe(302)
  })

  test('has one budget under both its names, and nobody learns that they are one', async () => {
    const { id, username, email } = await newUser()
    await fail(3, username, newAddress())
    await fail(2, email, newAddress())
    await app.events()
    // Neither name has to wait, and the right password is as wrong as any: the hash is computed, the answer the same.
    const verify = spyOn(Bun.password, 'verify')
    verify.mockClear()
    const [held, stranger] = [
      await attempt(email, PASSWORD, newAddress()),
      await attempt('stranger', PASSWORD, newAddress()),
    ]
    expect(verify).toHaveBeenCalledTimes(2)
    expect([held.status, held.heading]).toEqual([401, stranger.heading])
    expect([...held.headers.keys()]).toEqual([...stranger.headers.keys()])
    expect(
      (await app.events()).map(({ target_id, metadata }) => [target_id, metadata.failure_reason]),
    ).toEqual([
      [id, 'throttled'],
      ['', 'unknown_user'],
    ])
    app.clock.advance(SECOND)
    expect((await attempt(email, PASSWORD, newAddress())).status).toBe(302)
  })

  test('counts each name by itself as well: one that has to wait says nothing of the other', async () => {
    const { username, email } = await newUser()
    await fail(5, username.toUpperCase(), newAddress())
    expect((await attempt(username, 'wrong', newAddress())).status).toBe(429)
    await fail(4, email, newAddress())
    // What was held was not looked at, so it does not make the person wait longer.
    app.clock.advance(SECOND)
    expect((await attempt(email, PASSWORD, newAddress())).status).toBe(302)
  })

  test('writes as many rows for a name that is nobody’s', async () => {
    const { username } = await newUser()
    const count = async () =>
      (await app.context.store.read(async q => q.select().from(q.tables.throttles))).length
    const made: number[] = []
    for (const name of [username, 'nobody-of-that-name']) {
      const before = await count()
      await fail(1, name, newAddress())
      made.push((await count()) - before)
    }
    expect(made).toEqual([3, 3])
  })

  test('lets its owner in by either name where they have signed in before, whatever strangers do', async () => {
    const { username, email } = await newUser()
    const home = newAddress()
    await attempt(username, PASSWORD, home)
    await fail(5, username, newAddress())
    expect((await attempt(email, PASSWORD, home)).status).toBe(302)
  })

  test('that does not exist is slowed down alike', async () => {
    await fail(5, 'no-such-user', newAddress())
    expect((await attempt('no-such-user', 'wrong', newAddress())).status).toBe(429)
  })

  test('is never closed to its owner by strangers: where they have signed in before, they go on', async () => {
    const { username } = await newUser()
    const home = newAddress()
    await attempt(username, PASSWORD, home)
    for (let i = 0; i < 100; i++) {
      await attempt(username, `guess ${i}`, newAddress())
      if (i % 10 === 0) app.clock.advance(MINUTE)
    }
    expect((await attempt(username, PASSWORD, newAddress())).status).toBe(429)
    expect((await attempt(username, PASSWORD, home)).status).toBe(302)
  })

  test('is slowed down where its owner has signed in before, too', async () => {
    const { username } = await newUser()
    const home = newAddress()
    await attempt(username, PASSWORD, home)
    await fail(5, username, home)
    expect((await attempt(username, PASSWORD, home)).status).toBe(429)
  })

  test('is not known there any more after 30 days', async () => {
    const { username } = await newUser()
    const home = newAddress()
    await attempt(username, PASSWORD, home)
    app.clock.advance(30 * DAY)
    await fail(5, username, newAddress())
    expect((await attempt(username, PASSWORD, home)).status).toBe(429)
  })

  test('parallel guesses do not outrun the count', async () => {
    const { username } = await newUser()
    const credentials = {
      organization_id: 'org_default',
      identifier: username,
      password: 'wrong',
      origin: { ip_address: newAddress(), user_agent: '' },
    } as const
    const proofs = await Promise.all(
      Array.from({ length: 200 }, () => provePassword(app.context, credentials)),
    )
    const looked = proofs.filter(({ refusal }) => refusal?.code === 'invalid_credentials')
    expect(looked.length).toBeLessThanOrEqual(ABREAST)
  })

  test('nor do they under both names: no more are looked at than under one', async () => {
    const { username, email } = await newUser()
    await app.events()
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        provePassword(app.context, {
          organization_id: 'org_default',
          identifier: i % 2 ? username : email,
          password: 'wrong',
          origin: { ip_address: newAddress(), user_agent: '' },
        }),
      ),
    )
    const reasons = (await app.events()).map(({ metadata }) => metadata.failure_reason)
    expect(reasons.filter(reason => reason === 'wrong_password').length).toBeLessThanOrEqual(ABREAST)
  })
})

describe('O-35 an address', () => {
  test('that tries many accounts waits a minute after 50 failures in 5 minutes', async () => {
    const ip = newAddress()
    for (let i = 0; i < 50; i++) await fail(1, `spray${i}`, ip)
    const { username } = await newUser()
    const blocked = await attempt(username, PASSWORD, ip)
    expect([blocked.status, blocked.headers.get('retry-after')]).toEqual([429, '60'])
    expect((await attempt(username, PASSWORD, newAddress())).status).toBe(302)
    app.clock.advance(MINUTE)
    expect((await attempt(username, PASSWORD, ip)).status).toBe(302)
  })

  test('is a /64 for IPv6, and IPv4 in whatever spelling', async () => {
    for (let i = 0; i < 50; i++) await fail(1, `rotate${i}`, `2001:db8:7:7::${(i + 1).toString(16)}`)
    expect((await attempt('rotate', 'wrong', '2001:db8:7:7:ffff::1')).status).toBe(429)
    expect((await attempt('rotate', 'wrong', '2001:db8:7:8::1')).status).toBe(401)
    for (let i = 0; i < 50; i++) await fail(1, `mapped${i}`, i % 2 ? '::ffff:198.51.100.7' : '198.51.100.7')
    expect((await attempt('mapped', 'wrong', '198.51.100.7')).status).toBe(429)
  })

  test('is not what X-Forwarded-For says, unless a trusted proxy says it', async () => {
    const ip = newAddress()
    for (let i = 0; i < 50; i++)
      await attempt(`forged${i}`, 'wrong', ip, { 'x-forwarded-for': `203.0.113.${i}` })
    expect((await attempt('forged', 'wrong', ip, { 'x-forwarded-for': '203.0.113.99' })).status).toBe(429)
  })
})

describe('O-61 at the login page', () => {
  const long = `Aa1!${'x'.repeat(1000)}`
  test.each([
    ['NFC and NFD are one', 'Pass\u00e9-w0rd', 'Passe\u0301-w0rd', 'Passe-w0rd'],
    ['bytes after the 72nd count', `${long}a`, `${long}a`, `${long}b`],
    ['spaces at the ends are kept', ' Spac3d-out ', ' Spac3d-out ', 'Spac3d-out'],
  ])('%s', async (_, chosen, right, wrong) => {
    const { username } = await addUser(app, `user${++users}`, { password: chosen })
    const ip = newAddress()
    expect((await attempt(username, wrong, ip)).status).toBe(401)
    expect((await attempt(username, right, ip)).status).toBe(302)
  })
})

test('counts and waits are kept in the database, without names or passwords', async () => {
  const { username } = await newUser()
  await fail(1, username, newAddress())
  const rows = await app.context.store.read(async q => q.select().from(q.tables.throttles))
  expect(rows.length).toBeGreaterThan(0)
  expect(JSON.stringify(rows)).not.toContain(username)
})

test('the password is hashed anew at a login once the settings ask for more', async () => {
  const user = await newUser()
  const hash = async () => {
    const rows = await app.context.store.read(async q => q.select().from(q.tables.users))
    return rows.find(({ id }) => id === user.id)?.password_hash ?? ''
  }
  const before = await hash()
  await attempt(user.username, PASSWORD, newAddress())
  expect(await hash()).toBe(before)
  const { config } = app.context
  config.argon2_memory = 128
  await attempt(user.username, PASSWORD, newAddress())
  expect(await hash()).toStartWith('$argon2id$v=19$m=128,')
  await logInTo(openBrowser(app), 'web', user.username)
  config.argon2_memory = 64
})

test('a password that is reset while it is being verified opens nothing', async () => {
  const user = await newUser()
  const verify = spyOn(Bun.password, 'verify').mockImplementationOnce(async () => {
    const now = app.clock.now() + 1
    await app.context.store.write(tx =>
      setPassword(tx, user.id, {
        password_hash: 'of another password',
        password_temporary: false,
        password_changed_at: now,
        updated_at: now,
      }),
    )
    return true
  })
  const page = await attempt(user.username, PASSWORD, newAddress())
  verify.mockRestore()
  expect([page.status, page.location]).toEqual([400, undefined])
  const logins = await app.context.store.read(async q => q.select().from(q.tables.logins))
  expect(logins.filter(({ user_id }) => user_id === user.id)).toEqual([])
})

test('a full queue of hashes is said on the page', async () => {
  const held = Promise.withResolvers<boolean>()
  const verify = spyOn(Bun.password, 'verify').mockImplementation(() => held.promise)
  const flood = Array.from({ length: 500 }, (_, i) => attempt(`flood${i}`, 'x', newAddress()))
  const busy = await Promise.race(
    flood.map(async page => ((await page).status === 503 ? page : new Promise<never>(() => {}))),
  )
  expect(busy.headers.get('retry-after')).toBe('2')
  expect(busy.html).toContain('Many people are signing in right now')
  held.resolve(false)
  await Promise.all(flood)
  verify.mockRestore()
})
