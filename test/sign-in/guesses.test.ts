import { describe, expect, spyOn, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import { proveByName, provePassword } from '#src/sign-in/password.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, logInTo, PASSWORD } from '#test/support/people.ts'
import { until } from '#test/support/until.ts'

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
/** Returns an IP address that no other test has used. */
const newAddress = () => `10.1.${Math.floor(++network / 250)}.${(network % 250) + 1}`

const guessOf = (identifier: string, ip_address: string) =>
  ({
    organization_id: 'org_default',
    identifier,
    password: 'wrong',
    client_info: { ip_address, user_agent: '' },
  }) as const

/** Number of guesses that are checked in a burst, regardless of how the requests overlap. */
const CONCURRENT = 20

describe('O-35 an account', () => {
  test('is throttled after five failures in a row, and the page says for how long', async () => {
    const { username } = await newUser()
    await fail(5, username)
    await app.events()
    const blocked = await attempt(username, PASSWORD)
    expect([blocked.status, blocked.headers.get('retry-after')]).toEqual([429, '60'])
    expect(blocked.html).toMatch(/Too many attempts\. Wait 60\s+seconds, then try again\./)
    // No password was checked, so no attempt counts.
    expect(await app.events()).toEqual([])
    app.clock.advance(SECOND)
    expect(answerOf(await attempt(username, PASSWORD)).code).toBeString()
  })

  test('PWD-04 the wait doubles each time, to a minute at most, and attempt_count continues', async () => {
    const { username } = await newUser()
    const ip = newAddress()
    await fail(5, username, ip)
    await app.events()
    for (const wait of [1, 2, 4, 8, 16, 32, 60, 60, 60]) {
      app.clock.advance(wait * SECOND - 1)
      const { status, headers } = await attempt(username, 'wrong', ip)
      expect([wait, status, headers.get('retry-after')]).toEqual([wait, 429, '60'])
      app.clock.advance(1)
      await fail(1, username, ip)
    }
    const counts = (await app.events()).map(({ metadata }) => metadata.attempt_count)
    expect(counts).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14])
  })

  test('is released when its owner signs in', async () => {
    const { username } = await newUser()
    const ip = newAddress()
    await fail(4, username, ip)
    expect((await attempt(username, PASSWORD, ip)).status).toBe(302)
    await fail(4, username, ip)
    expect((await attempt(username, PASSWORD, ip)).status).toBe(302)
  })

  test('has one budget for its user name and address, without revealing that they belong together', async () => {
    const { id, username, email } = await newUser()
    const ip = newAddress()
    await fail(3, username, ip)
    await fail(2, email, ip)
    await app.events()
    // Neither name has to wait, but both names have used up their shared budget. The right password therefore
    // gets the same answer as an unknown name. One hash is verified for each of the two attempts.
    const verify = spyOn(Bun.password, 'verify')
    verify.mockClear()
    const [held, stranger] = [await attempt(email, PASSWORD, ip), await attempt('stranger', PASSWORD, ip)]
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
    expect((await attempt(email, PASSWORD, ip)).status).toBe(302)
  })

  test('counts each name separately too: the wait of one does not reveal the other', async () => {
    const { username, email } = await newUser()
    const ip = newAddress()
    await fail(5, username.toUpperCase(), ip)
    expect((await attempt(username, 'wrong', ip)).status).toBe(429)
    await fail(4, email, ip)
    // A throttled attempt is not checked, so it does not lengthen the wait.
    app.clock.advance(SECOND)
    expect((await attempt(email, PASSWORD, ip)).status).toBe(302)
  })

  test('an unknown name writes as many rows as a known name', async () => {
    const { username } = await newUser()
    const count = async () =>
      (await app.context.store.read(async q => q.select().from(q.tables.throttles))).length
    const made: number[] = []
    for (const name of [username, 'nobody-of-that-name']) {
      const before = await count()
      await fail(1, name, newAddress())
      made.push((await count()) - before)
    }
    expect(made).toEqual([5, 5])
  })

  test('an unknown name is throttled in the same way', async () => {
    const ip = newAddress()
    await fail(5, 'no-such-user', ip)
    expect((await attempt('no-such-user', 'wrong', ip)).status).toBe(429)
  })

  test('parallel guesses do not get past the count', async () => {
    const { username } = await newUser()
    const credentials = guessOf(username, newAddress())
    const proofs = await Promise.all(
      Array.from({ length: 200 }, () => provePassword(app.context, credentials)),
    )
    const looked = proofs.filter(({ refusal }) => refusal?.code === 'invalid_credentials')
    expect(looked.length).toBeLessThanOrEqual(CONCURRENT)
  })

  test('an attempt counts the failures that came after it read the count', async () => {
    const { username } = await newUser()
    const ip_address = newAddress()
    const { context } = app
    const { store } = context
    const failed = Promise.withResolvers<void>()
    let reads = 0
    // The first read of the attempt takes place before the failures. The result of this read arrives after
    // the failures.
    const slow = Object.assign(Object.create(store), {
      read: async <T>(run: Parameters<typeof store.read<T>>[0]) => {
        const found = await store.read(run)
        if (++reads === 1) await failed.promise
        return found
      },
    })
    const late = provePassword({ ...context, store: slow }, guessOf(username, ip_address))
    await fail(5, username, ip_address)
    await app.events()
    failed.resolve()
    expect((await late).refusal).toMatchObject({ code: 'throttled', status: 429 })
    expect(await app.events()).toEqual([])
  })

  test('an attempt counts another attempt that fails while the first one reads the count', async () => {
    const { username } = await newUser()
    const guess = guessOf(username, newAddress())
    const { context } = app
    const { store } = context
    const prove = (of: typeof context, checked: () => Promise<void>) =>
      proveByName(of, guess, { work: 'hash', check: () => checked().then(() => 'wrong_password') })
    let begun = 0
    const others = Array.from({ length: CONCURRENT }, () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const proof = prove(context, () => {
        begun++
        return promise
      })
      return { proof, resolve }
    })
    await until(() => begun === CONCURRENT)
    const end = async (i: number) => {
      others[i]?.resolve()
      expect((await others[i]?.proof)?.refusal).toMatchObject({ code: 'invalid_credentials' })
    }
    // The results of the first two reads arrive late. Between such a read and its result, another attempt
    // fails.
    let reads = 0
    const slow = Object.assign(Object.create(store), {
      read: async <T>(run: Parameters<typeof store.read<T>>[0]) => {
        const found = await store.read(run)
        if (reads < 2) await end(reads++)
        return found
      },
    })
    const { refusal } = await prove({ ...context, store: slow }, async () => {})
    expect(refusal).toMatchObject({ code: 'throttled' })
    for (let i = 2; i < CONCURRENT; i++) await end(i)
  })

  test('both names together get no more attempts checked than one name', async () => {
    const { username, email } = await newUser()
    const ip_address = newAddress()
    await app.events()
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        provePassword(app.context, guessOf(i % 2 ? username : email, ip_address)),
      ),
    )
    const reasons = (await app.events()).map(({ metadata }) => metadata.failure_reason)
    expect(reasons.filter(reason => reason === 'wrong_password').length).toBeLessThanOrEqual(CONCURRENT)
  })
})

