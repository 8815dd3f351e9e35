import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { addClient, addOrganization, addUser, CHALLENGE, REDIRECT } from '#test/support/people.ts'
import {
  addCode,
  addLogin,
  bearer,
  claimsOf,
  get,
  grantTokens,
  post,
  redeem,
  refresh,
  secretOf,
} from '#test/support/tokens.ts'

const app = await startApp()
const alice = await addUser(app, 'alice')
const client = await addClient(app, 'shop')
const other = await addClient(app, 'other')
const spa = await addClient(app, 'spa', { type: 'public', token_endpoint_auth_method: 'none' })
const service = await addClient(app, 'service', {
  grant_types: ['client_credentials'],
  redirect_uris: [],
  scopes: ['reports:read', 'reports:write'],
})

beforeEach(async () => void (await app.events()))

const refusal = (error: string, status = 400) => ({
  status,
  body: { error, status },
})
const types = async () => (await app.events()).map(({ type }) => type)

describe('the code grant', () => {
  test('TOK-13 a code returns tokens, makes a session, and records exactly the events of a login', async () => {
    const { status, body, headers } = await redeem(
      app,
      client,
      await addCode(app, client, alice, { nonce: 'n1' }),
    )
    expect(status).toBe(200)
    expect(body).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.stringMatching(/^[\w-]{86}$/),
      id_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      scope: 'openid profile email',
    })
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('pragma')).toBe('no-cache')
    const access = claimsOf(body.access_token)
    const session_id = `sess_${access.sid}`
    const metadata = { client_id: 'shop', grant_type: 'authorization_code' }
    const about = { actor_id: alice.id, organization_id: 'org_default' }
    expect(await app.events()).toEqual([
      {
        ...about,
        type: 'user.login',
        target_id: alice.id,
        target_type: 'user',
        metadata: { ...metadata, session_id, amr: ['pwd'] },
      },
      {
        ...about,
        type: 'session.created',
        target_id: session_id,
        target_type: 'session',
        metadata: { client_id: 'shop' },
      },
      {
        ...about,
        type: 'token.issued',
        target_id: session_id,
        target_type: 'session',
        metadata: { ...metadata, scope: 'openid profile email' },
      },
    ])
  })

  test('TOK-12 ID token and access token carry the claims of the specification', async () => {
    const tokens = await grantTokens(app, client, alice, { nonce: 'n1' })
    const now = app.clock.now() / SECOND
    const identity = {
      sub: alice.id.slice(4),
      org_id: 'default',
      preferred_username: 'alice',
      email: 'alice@example.com',
      email_verified: false,
      given_name: 'Alice',
      family_name: 'Example',
    }
    const sid = expect.stringMatching(/^[0-9a-f-]{36}$/)
    const common = { ...identity, iss: 'http://localhost:8080', aud: 'shop', iat: now, exp: now + 3600, sid }
    expect(claimsOf(tokens.access_token)).toEqual({
      ...common,
      nbf: now,
      jti: expect.any(String),
      client_id: 'shop',
      scope: 'openid profile email',
      roles: ['user'],
    })
    expect(claimsOf(tokens.id_token)).toEqual({
      ...common,
      azp: 'shop',
      auth_time: now,
      nonce: 'n1',
      acr: '1',
      amr: ['pwd'],
      at_hash: expect.stringMatching(/^[\w-]{22}$/),
    })
  })

  test('TOK-18 without openid there is no ID token; without the grant refresh_token no refresh token', async () => {
    const once = await addClient(app, 'once', { grant_types: ['authorization_code'] })
    const { body } = await redeem(app, once, await addCode(app, once, alice, { scope: 'profile' }))
    expect(Object.keys(body).sort()).toEqual(['access_token', 'expires_in', 'scope', 'token_type'])
    const session = await sessionOf(body.access_token)
    expect(session.expires_at).toBe(app.clock.now() + HOUR)
  })

  const sessionOf = async (token: string) => {
    const [session] = await app.context.store.read(async q =>
      (await q.select().from(q.tables.sessions)).filter(({ id }) => id === `sess_${claimsOf(token).sid}`),
    )
    if (!session) throw new Error('no session')
    return session
  }

  test.each([
    ['198.51.100.7', 'A browser'],
    ['192.0.2.10', 'Her browser'],
  ])(
    'TOK-17 session and events have the browser of the request (%s, %s), not that of its login or the server that redeems the code',
    async (ip_address, user_agent) => {
      const login_id = await addLogin(app, alice)
      const code = await addCode(app, client, alice, { login_id, client_info: { ip_address, user_agent } })
      const { body } = await redeem(app, client, code, {}, { ip: '203.0.113.1' })
      const { data } = (await app.admin('GET', '/events?limit=3')).body
      expect(data.map((event: Json) => [event.type, event.ip_address, event.user_agent])).toEqual([
        ['token.issued', '203.0.113.1', expect.any(String)],
        ['session.created', ip_address, user_agent],
        ['user.login', ip_address, user_agent],
      ])
      expect(await sessionOf(body.access_token)).toMatchObject({
        login_id,
        ip_address,
        user_agent,
        scope: 'openid profile email',
        started_at: app.clock.now(),
        expires_at: app.clock.now() + 30 * DAY,
        ends_by: null,
      })
    },
  )

  test('O-21 with session_ttl neither session nor token lives longer than start + session_ttl', async () => {
    const acme = await addOrganization(app, 'acme', { settings: { session_ttl: '30m' } })
    const bob = await addUser(app, 'bob', { organization_id: acme.id })
    const acmeClient = await addClient(app, 'acme-app', { organization_id: acme.id })
    const { body } = await redeem(app, acmeClient, await addCode(app, acmeClient, bob))
    const end = (app.clock.now() + 30 * MINUTE) / SECOND
    expect(body.expires_in).toBe(1800)
    expect([claimsOf(body.access_token).exp, claimsOf(body.id_token).exp]).toEqual([end, end])
    app.clock.advance(20 * MINUTE)
    const again = await refresh(app, acmeClient, body.refresh_token)
    expect(again.body.expires_in).toBe(600)
    app.clock.advance(10 * MINUTE)
    expect(await refresh(app, acmeClient, again.body.refresh_token)).toMatchObject(refusal('invalid_grant'))
  })
})

