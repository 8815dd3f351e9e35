import { describe, expect, test } from 'bun:test'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { findRefreshGrant, rotateRefreshToken } from '#src/sessions/refresh-tokens.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, PASSWORD } from '#test/support/people.ts'
import { bearer, claimsOf, get, grantTokens, refresh } from '#test/support/tokens.ts'

const app = await startApp()
const alice = await addUser(app, 'alice')
const client = await addClient(app, 'shop')
const other = await addClient(app, 'other')
const tolerant = await addClient(app, 'tolerant', { refresh_token_reuse_window: 10 })
await app.events()

const refusal = (error: string, status = 400) => ({
  status,
  body: { error, status },
})
const events = async () => (await app.events()).map(({ type, metadata }) => ({ type, metadata }))
const honours = async (access_token: string): Promise<boolean> =>
  (await get(app, '/oauth/userinfo', { headers: bearer(access_token) })).status === 200

describe('rotation', () => {
  test('TOK-07 a refresh returns new tokens and records only token.refreshed', async () => {
    const tokens = await grantTokens(app, client, alice)
    await app.events()
    const { status, body, headers } = await refresh(app, client, tokens.refresh_token)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(body).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.stringMatching(/^[\w-]{86}$/),
      token_type: 'Bearer',
      expires_in: 3600,
      scope: 'openid profile email',
    })
    expect(body.refresh_token).not.toBe(tokens.refresh_token)
    const { sid } = claimsOf(tokens.access_token)
    expect(claimsOf(body.access_token)).toMatchObject({ sid, sub: alice.id.slice(4), roles: ['user'] })
    expect(await app.events()).toEqual([
      {
        type: 'token.refreshed',
        actor_id: alice.id,
        target_id: `sess_${sid}`,
        target_type: 'session',
        organization_id: 'org_default',
        metadata: { client_id: 'shop' },
      },
    ])
  })

  test('O-17 a used token is refused, the newest of its family revoked, the session revoked and recorded', async () => {
    const first = await grantTokens(app, client, alice)
    const { body: second } = await refresh(app, client, first.refresh_token)
    await app.events()
    expect(await refresh(app, client, first.refresh_token)).toMatchObject(refusal('invalid_grant'))
    expect(await events()).toEqual([
      {
        type: 'session.revoked',
        metadata: { user_id: alice.id, client_id: 'shop', reason: 'refresh_token_reused' },
      },
    ])
    expect(await refresh(app, client, second.refresh_token)).toMatchObject(refusal('invalid_grant'))
    expect(await honours(second.access_token)).toBe(false)
    expect(await events()).toEqual([])
  })

  test('O-17 a used token does not rotate the session, even if a grant did not check it', async () => {
    const first = await grantTokens(app, client, alice)
    const { body: second } = await refresh(app, client, first.refresh_token)
    await app.events()
    const { context, clock } = app
    const times = { now: clock.now(), expires_at: clock.now() + DAY }
    const rotated = await context.store.write(async tx => {
      const used = await findRefreshGrant(context, tx, first.refresh_token)
      return used && used !== 'gone' && rotateRefreshToken(context, tx, first.refresh_token, used, times)
    })
    expect(rotated).toBeUndefined()
    expect(await events()).toEqual([])
    expect((await refresh(app, client, second.refresh_token)).status).toBe(200)
  })

  test('O-17 a text that only looks like a session’s token is refused and ends nothing', async () => {
    const { access_token, refresh_token } = await grantTokens(app, client, alice)
    await app.events()
    const bytes = Buffer.from(refresh_token, 'base64url')
    expect(bytes.toString('hex', 0, 16)).toBe(claimsOf(access_token).sid.replaceAll('-', ''))
    const altered = Array.from(bytes, (_, i) => bytes.with(i, (bytes[i] as number) ^ 1))
    const forged = [
      ...altered.map(text => Buffer.from(text).toString('base64url')),
      `${refresh_token}=`,
      `${refresh_token}A`,
      refresh_token.slice(0, -1),
      // The same bytes in another base64url spelling.
      `${refresh_token.slice(0, -1)}${refresh_token.endsWith('A') ? 'B' : String.fromCharCode(refresh_token.charCodeAt(85) + 1)}`,
    ]
    for (const [i, token] of forged.entries()) {
      const refused = await refresh(app, client, token, {}, { ip: `198.51.100.${i}` })
      expect(refused).toMatchObject(refusal('invalid_grant'))
    }
    expect(await events()).toEqual([])
    expect((await refresh(app, client, refresh_token)).status).toBe(200)
    await app.events()
  })

  test('O-18 only one of fifty parallel refreshes with one token succeeds, and the family is revoked', async () => {
    const tokens = await grantTokens(app, client, alice)
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => refresh(app, client, tokens.refresh_token)),
    )
    const good = answers.filter(({ status }) => status === 200)
    expect(good).toHaveLength(1)
    expect(await refresh(app, client, good[0]?.body.refresh_token)).toMatchObject(refusal('invalid_grant'))
    await app.events()
  })

  test('O-19 another client, or the client without its secret, is refused and the family untouched', async () => {
    const tokens = await grantTokens(app, client, alice)
    await app.events()
    expect(await refresh(app, other, tokens.refresh_token)).toMatchObject(refusal('invalid_grant'))
    const bare = await refresh(app, { client_id: 'shop' }, tokens.refresh_token)
    expect(bare).toMatchObject(refusal('invalid_client', 401))
    expect(await events()).toEqual([])
    expect((await refresh(app, client, tokens.refresh_token)).status).toBe(200)
  })

  test('O-19 a used token sent by another client does not revoke the family', async () => {
    const first = await grantTokens(app, client, alice)
    const { body: second } = await refresh(app, client, first.refresh_token)
    await refresh(app, other, first.refresh_token)
    expect((await refresh(app, client, second.refresh_token)).status).toBe(200)
  })

  test('O-20 a wider scope is invalid_scope and consumes nothing; a narrower scope applies to that access token only', async () => {
    const tokens = await grantTokens(app, client, alice, { scope: 'openid profile' })
    const wider = await refresh(app, client, tokens.refresh_token, { scope: 'openid email' })
    expect(wider).toMatchObject(refusal('invalid_scope'))
    const narrow = await refresh(app, client, tokens.refresh_token, { scope: 'profile' })
    expect(narrow.body.scope).toBe('profile')
    expect(claimsOf(narrow.body.access_token).scope).toBe('profile')
    const full = await refresh(app, client, narrow.body.refresh_token)
    expect(full.body.scope).toBe('openid profile')
  })

  test('a scope that the client has lost is not granted again', async () => {
    const changed = await addClient(app, 'changed')
    const tokens = await grantTokens(app, changed, alice)
    await app.admin('PUT', '/clients/changed', { scopes: ['openid'] })
    const lost = await refresh(app, changed, tokens.refresh_token, { scope: 'email' })
    expect(lost).toMatchObject(refusal('invalid_scope'))
    const { body } = await refresh(app, changed, tokens.refresh_token)
    expect(body.scope).toBe('openid')
  })

  test('a scope that the client has lost is not granted again for an API', async () => {
    const changed = await addClient(app, 'caller')
    const identifier = 'https://called.example'
    await create(app, '/apis', {
      identifier,
      name: 'Called',
      scopes: [],
      clients: [{ client_id: 'caller', scopes: [] }],
    })
    const tokens = await grantTokens(app, changed, alice, { scope: 'openid email', resources: identifier })
    expect(tokens.scope).toBe('openid email')
    await app.admin('PUT', '/clients/caller', { scopes: ['openid'] })
    const { body } = await refresh(app, changed, tokens.refresh_token)
    expect([body.scope, claimsOf(body.access_token).aud]).toEqual(['openid', identifier])
  })
})