/** Signs a user in. Returns a function that attempts another login in the same browser. */
const signedIn = async (username: string, ip = newAddress()) => {
  const browser = openBrowser(app, { ip })
  await logInTo(browser, 'web', username)
  return async (name: string, password: string) =>
    browser.submit(await browser.get(authorizeUrl('web', { prompt: 'login' })), { username: name, password })
}

describe('H-23, O-35, PWD-01 strangers cannot lock an account', () => {
  /** Uses up the account's shared budget from one network. */
  const close = async (username: string, ip = newAddress()) => {
    await fail(5, username, ip)
    expect((await attempt(username, 'wrong', ip)).status).toBe(429)
  }

  test('H-23 in a browser where its owner has signed in, by either name, without mail and from any network', async () => {
    const { username, email } = await newUser()
    const ip = newAddress()
    const owner = await signedIn(username, ip)
    for (let i = 0; i < 100; i++) await attempt(username, `guess ${i}`, i % 2 ? newAddress() : ip)
    for (let i = 0; i < 60; i++) await attempt(`neighbour${i}`, 'wrong', ip)
    expect((await attempt(username, PASSWORD, ip)).status).toBe(429)
    for (const name of [username, email]) expect((await owner(name, PASSWORD)).status).toBe(302)
  })

  test('H-23 in a network without earlier attempts: five attempts a day are checked, and right ones succeed', async () => {
    const { username } = await newUser()
    const [stranger, home] = [newAddress(), newAddress()]
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) {
      await close(username, newAddress())
      statuses.push((await attempt(username, PASSWORD, home)).status)
    }
    expect(statuses).toEqual([302, 302, 302, 302, 302, 429])
    const [right, wrong] = [await attempt(username, PASSWORD, home), await attempt(username, 'wrong', home)]
    expect([right.status, [...right.headers.keys()]]).toEqual([wrong.status, [...wrong.headers.keys()]])
    app.clock.advance(DAY)
    await close(username, stranger)
    expect((await attempt(username, PASSWORD, home)).status).toBe(302)
  })

  test('H-23 strangers go on waiting after the owner has signed in in a known browser', async () => {
    const { username } = await newUser()
    const owner = await signedIn(username)
    const stranger = newAddress()
    await close(username, stranger)
    expect((await owner(username, PASSWORD)).status).toBe(302)
    expect((await attempt(username, 'wrong', stranger)).status).toBe(429)
  })

  test('H-23 all networks together get a hundred such attempts a day', async () => {
    const { username } = await newUser()
    await close(username)
    let passed = 0
    for (let i = 0; i < 30; i++) {
      const ip = newAddress()
      for (let n = 0; n < 5; n++) if ((await attempt(username, 'wrong', ip)).status === 401) passed++
    }
    expect(passed).toBe(100)
  })

  test('H-23 the networks of one IPv6 site together get five such attempts, and leave the rest to others', async () => {
    const { username } = await newUser()
    await close(username)
    let passed = 0
    for (let i = 0; i < 30; i++)
      if ((await attempt(username, 'wrong', `2001:db8:23:${i}::1`)).status === 401) passed++
    expect(passed).toBe(5)
    expect((await attempt(username, PASSWORD, '2001:db8:24::1')).status).toBe(302)
  })

  test('H-23 a wait is stated in whole minutes, rounded up', async () => {
    const { username } = await newUser()
    const ip = newAddress()
    await fail(5, username, ip)
    const told: (string | null)[] = []
    for (let i = 0; i < 3; i++) {
      told.push((await attempt(username, 'wrong', ip)).headers.get('retry-after'))
      app.clock.advance(333)
    }
    expect(told).toEqual(['60', '60', '60'])
  })

  test('H-23 a known browser waits only after its own failures, and is known only for its own users', async () => {
    const [ada, ben] = [await newUser(), await newUser()]
    const owner = await signedIn(ada.username)
    for (let i = 0; i < 5; i++) expect((await owner(ada.username, 'wrong')).status).toBe(401)
    expect((await owner(ada.username, PASSWORD)).status).toBe(429)
    app.clock.advance(SECOND)
    expect((await owner(ada.username, PASSWORD)).status).toBe(302)
    for (let i = 0; i < 5; i++) await owner(ben.username, 'wrong')
    expect((await owner(ben.username, PASSWORD)).status).toBe(429)
  })

  test('H-23 a limited number of browsers is known for each user, the latest seen', async () => {
    const { id, username } = await newUser()
    for (let i = 0; i < 52; i++) {
      app.clock.advance(1)
      await attempt(username, PASSWORD, newAddress())
    }
    const devices = await app.context.store.read(async q => q.select().from(q.tables.devices))
    const seen = devices.filter(({ user_id }) => user_id === id).map(({ last_seen_at }) => last_seen_at)
    expect([seen.length, Math.max(...seen) - Math.min(...seen)]).toEqual([50, 49])
  })
})

