/** Tests two copies of the server on one PostgreSQL database. Requests of a client go to either copy. */
import { expect } from 'bun:test'
import { DAY } from '#src/lib/duration.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import { listKeys } from '#src/tokens/key-store.ts'
import { rotateDueKeys, rotateKeys } from '#src/tokens/rotation.ts'
import { ADMIN_SECRET, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { addClient, addUser, authorizeUrl, PASSWORD, REDIRECT, VERIFIER } from '#test/support/people.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import {
  addCode,
  bearer,
  claimsOf,
  get,
  grantTokens,
  post,
  redeem,
  refresh,
  secretOf,
} from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'

interface Copies extends AsyncDisposable {
  one: TestApp
  other: TestApp
  url: string
}

/** Starts two copies at the same moment on an empty database. */
const startCopies = async (): Promise<Copies> => {
  const { url, drop } = await temporaryPostgres(true)
  const stores = await Promise.all([1, 2].map(() => openPostgres({ url, connections: 4 })))
  const [one, other] = (await Promise.all(stores.map(store => startApp({}, { store })))) as [TestApp, TestApp]
  return {
    one,
    other,
    url,
    [Symbol.asyncDispose]: async () => {
      for (const store of stores) await store.close()
      await drop()
    },
  }
}

const kids = async (app: TestApp): Promise<string[]> =>
  (await get(app, '/.well-known/jwks.json')).body.keys.map(({ kid }: { kid: string }) => kid)

/** Waits until both copies publish both keys of the first start, and returns the keys. */
const firstKeys = async ({ one, other }: Copies): Promise<string[]> => {
  await Promise.all([one, other].map(app => until(async () => (await kids(app)).length === 2)))
  const keys = await kids(one)
  expect(await kids(other)).toEqual(keys)
  return keys
}

testOnPostgres('R-17 two copies that start together on an empty database make one instance', async () => {
  await using copies = await startCopies()
  const { one, other } = copies
  await firstKeys(copies)
  const { body } = await one.admin('GET', '/clients')
  expect(body.data.map(({ client_id }: { client_id: string }) => client_id)).toEqual(['gatehouse-admin'])
  const token = await other.tokenOf('gatehouse-admin', ADMIN_SECRET)
  expect((await one.admin('GET', '/organizations', undefined, token)).body.data).toHaveLength(1)
})

testOnPostgres(
  'R-17 O-14 a code that is redeemed at both copies at once has one winner, and is reused at the other copy',
  async () => {
    await using copies = await startCopies()
    const { one, other } = copies
    const [alice, client] = [await addUser(one, 'alice'), await addClient(one, 'shop')]
    for (let round = 0; round < 30; round++) {
      const code = await addCode(one, client, alice)
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) => redeem(i % 2 ? one : other, client, code)),
      )
      const good = answers.filter(({ status }) => status === 200)
      expect(good).toHaveLength(1)
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 400]))
      const renewed = await refresh(round % 2 ? one : other, client, good[0]?.body.refresh_token)
      expect(renewed.body.error).toBe('invalid_grant')
    }
  },
  60_000,
)

testOnPostgres(
  'R-17 O-14 a code that fifty connections send has one winner; with wrong verifiers among them it has one at most',
  async () => {
    await using copies = await startCopies()
    const { one, other } = copies
    const [alice, client] = [await addUser(one, 'alice'), await addClient(one, 'shop')]
    for (const isBurnt of [false, true]) {
      const code = await addCode(one, client, alice)
      const wrong = (i: number) => (isBurnt && i < 2 ? { code_verifier: 'z'.repeat(43) } : {})
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => redeem(i % 2 ? one : other, client, code, wrong(i))),
      )
      const good = answers.filter(({ status }) => status === 200)
      expect(good.length).toBeLessThanOrEqual(1)
      if (!isBurnt) expect(good).toHaveLength(1)
      expect(new Set(answers.map(({ status }) => status))).not.toContain(503)
      for (const { body } of good)
        expect((await refresh(other, client, body.refresh_token)).body.error).toBe('invalid_grant')
      for (const app of [one, other]) expect((await redeem(app, client, code)).status).toBe(400)
    }
  },
  60_000,
)

testOnPostgres(
  'R-17 O-18 a refresh token that is used at both copies at once has one winner, and its family ends',
  async () => {
    await using copies = await startCopies()
    const { one, other } = copies
    const [alice, client] = [await addUser(one, 'alice'), await addClient(one, 'shop')]
    const tolerant = await addClient(one, 'tolerant', { refresh_token_reuse_window: 10 })
    for (let round = 0; round < 30; round++) {
      const { refresh_token } = await grantTokens(one, client, alice)
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) => refresh(i % 2 ? one : other, client, refresh_token)),
      )
      const good = answers.filter(({ status }) => status === 200)
      expect(good).toHaveLength(1)
      const next = await refresh(round % 2 ? one : other, client, good[0]?.body.refresh_token)
      expect(next.body.error).toBe('invalid_grant')

      const tokens = await grantTokens(other, tolerant, alice)
      const same = await Promise.all(
        Array.from({ length: 8 }, (_, i) => refresh(i % 2 ? one : other, tolerant, tokens.refresh_token)),
      )
      expect(new Set(same.map(({ status }) => status))).toEqual(new Set([200]))
      expect(new Set(same.map(({ body }) => body.refresh_token)).size).toBe(1)
    }
  },
  60_000,
)

