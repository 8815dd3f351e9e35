import { afterEach, beforeEach, describe, expect, type Mock, spyOn, test } from 'bun:test'
import { availableParallelism } from 'node:os'
import { eq } from 'drizzle-orm'
import { setPassword } from '#src/directory/users/store.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { purge } from '#src/operations/purge.ts'
import { provePassword } from '#src/sign-in/password.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, logInTo, PASSWORD } from '#test/support/people.ts'
import { withSettings } from '#test/support/restarting.ts'
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

/** This number exceeds the requests that one organization can have in the queue: 64 per core. */
const FLOOD = 100 * availableParallelism()

describe('O-34 the same hashes are computed for every name', () => {
  let verify: Mock<typeof Bun.password.verify>
  beforeEach(() => {
    verify = spyOn(Bun.password, 'verify')
  })
  afterEach(() => verify.mockRestore())

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
    const ip = newAddress()
    await fail(5, username, ip)
    verify.mockClear()
    expect((await attempt(username, PASSWORD, ip)).status).toBe(429)
    expect((await attempt('anybody', 'x'.repeat(1025), newAddress())).status).toBe(401)
    expect(verify).not.toHaveBeenCalled()
  })
})

/** Signs a user in. Returns a function that attempts another login in the same browser. */
const signedIn = async (username: string, ip = newAddress()) => {
  const browser = openBrowser(app, { ip })
  await logInTo(browser, 'web', username)
  return async (name: string, password: string) =>
    browser.submit(await browser.get(authorizeUrl('web', { prompt: 'login' })), { username: name, password })
}

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

test('PWD-03 the password is hashed again at a login once the settings ask for more', async () => {
  const user = await newUser()
  const hash = async () => {
    const rows = await app.context.store.read(async q => q.select().from(q.tables.users))
    return rows.find(({ id }) => id === user.id)?.password_hash ?? ''
  }
  const before = await hash()
  await attempt(user.username, PASSWORD, newAddress())
  expect(await hash()).toBe(before)
  const risen = openBrowser(await withSettings(app, { argon2_memory: 128 }), { ip: newAddress() })
  await logInTo(risen, 'web', user.username)
  expect(await hash()).toStartWith('$argon2id$v=19$m=128,')
  await logInTo(openBrowser(app), 'web', user.username)
})