describe('PKCE', () => {
  test('O-08 a wrong verifier, a verifier of 42 or 129 characters, and the challenge itself are invalid_grant', async () => {
    for (const code_verifier of ['x'.repeat(43), 'x'.repeat(42), 'x'.repeat(129), CHALLENGE])
      expect(await redeem(app, client, await addCode(app, client, alice), { code_verifier })).toMatchObject(
        refusal('invalid_grant'),
      )
  })

  test('O-08 a missing verifier is invalid_request and names it', async () => {
    const answer = await redeem(app, client, await addCode(app, client, alice), { code_verifier: undefined })
    expect(answer).toMatchObject(refusal('invalid_request'))
    expect(answer.body.error_description).toContain('code_verifier')
  })

  test('O-09 a code without a challenge cannot be redeemed', async () => {
    for (const code_challenge of ['', 'x'])
      expect(await redeem(app, client, await addCode(app, client, alice, { code_challenge }))).toMatchObject(
        refusal('invalid_grant'),
      )
  })

  test('O-10 a stolen code is refused with the verifier of another flow', async () => {
    const code = await addCode(app, spa, alice)
    expect(await redeem(app, spa, code, { code_verifier: 'y'.repeat(43) })).toMatchObject(
      refusal('invalid_grant'),
    )
    expect(await redeem(app, spa, code)).toMatchObject(refusal('invalid_grant'))
  })
})