testOnPostgres(
  'R-17 a permission that one copy withdraws is gone at the other copy at once',
  async () => {
    await using copies = await startCopies()
    const { one, other } = copies
    const client = await addClient(one, 'console', { scopes: ['openid', 'users:read'] })
    const reader = await create(one, '/roles', {
      name: 'reader',
      description: '',
      permissions: ['users:read'],
    })
    const alice = await addUser(one, 'alice', { roles: ['user', 'reader'] })
    const { access_token } = await grantTokens(one, client, alice, { scope: 'openid users:read' })
    const ask = async () => (await other.admin('GET', '/users', undefined, access_token)).status
    for (let round = 0; round < 20; round++) {
      expect(await ask()).toBe(200)
      await one.admin('PUT', `/roles/${reader.id}`, { permissions: [] })
      expect(await ask()).toBe(403)
      await one.admin('PUT', `/roles/${reader.id}`, { permissions: ['users:read'] })
    }
  },
  30_000,
)

testOnPostgres(
  'R-17 a session that one copy revokes, or a user that it disables, is refused by the other copy at once',
  async () => {
    await using copies = await startCopies()
    const { one, other } = copies
    const [alice, client] = [await addUser(one, 'alice'), await addClient(one, 'shop')]
    for (let round = 0; round < 10; round++) {
      const tokens = await grantTokens(other, client, alice)
      const userinfo = async () =>
        (await get(other, '/oauth/userinfo', { headers: bearer(tokens.access_token) })).status
      expect(await userinfo()).toBe(200)
      const { sid } = claimsOf(tokens.access_token)
      expect((await one.admin('DELETE', `/sessions/sess_${sid}`)).status).toBe(204)
      expect(await userinfo()).toBe(401)
      expect((await refresh(other, client, tokens.refresh_token)).body.error).toBe('invalid_grant')
    }
    const { access_token } = await grantTokens(other, client, alice)
    expect((await one.admin('PUT', `/users/${alice.id}`, { enabled: false })).status).toBe(200)
    expect((await get(other, '/oauth/userinfo', { headers: bearer(access_token) })).status).toBe(401)
  },
  30_000,
)

testOnPostgres('R-17 what a copy keeps in memory follows the other: clients and their secrets', async () => {
  await using copies = await startCopies()
  const { one, other } = copies
  const client = await addClient(one, 'robot', {
    grant_types: ['client_credentials'],
    scopes: ['users:read'],
  })
  const ask = () => other.tokenOf('robot', client.client_secret).catch(() => undefined)
  await until(async () => (await ask()) !== undefined)
  await one.admin('POST', '/clients/robot/secret')
  await until(async () => (await ask()) === undefined)
  await one.admin('DELETE', '/clients/robot')
  const body = { grant_type: 'client_credentials', client_id: 'robot', client_secret: client.client_secret }
  await until(async () => (await post(other, '/oauth/token', body)).status === 401)
})

testOnPostgres('R-17 a key that one copy makes is published and used by the other copy', async () => {
  await using copies = await startCopies()
  const { one, other } = copies
  const before = await firstKeys(copies)
  await rotateKeys(one.context)
  const after = await kids(one)
  expect(after.length).toBeGreaterThan(before.length)
  await until(async () => (await kids(other)).length === after.length)
})

testOnPostgres('R-17 a login that begins at one copy is completed at the other copy', async () => {
  await using copies = await startCopies()
  const { one, other } = copies
  await addUser(one, 'alice')
  const client = await addClient(one, 'shop')
  let turn = 0
  const call: TestApp['call'] = (path, init) => (turn++ % 2 ? one : other).call(path, init)
  const browser = openBrowser({ ...one, call })
  const page = await browser.get(authorizeUrl('shop'))
  const end = await browser.follow(
    await browser.submit(page, { username: 'alice', password: PASSWORD }, '/oauth/login'),
  )
  const code = new URL(end.location ?? '').searchParams.get('code') ?? ''
  const form = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER }
  const tokens = await post(one, '/oauth/token', { ...form, ...secretOf(client) })
  expect(tokens.status).toBe(200)
  expect(turn).toBe(2)
})

testOnPostgres('R-17 O-34 wrong passwords at two copies share one budget', async () => {
  await using copies = await startCopies()
  const { one, other } = copies
  await addUser(one, 'alice')
  await addClient(one, 'shop')
  const refused: number[] = []
  for (let i = 0; i < 12; i++) {
    const app = i % 2 ? one : other
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl('shop'))
    refused.push(
      (await browser.submit(page, { username: 'alice', password: 'Wrong-horse-7' }, '/oauth/login')).status,
    )
  }
  expect(refused).toContain(429)
})

testOnPostgres('R-17 only one of the copies does a rotation that is due', async () => {
  await using copies = await startCopies()
  const { one, other } = copies
  const before = await firstKeys(copies)
  for (const app of [one, other]) app.clock.advance(91 * 24 * 60 * 60_000)
  await Promise.all([one, other].map(({ context }) => rotateDueKeys(context, 90 * DAY)))
  expect(await one.context.store.read(listKeys)).toHaveLength(2 * before.length)
  await until(async () => (await kids(one)).length === 2 * before.length)
})