test('H-33 in a shared network, users who have signed in there get the same answers as all others', async () => {
  const { username } = await newUser()
  const office = newAddress()
  await signedIn(username, office)
  const answers = async (name: string) => {
    await fail(5, name, newAddress())
    const statuses: number[] = []
    for (let i = 0; i < 7; i++) statuses.push((await attempt(name, 'wrong', office)).status)
    return statuses
  }
  expect(await answers(username)).toEqual(await answers('nobody-in-this-office'))
})

describe('O-35 an address', () => {
  test('PWD-02 that tries many accounts waits a minute after 50 failures in 5 minutes', async () => {
    const ip = newAddress()
    for (let i = 0; i < 50; i++) await fail(1, `spray${i}`, ip)
    const { username } = await newUser()
    const blocked = await attempt(username, PASSWORD, ip)
    expect([blocked.status, blocked.headers.get('retry-after')]).toEqual([429, '60'])
    expect((await attempt(username, PASSWORD, newAddress())).status).toBe(302)
    app.clock.advance(MINUTE)
    expect((await attempt(username, PASSWORD, ip)).status).toBe(302)
  })

  test('is a /64 for IPv6, and any spelling of IPv4', async () => {
    for (let i = 0; i < 50; i++) await fail(1, `rotate${i}`, `2001:db8:7:7::${(i + 1).toString(16)}`)
    expect((await attempt('rotate', 'wrong', '2001:db8:7:7:ffff::1')).status).toBe(429)
    expect((await attempt('rotate', 'wrong', '2001:db8:7:8::1')).status).toBe(401)
    for (let i = 0; i < 50; i++) await fail(1, `mapped${i}`, i % 2 ? '::ffff:198.51.100.7' : '198.51.100.7')
    expect((await attempt('mapped', 'wrong', '198.51.100.7')).status).toBe(429)
  })

  test('comes from X-Forwarded-For only when a trusted proxy sends it', async () => {
    const ip = newAddress()
    for (let i = 0; i < 50; i++)
      await attempt(`forged${i}`, 'wrong', ip, { 'x-forwarded-for': `203.0.113.${i}` })
    expect((await attempt('forged', 'wrong', ip, { 'x-forwarded-for': '203.0.113.99' })).status).toBe(429)
  })
})

test('counts and waits are stored without names or passwords', async () => {
  const { username } = await newUser()
  await fail(1, username, newAddress())
  const rows = await app.context.store.read(async q => q.select().from(q.tables.throttles))
  expect(rows.length).toBeGreaterThan(0)
  expect(JSON.stringify(rows)).not.toContain(username)
})
