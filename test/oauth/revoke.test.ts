import { describe, expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { addClient, addUser } from '#test/support/people.ts'
import {
  addLogin,
  basic,
  bearer,
  claimsOf,
  get,
  grantTokens,
  post,
  refresh,
  secretOf,
} from '#test/support/tokens.ts'

const app = await startApp()
const alice = await addUser(app, 'alice')
const client = await addClient(app, 'shop')
const other = await addClient(app, 'other')
const spa = await addClient(app, 'spa', { type: 'public', token_endpoint_auth_method: 'none' })
const methods = ['client_secret_post', 'client_secret_basic']
const registered = await Promise.all(
  methods.map(
    async method =>
      [method, await addClient(app, `by-${method}`, { token_endpoint_auth_method: method })] as const,
  ),
)

const OK = { status: 200, body: '' }
const revoke = (form: Record<string, string | undefined>, headers = {}) =>
  post(app, '/oauth/revoke', form, { headers })
const fresh = async (of = client) => {
  const tokens = await grantTokens(app, of, alice)
  await app.events()
  return tokens
}
const untouched = async (tokens: { refresh_token: string }, of = client) => {
  expect(await app.events()).toEqual([])
  expect((await refresh(app, of, tokens.refresh_token)).status).toBe(200)
}

describe('a valid refresh token', () => {
  test('O-64 ends the session and records only token.revoked; its access token and its login stay valid', async () => {
    const login_id = await addLogin(app, alice)
    const tokens = await grantTokens(app, client, alice, { login_id })
    await app.events()
    const answer = await revoke({ token: tokens.refresh_token })
    expect(answer).toMatchObject(OK)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await app.events()).toEqual([
      {
        type: 'token.revoked',
        actor_id: alice.id,
        target_id: `sess_${claimsOf(tokens.access_token).sid}`,
        target_type: 'session',
        organization_id: 'org_default',
        metadata: { client_id: 'shop' },
      },
    ])
    expect((await refresh(app, client, tokens.refresh_token)).status).toBe(400)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(tokens.access_token) })).status).toBe(200)
    expect((await grantTokens(app, client, alice, { login_id })).access_token).toBeString()
  })

  test('O-64 a second request has the same answer and no event', async () => {
    const { refresh_token } = await fresh()
    await revoke({ token: refresh_token })
    await app.events()
    expect(await revoke({ token: refresh_token })).toMatchObject(OK)
    expect(await app.events()).toEqual([])
  })

  test('a used refresh token ends its session too: a client that lost the next one can sign its user out', async () => {
    const { refresh_token } = await fresh()
    const { body: next } = await refresh(app, client, refresh_token)
    expect(await revoke({ token: refresh_token, token_type_hint: 'refresh_token' })).toMatchObject(OK)
    expect((await refresh(app, client, next.refresh_token)).status).toBe(400)
    await app.events()
  })

  test('TOK-11 with the right credentials, in the form or by Basic, and with client_id only for public clients', async () => {
    const bySecret = await fresh()
    await revoke({ token: bySecret.refresh_token, ...secretOf(client) })
    const byBasic = await fresh()
    await revoke({ token: byBasic.refresh_token }, basic('shop', client.client_secret))
    const byName = await fresh(spa)
    await revoke({ token: byName.refresh_token, client_id: 'spa' })
    for (const [of, tokens] of [
      [client, bySecret],
      [client, byBasic],
      [spa, byName],
    ] as const)
      expect((await refresh(app, of, tokens.refresh_token)).status).toBe(400)
    await app.events()
  })
})