describe('one code, one use, one client', () => {
  test('O-11 another client gets nothing, and the right client can still redeem the code', async () => {
    const code = await addCode(app, client, alice)
    expect(await redeem(app, other, code)).toMatchObject(refusal('invalid_grant'))
    expect((await redeem(app, client, code)).status).toBe(200)
  })

  test('O-12 a missing redirect_uri is invalid_request, a different one invalid_grant', async () => {
    const code = await addCode(app, client, alice)
    expect(await redeem(app, client, code, { redirect_uri: undefined })).toMatchObject(
      refusal('invalid_request'),
    )
    expect(await redeem(app, client, code, { redirect_uri: `${REDIRECT}/` })).toMatchObject(
      refusal('invalid_grant'),
    )
  })

  test('O-13 a second use revokes the tokens of the first', async () => {
    const code = await addCode(app, client, alice)
    const { body: tokens } = await redeem(app, client, code)
    await app.events()
    expect(await redeem(app, client, code)).toMatchObject(refusal('invalid_grant'))
    expect(await app.events()).toEqual([
      {
        type: 'session.revoked',
        actor_id: 'shop',
        target_id: `sess_${claimsOf(tokens.access_token).sid}`,
        target_type: 'session',
        organization_id: 'org_default',
        metadata: { user_id: alice.id, client_id: 'shop', reason: 'code_replayed' },
      },
    ])
    expect(await refresh(app, client, tokens.refresh_token)).toMatchObject(refusal('invalid_grant'))
    expect((await get(app, '/oauth/userinfo', { headers: bearer(tokens.access_token) })).status).toBe(401)
    expect((await app.admin('GET', '/users', undefined, tokens.access_token)).status).toBe(401)
    expect(await types()).toEqual([])
  })

  test('O-13 a second use with a wrong resource does so, too; a first use with it does not use up the code', async () => {
    const code = await addCode(app, client, alice)
    const wrong = { resource: 'https://nowhere.example' }
    expect(await redeem(app, client, code, wrong)).toMatchObject(refusal('invalid_target'))
    const { status, body } = await redeem(app, client, code)
    expect(status).toBe(200)
    await app.events()
    const { sid } = claimsOf(body.access_token)
    // Only the client that got the code, with the verifier, can end the session.
    expect(await redeem(app, other, code, wrong)).toMatchObject(refusal('invalid_grant'))
    const headers = bearer(body.access_token)
    expect((await get(app, '/oauth/userinfo', { headers })).status).toBe(200)
    expect(await app.events()).toEqual([])
    expect(await redeem(app, client, code, wrong)).toMatchObject(refusal('invalid_grant'))
    expect((await app.events()).map(({ type, target_id }) => [type, target_id])).toEqual([
      ['session.revoked', `sess_${sid}`],
    ])
    expect(await refresh(app, client, body.refresh_token)).toMatchObject(refusal('invalid_grant'))
  })

  test('O-13 after /oauth/revoke has ended the session, a second use still revokes its access token', async () => {
    const code = await addCode(app, client, alice)
    const { body: tokens } = await redeem(app, client, code)
    await post(app, '/oauth/revoke', { token: tokens.refresh_token })
    const headers = bearer(tokens.access_token)
    expect((await get(app, '/oauth/userinfo', { headers })).status).toBe(200)
    await redeem(app, client, code)
    expect((await get(app, '/oauth/userinfo', { headers })).status).toBe(401)
  })

  test('O-14 fifty parallel redemptions of one code: exactly one succeeds, each time', async () => {
    for (let round = 0; round < 20; round++) {
      const code = await addCode(app, client, alice)
      const answers = await Promise.all(Array.from({ length: 50 }, () => redeem(app, client, code)))
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 400]))
    }
    await app.events()
  })

  test('O-15 a code is valid for a minute', async () => {
    const [inTime, late] = [await addCode(app, client, alice), await addCode(app, client, alice)]
    app.clock.advance(MINUTE - 1)
    expect((await redeem(app, client, inTime)).status).toBe(200)
    app.clock.advance(1)
    expect(await redeem(app, client, late)).toMatchObject(refusal('invalid_grant'))
  })

  test('O-16 a wrong verifier uses up the code, a wrong secret does not', async () => {
    const code = await addCode(app, client, alice)
    const wrong = await redeem(app, client, code, { client_secret: 'wrong' })
    expect(wrong).toMatchObject(refusal('invalid_client', 401))
    expect((await redeem(app, client, code)).status).toBe(200)
    const burnt = await addCode(app, client, alice)
    await redeem(app, client, burnt, { code_verifier: 'z'.repeat(43) })
    expect(await redeem(app, client, burnt)).toMatchObject(refusal('invalid_grant'))
  })

  test('a code is refused after its login ended and after its user was deleted or disabled', async () => {
    const carol = await addUser(app, 'carol')
    const reset = await addCode(app, client, carol)
    await app.admin('POST', `/users/${carol.id}/reset-password`, { password: 'Another-horse-8' })
    expect(await redeem(app, client, reset)).toMatchObject(refusal('invalid_grant'))
    const disabled = await addCode(app, client, carol)
    await app.admin('PUT', `/users/${carol.id}`, { enabled: false })
    expect(await redeem(app, client, disabled)).toMatchObject(refusal('invalid_grant'))
    await app.admin('PUT', `/users/${carol.id}`, { enabled: true })
    const deleted = await addCode(app, client, carol)
    await app.admin('DELETE', `/users/${carol.id}`)
    expect(await redeem(app, client, deleted)).toMatchObject(refusal('invalid_grant'))
    await app.events()
  })
})