describe('O-22 a refresh is refused after', () => {
  const cases: Record<string, (made: { user: Json; app_client: Json; tokens: Json }) => Promise<unknown>> = {
    'the user was deleted': ({ user }) => app.admin('DELETE', `/users/${user.id}`),
    'the password was reset': ({ user }) =>
      app.admin('POST', `/users/${user.id}/reset-password`, { password: 'Another-horse-8' }),
    'the session was deleted': ({ tokens }) =>
      app.admin('DELETE', `/sessions/sess_${claimsOf(tokens.access_token).sid}`),
    "the user's sessions were deleted": ({ user }) => app.admin('DELETE', `/users/${user.id}/sessions`),
    'the organization was deleted': ({ user }) =>
      app.admin('DELETE', `/organizations/${user.organization_id}`),
    'the client was deleted': ({ app_client }) => app.admin('DELETE', `/clients/${app_client.client_id}`),
    'the grant type was taken from the client': ({ app_client }) =>
      app.admin('PUT', `/clients/${app_client.client_id}`, { grant_types: ['authorization_code'] }),
    'the secret was regenerated': ({ app_client }) =>
      app.admin('POST', `/clients/${app_client.client_id}/secret`),
  }
  const errors: Record<string, [string, number]> = {
    'the organization was deleted': ['invalid_client', 401],
    'the client was deleted': ['invalid_client', 401],
    'the grant type was taken from the client': ['unauthorized_client', 400],
    'the secret was regenerated': ['invalid_client', 401],
  }
  for (const [index, [what, happen]] of Object.entries(cases).entries())
    test(`O-22 ${what}`, async () => {
      const { id: organization_id } = await addOrganization(app, `tenant-${index}`)
      const user = await addUser(app, 'dora', { organization_id })
      const app_client = await addClient(app, `app-${index}`, { organization_id })
      const tokens = await grantTokens(app, app_client, user)
      const answer = await happen({ user, app_client, tokens })
      expect(answer).toMatchObject({ status: expect.any(Number) })
      const [error, status] = errors[what] ?? ['invalid_grant', 400]
      expect(await refresh(app, app_client, tokens.refresh_token)).toMatchObject(refusal(error, status))
    })

  test('O-22 the user was disabled; nothing is consumed, and enabling restores the session', async () => {
    const user = await addUser(app, 'eve')
    const tokens = await grantTokens(app, client, user)
    await app.admin('PUT', `/users/${user.id}`, { enabled: false })
    await app.events()
    expect(await refresh(app, client, tokens.refresh_token)).toMatchObject(refusal('invalid_grant'))
    expect(await honours(tokens.access_token)).toBe(false)
    expect(await events()).toEqual([])
    await app.admin('PUT', `/users/${user.id}`, { enabled: true })
    expect((await refresh(app, client, tokens.refresh_token)).status).toBe(200)
    expect(await honours(tokens.access_token)).toBe(true)
    await app.events()
  })
})