describe('O-64 nothing is revoked, and the answer is the same', () => {
  test('O-64 by another client, by client_id alone, by an unknown client', async () => {
    const tokens = await fresh()
    expect(await revoke({ token: tokens.refresh_token, ...secretOf(other) })).toMatchObject(OK)
    expect(await revoke({ token: tokens.refresh_token, client_id: 'other' })).toMatchObject(OK)
    expect(
      await revoke({ token: tokens.refresh_token, client_id: 'nobody', client_secret: 'x' }),
    ).toMatchObject(OK)
    await untouched(tokens)
  })

  test('O-64 with a wrong secret, with two methods at once, with an unreadable header', async () => {
    const tokens = await fresh()
    const form = { token: tokens.refresh_token }
    expect(await revoke({ ...form, client_id: 'shop', client_secret: 'wrong' })).toMatchObject(OK)
    const headers = basic('shop', client.client_secret)
    expect(await revoke({ ...form, ...secretOf(client) }, headers)).toMatchObject(OK)
    expect(await revoke(form, { authorization: 'Basic %' })).toMatchObject(OK)
    await untouched(tokens)
  })

  test('O-64 with a secret of a public client, which has none', async () => {
    const tokens = await fresh(spa)
    const form = { token: tokens.refresh_token }
    expect(await revoke({ ...form, client_id: 'spa', client_secret: 'x' })).toMatchObject(OK)
    expect(await revoke(form, basic('spa', 'x'))).toMatchObject(OK)
    await untouched(tokens, spa)
  })

  test('O-64 an access token, an ID token, garbage, nothing, a repeated parameter, a megabyte, JSON', async () => {
    const tokens = await fresh()
    expect(await revoke({ token: tokens.access_token })).toMatchObject(OK)
    expect(await revoke({ token: tokens.id_token })).toMatchObject(OK)
    expect(await revoke({ token: '\u0000%' })).toMatchObject(OK)
    expect(await revoke({})).toMatchObject(OK)
    expect(await revoke({ token: 'x'.repeat(1_000_000) })).toMatchObject(OK)
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const token = `token=${tokens.refresh_token}`
    const twice = await app.call('/oauth/revoke', {
      method: 'POST',
      body: `${token}&${token}`,
      headers: type,
    })
    expect([twice.status, await twice.text()]).toEqual([200, ''])
    const json = await app.call('/oauth/revoke', {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    })
    expect([json.status, await json.text()]).toEqual([200, ''])
    await untouched(tokens)
  })

  test('many revocations of access tokens from one address do not count as guesses', async () => {
    const tokens = await fresh()
    for (let i = 0; i < 40; i++) await revoke({ token: tokens.access_token })
    await revoke({ token: tokens.refresh_token })
    expect((await refresh(app, client, tokens.refresh_token)).status).toBe(400)
    await app.events()
  })
})

describe.each(registered)('H-47 a client registered for %s', (method, as) => {
  test('H-47 revokes with its right secret in header or body', async () => {
    const ways = [
      [{}, basic(as.client_id, as.client_secret)],
      [secretOf(as), {}],
    ] as const
    for (const [form, headers] of ways) {
      const { refresh_token } = await fresh(as)
      expect(await revoke({ token: refresh_token, ...form }, headers)).toMatchObject(OK)
      expect((await app.events()).map(({ type }) => type)).toEqual(['token.revoked'])
      expect((await refresh(app, as, refresh_token)).status).toBe(400)
    }
  })

  test('H-47 revokes nothing with a wrong one, and each counts as a guess', async () => {
    const tokens = await fresh(as)
    const form = { token: tokens.refresh_token }
    const ip = method === 'client_secret_post' ? '198.51.100.1' : '198.51.100.2'
    const attempt = (more: object, headers: Record<string, string>) =>
      post(app, '/oauth/revoke', { ...form, ...more }, { headers, ip })
    for (let i = 0; i < 30; i++) await attempt({}, basic(as.client_id, `wrong-${i}`))
    await untouched(tokens, as)
    const blocked = await post(app, '/oauth/introspect', form, { headers: basic('nobody', 'x'), ip })
    expect(blocked.status).toBe(429)
  })
})

test('R-05 only a store that cannot write is reported: 503', async () => {
  const { refresh_token } = await fresh()
  const write = app.context.store.write
  const { retryLater } = await import('#src/lib/app-error.ts')
  Object.assign(app.context.store, {
    write: () => Promise.reject(retryLater('temporarily_unavailable', 'The store cannot write.', 1000)),
  })
  const answer = await revoke({ token: refresh_token })
  Object.assign(app.context.store, { write })
  expect(answer).toMatchObject({ status: 503, body: { error: 'temporarily_unavailable', status: 503 } })
  expect(answer.headers.get('retry-after')).toBe('1')
  expect((await refresh(app, client, refresh_token)).status).toBe(200)
})