describe('client credentials', () => {
  test('TOK-15 a token for the client itself: no refresh token, no ID token, no session', async () => {
    const { status, body } = await post(app, '/oauth/token', {
      grant_type: 'client_credentials',
      ...secretOf(service),
    })
    expect(status).toBe(200)
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      scope: 'reports:read reports:write',
    })
    const now = app.clock.now() / SECOND
    expect(claimsOf(body.access_token)).toEqual({
      iss: 'http://localhost:8080',
      sub: 'service',
      aud: 'service',
      client_id: 'service',
      org_id: 'default',
      iat: now,
      nbf: now,
      exp: now + 3600,
      jti: expect.any(String),
      scope: 'reports:read reports:write',
    })
    expect(await app.events()).toEqual([
      {
        type: 'token.issued',
        actor_id: 'service',
        target_id: 'service',
        target_type: 'client',
        organization_id: 'org_default',
        metadata: {
          client_id: 'service',
          grant_type: 'client_credentials',
          scope: 'reports:read reports:write',
        },
      },
    ])
  })

  test('AUT-38 a narrower scope is granted, a wider one is invalid_scope, nothing is recorded', async () => {
    const ask = (scope: string) =>
      post(app, '/oauth/token', { grant_type: 'client_credentials', scope, ...secretOf(service) })
    expect((await ask('reports:read')).body.scope).toBe('reports:read')
    await app.events()
    const wider = await ask('reports:read admin')
    expect(wider).toMatchObject(refusal('invalid_scope'))
    expect(wider.body.error_description).toBe(
      'A requested scope is not allowed. Allowed: reports:read reports:write.',
    )
    expect(await ask('"')).toMatchObject(refusal('invalid_scope'))
    expect(await types()).toEqual([])
  })

  test('TOK-14 a grant that the client may not use is unauthorized_client, an unknown one unsupported_grant_type', async () => {
    const ask = (grant_type: string) => post(app, '/oauth/token', { grant_type, ...secretOf(client) })
    expect(await ask('client_credentials')).toMatchObject(refusal('unauthorized_client'))
    expect(await ask('password')).toMatchObject(refusal('unsupported_grant_type'))
    expect(await post(app, '/oauth/token', secretOf(client))).toMatchObject(refusal('invalid_request'))
  })
})