describe('refresh_token_reuse_window', () => {
  test('TOK-10 within it the same token returns the same successor again, with a fresh access token', async () => {
    const first = await grantTokens(app, tolerant, alice)
    const { body: lost } = await refresh(app, tolerant, first.refresh_token)
    app.clock.advance(10 * SECOND)
    const { status, body: again } = await refresh(app, tolerant, first.refresh_token)
    expect(status).toBe(200)
    expect(again.refresh_token).toBe(lost.refresh_token)
    expect(again.access_token).not.toBe(lost.access_token)
    expect((await refresh(app, tolerant, again.refresh_token)).status).toBe(200)
  })

  test('fifty parallel refreshes all get the same successor', async () => {
    const { refresh_token } = await grantTokens(app, tolerant, alice)
    const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(app, tolerant, refresh_token)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
  })

  test('after it the session is revoked', async () => {
    const first = await grantTokens(app, tolerant, alice)
    const { body: second } = await refresh(app, tolerant, first.refresh_token)
    app.clock.advance(10 * SECOND + 1)
    expect(await refresh(app, tolerant, first.refresh_token)).toMatchObject(refusal('invalid_grant'))
    expect(await refresh(app, tolerant, second.refresh_token)).toMatchObject(refusal('invalid_grant'))
  })

  test('TOK-08 once the successor was used, its predecessor revokes the session: never two generations back', async () => {
    const first = await grantTokens(app, tolerant, alice)
    const { body: second } = await refresh(app, tolerant, first.refresh_token)
    const { body: third } = await refresh(app, tolerant, second.refresh_token)
    expect(await refresh(app, tolerant, first.refresh_token)).toMatchObject(refusal('invalid_grant'))
    expect(await refresh(app, tolerant, third.refresh_token)).toMatchObject(refusal('invalid_grant'))
  })

  test('without one (the default) a token works once, even at the same moment', async () => {
    const first = await grantTokens(app, client, alice)
    await refresh(app, client, first.refresh_token)
    expect(await refresh(app, client, first.refresh_token)).toMatchObject(refusal('invalid_grant'))
  })
})

test('TOK-09 each refresh extends the session to refresh_token_ttl from now', async () => {
  const own = await startApp()
  const user = await addUser(own, 'alice')
  const shop = await addClient(own, 'shop')
  let { refresh_token } = await grantTokens(own, shop, user)
  for (let i = 0; i < 3; i++) {
    own.clock.advance(29 * DAY)
    const { status, body } = await refresh(own, shop, refresh_token)
    expect(status).toBe(200)
    refresh_token = body.refresh_token
  }
  own.clock.advance(30 * DAY)
  expect(await refresh(own, shop, refresh_token)).toMatchObject(refusal('invalid_grant'))
})

test('O-62 only hashes of codes and refresh tokens are stored', async () => {
  const tokens = await grantTokens(app, client, alice)
  const { body } = await refresh(app, client, tokens.refresh_token)
  const stored = await app.context.store.read(async q =>
    JSON.stringify([
      await q.select().from(q.tables.authorization_codes),
      await q.select().from(q.tables.events),
      await q.select().from(q.tables.sessions),
    ]),
  )
  for (const secret of [tokens.refresh_token, body.refresh_token, tokens.access_token, PASSWORD])
    expect(stored).not.toContain(secret)
})