test('a password reset during its verification does not sign in', async () => {
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

test('USR-22 a user deleted during the verification leaves no event, and the guess counts', async () => {
  const user = await newUser()
  const ip = newAddress()
  const verify = spyOn(Bun.password, 'verify').mockImplementationOnce(async () => {
    await app.admin('DELETE', `/users/${user.id}`)
    await app.events()
    return false
  })
  const page = await attempt(user.username, 'Wrong-horse-1', ip)
  verify.mockRestore()
  expect(page.status).toBe(401)
  expect(await app.events()).toEqual([])
  const { events, throttles } = await app.context.store.read(async q => ({
    events: await q.select().from(q.tables.events).where(eq(q.tables.events.target_id, user.id)),
    throttles: await q.select().from(q.tables.throttles),
  }))
  expect(events.map(({ type }) => type)).toEqual(['user.deleted'])
  expect(throttles.filter(({ key }) => key === `passwords:${ip}`)).toMatchObject([{ failures: 1 }])
})

test('a failed login in an organization deleted meanwhile leaves no event, and the guess counts', async () => {
  const acme = await addOrganization(app, 'acme')
  await addClient(app, 'acme-web', { organization_id: acme.id })
  const ip = newAddress()
  const browser = openBrowser(app, { ip })
  const form = await browser.get(authorizeUrl('acme-web'))
  const verify = spyOn(Bun.password, 'verify').mockImplementationOnce(async () => {
    await app.admin('DELETE', `/organizations/${acme.id}`)
    await app.events()
    while ((await purge(app.context)) > 0);
    return false
  })
  const page = await browser.submit(form, { username: 'nobody@acme.example', password: 'Wrong-horse-1' })
  verify.mockRestore()
  expect(page.status).toBe(401)
  expect(await app.events()).toEqual([])
  const rows = await app.context.store.read(async q => ({
    events: await q.select().from(q.tables.events).where(eq(q.tables.events.organization_id, acme.id)),
    throttles: await q.select().from(q.tables.throttles),
  }))
  expect(rows.events).toEqual([])
  expect(rows.throttles.filter(({ key }) => key === `passwords:${ip}`)).toMatchObject([{ failures: 1 }])
})

test('a full hash queue is reported on the page', async () => {
  const held = Promise.withResolvers<boolean>()
  const verify = spyOn(Bun.password, 'verify').mockImplementation(() => held.promise)
  const flood = Array.from({ length: FLOOD }, (_, i) => attempt(`flood${i}`, 'x', newAddress()))
  const busy = await Promise.race(
    flood.map(async page => ((await page).status === 503 ? page : new Promise<never>(() => {}))),
  )
  expect(busy.headers.get('retry-after')).toBe('2')
  expect(busy.html).toContain('Many people are signing in right now')
  held.resolve(false)
  await Promise.all(flood)
  verify.mockRestore()
})

describe('H-24 the hash queue places of one organization', () => {
  const proveIn = (device_hash: SecretHash | undefined, identifier: string, ip_address = newAddress()) =>
    provePassword(app.context, {
      organization_id: 'org_default',
      identifier,
      password: PASSWORD,
      client_info: { ip_address, user_agent: '', device_hash },
    })
  /** Delays all password verifications until `release` is called. */
  const hold = () => {
    const { verify } = Bun.password
    const held = Promise.withResolvers<void>()
    const mock = spyOn(Bun.password, 'verify').mockImplementation(async (...args) => {
      await held.promise
      return verify(...args)
    })
    const release = () => {
      mock.mockRestore()
      held.resolve()
    }
    return { release }
  }
  const devicesOf = async (id: string) => {
    const devices = await app.context.store.read(async q => q.select().from(q.tables.devices))
    return devices.filter(({ user_id }) => user_id === id).map(({ device_hash }) => device_hash)
  }
  const waiting = () => /^gatehouse_hash_queue (\d+)$/m.exec(app.context.store.metrics.render())?.[1]

  test('H-24 strangers who take all places leave some to known browsers', async () => {
    const { username } = await newUser()
    const owner = await signedIn(username)
    const { release } = hold()
    const flood = Array.from({ length: FLOOD }, (_, i) => proveIn(undefined, `stranger${i}`))
    await Promise.race(
      flood.map(async each => ((await each).refusal?.code === 'busy' ? each : new Promise<never>(() => {}))),
    )
    const full = waiting()
    const login = owner(username, PASSWORD)
    await until(() => waiting() !== full || Bun.peek.status(login) !== 'pending')
    release()
    expect((await login).status).toBe(302)
    await Promise.all(flood)
  })

  test('H-24 one network that takes many places leaves some to others', async () => {
    const { username } = await newUser()
    const ip = newAddress()
    const { release } = hold()
    // The budget of a network allows more than 290 attempts.
    const flood = Array.from({ length: 290 }, (_, i) => proveIn(undefined, `crowd${i}`, ip))
    await until(() => Number(waiting()) > 20)
    const full = waiting()
    const login = attempt(username, PASSWORD, newAddress())
    await until(() => waiting() !== full || Bun.peek.status(login) !== 'pending')
    release()
    expect((await login).status).toBe(302)
    await Promise.all(flood)
  })

  test('H-24 a user takes five at once with all known browsers, and 300 in a row with each', async () => {
    const { id, username } = await newUser()
    const other = await newUser()
    for (let i = 0; i < 3; i++) await signedIn(username)
    await signedIn(other.username)
    const [[others], own] = [await devicesOf(other.id), await devicesOf(id)]
    const { release } = hold()
    let refused = 0
    const abreast = Array.from({ length: 30 }, async (_, i) => {
      const proof = await proveIn(own[i % 3], username)
      if (!proof.user) refused++
      return proof
    })
    // A verification that ends before the other attempts begin would free its slot.
    await until(() => refused === 25)
    release()
    const proofs = await Promise.all(abreast)
    expect(proofs.filter(({ user }) => user).length).toBe(5)
    for (let i = 0; i < 300; i++) await proveIn(own[0], username)
    expect((await proveIn(own[0], username)).refusal?.code).toBe('throttled')
    expect((await proveIn(own[1], username)).user?.id).toBe(id)
    expect((await proveIn(others, other.username)).user?.id).toBe(other.id)
    app.clock.advance(SECOND)
    expect((await proveIn(own[0], username)).user?.id).toBe(id)
  })
})

describe('H-24 an administrator who creates users', () => {
  const person = (username: string) => ({
    username,
    email: `${username}@example.com`,
    first_name: 'N',
    last_name: 'N',
    password: PASSWORD,
    organization_id: elsewhere.id,
  })

  test('H-24 fills only places of the own organization, and logins elsewhere continue', async () => {
    const { username } = await newUser()
    const held = Promise.withResolvers<string>()
    const hash = spyOn(Bun.password, 'hash').mockImplementation(() => held.promise)
    const flood = Array.from({ length: FLOOD }, (_, i) => app.admin('POST', '/users', person(`made${i}`)))
    const busy = await Promise.race(
      flood.map(async each => ((await each).status === 503 ? each : new Promise<never>(() => {}))),
    )
    expect([busy.headers.get('retry-after'), busy.body.error]).toEqual(['2', 'temporarily_unavailable'])
    // All hashes wait for `held`, so the queue stays full until the login has joined it or has been refused.
    const waiting = () => /^gatehouse_hash_queue (\d+)$/m.exec(app.context.store.metrics.render())?.[1]
    const full = waiting()
    const login = attempt(username, PASSWORD, newAddress())
    await until(() => waiting() !== full || Bun.peek.status(login) !== 'pending')
    held.resolve(`$argon2id$v=19$m=64,t=1,p=1$${'A'.repeat(43)}$${'A'.repeat(43)}`)
    expect((await login).status).toBe(302)
    await Promise.all(flood)
    hash.mockRestore()
  })

  test('H-24 gets a conflict before anything is hashed', async () => {
    await app.admin('POST', '/users', person('taken'))
    const hash = spyOn(Bun.password, 'hash')
    hash.mockClear()
    expect((await app.admin('POST', '/users', person('taken'))).status).toBe(409)
    expect(hash).not.toHaveBeenCalled()
    hash.mockRestore()
  })
})
