import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { sweep } from '#src/operations/sweep.ts'
import { startApp } from '#test/support/app.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { addCode, basic, grantTokens, post, redeem, refresh, secretOf } from '#test/support/tokens.ts'

const app = await startApp()
const alice = await addUser(app, 'alice')
const client = await addClient(app, 'shop')

const spa = await addClient(app, 'spa', { type: 'public', token_endpoint_auth_method: 'none' })
const service = await addClient(app, 'service', {
  grant_types: ['client_credentials'],
  redirect_uris: [],
  scopes: ['reports:read', 'reports:write'],
})
await app.events()

const refusal = (error: string, status = 400) => ({
  status,
  body: { error, status },
})

describe('client authentication', () => {
  const form = { grant_type: 'client_credentials' }
  const { client_id, client_secret = '' } = secretOf(service)

  test('O-37 two methods at once or two client ids are invalid_request', async () => {
    const headers = basic(client_id, client_secret)
    const both = await post(app, '/oauth/token', { ...form, ...secretOf(service) }, { headers })
    expect(both).toMatchObject(refusal('invalid_request'))
    const names = await post(app, '/oauth/token', { ...form, client_id: 'shop' }, { headers })
    expect(names).toMatchObject(refusal('invalid_request'))
  })

  test('O-38 Basic is decoded as form parts; an unreadable header is 401 with the scheme', async () => {
    expect((await post(app, '/oauth/token', form, { headers: basic(client_id, client_secret) })).status).toBe(
      200,
    )
    const encode = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
    const escaped = encode(`%73ervice:${client_secret}`)
    expect((await post(app, '/oauth/token', form, { headers: { authorization: escaped } })).status).toBe(200)
    for (const authorization of [
      encode('service'),
      'Basic %%%',
      encode('service:%zz'),
      'Basic',
      'Digest x',
    ]) {
      const answer = await post(app, '/oauth/token', form, { headers: { authorization } })
      expect(answer).toMatchObject(refusal('invalid_client', 401))
      expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /)
    }
  })

  test('O-39 a public client with a secret, a confidential client without, and Basic from a client registered for the form', async () => {
    const code = await addCode(app, spa, alice)
    expect(await redeem(app, spa, code, { client_secret: 'x' })).toMatchObject(refusal('invalid_client', 401))
    expect(await post(app, '/oauth/token', { ...form, client_id })).toMatchObject(
      refusal('invalid_client', 401),
    )
    const poster = await addClient(app, 'poster', {
      grant_types: ['client_credentials'],
      redirect_uris: [],
      token_endpoint_auth_method: 'client_secret_post',
    })
    const headers = basic('poster', poster.client_secret)
    expect(await post(app, '/oauth/token', form, { headers })).toMatchObject(refusal('invalid_client', 401))
    expect((await post(app, '/oauth/token', { ...form, ...secretOf(poster) })).status).toBe(200)
    expect((await redeem(app, spa, code)).status).toBe(200)
  })

  test('TOK-16 an unknown client and a wrong secret get the same answer', async () => {
    const unknown = await post(app, '/oauth/token', { ...form, client_id: 'nobody', client_secret: 'x' })
    const wrong = await post(app, '/oauth/token', { ...form, client_id, client_secret: 'x' })
    const { request_id: _, ...said } = unknown.body
    expect(wrong).toMatchObject({ status: unknown.status, body: said })
  })

  test('O-63 a regenerated secret takes effect at once, and a code issued before is redeemed with it', async () => {
    const renewed = await addClient(app, 'renewed')
    const code = await addCode(app, renewed, alice)
    const { body } = await app.admin('POST', '/clients/renewed/secret')
    expect(await redeem(app, renewed, code)).toMatchObject(refusal('invalid_client', 401))
    expect((await redeem(app, body, code)).status).toBe(200)
  })
})

describe('the form', () => {
  const good = { grant_type: 'client_credentials', ...secretOf(service) }
  const text = new URLSearchParams(good).toString()
  const send = (init: RequestInit, path = '/oauth/token') => app.call(path, { method: 'POST', ...init })
  const type = 'application/x-www-form-urlencoded'

  test('O-40 a repeated parameter is invalid_request, even with the same value', async () => {
    for (const more of ['&grant_type=client_credentials', '&scope=a&scope=a', '&foo=1&foo=2']) {
      const answer = await send({ body: text + more, headers: { 'content-type': type } })
      expect(await answer.json()).toMatchObject({ error: 'invalid_request', status: 400 })
    }
  })

  test('O-41 parameters in the query, JSON, another or no content type; a charset is accepted', async () => {
    const query = await send({ headers: { 'content-type': type } }, `/oauth/token?${text}`)
    expect(query.status).toBe(400)
    const mixed = await send(
      { body: text, headers: { 'content-type': type } },
      '/oauth/token?scope=reports:read',
    )
    expect(mixed.status).toBe(400)
    for (const query of ['scope', 'resource=', 'client_secret=%ff', 'a=b&code=c&code=c']) {
      const { status } = await send(
        { body: text, headers: { 'content-type': type } },
        `/oauth/token?${query}`,
      )
      expect([query, status]).toEqual([query, 400])
    }
    for (const contentType of ['application/json', 'text/plain']) {
      const answer = await send({ body: JSON.stringify(good), headers: { 'content-type': contentType } })
      expect(answer.status).toBe(415)
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
    const charset = await send({ body: text, headers: { 'content-type': `${type}; charset=utf-8` } })
    expect(charset.status).toBe(200)
    expect((await app.call('/oauth/token')).status).toBe(405)
  })

  test('O-41 a query without a parameter of the request is ignored, such as the one that MSAL sends', async () => {
    await app.events()
    for (const query of ['client-request-id=0199&x=1&x=2', '', '%ff=1']) {
      const answer = await send({ body: text, headers: { 'content-type': type } }, `/oauth/token?${query}`)
      expect([query, answer.status]).toEqual([query, 200])
    }
    expect((await app.events()).map(event => event.type)).toEqual(Array(3).fill('token.issued'))
  })

  test('O-42 every answer has no-store, and every refusal the standard error body', async () => {
    const answer = await post(app, '/oauth/token', { grant_type: 'nonsense' })
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('pragma')).toBe('no-cache')
    expect(answer.body).toEqual({
      error: 'invalid_request',
      error_description: expect.any(String),
      status: 400,
      request_id: answer.headers.get('x-request-id'),
    })
  })

  test('O-57 a body over 64 KiB is 413, a hundred thousand parameters 400, and the next request works', async () => {
    const large = await send({ body: `${text}&x=${'y'.repeat(70_000)}`, headers: { 'content-type': type } })
    expect(large.status).toBe(413)
    expect(await large.json()).toMatchObject({ error: 'payload_too_large', status: 413 })
    const many = await send({ body: 'a&'.repeat(30_000), headers: { 'content-type': type } })
    expect(many.status).toBe(400)
    expect((await post(app, '/oauth/token', good)).status).toBe(200)
  })

  test('O-58 NUL, broken escapes and broken UTF-8 are 400', async () => {
    for (const more of ['&scope=%00', '&scope=%zz', '&scope=%ff', '&scope=%ed%a0%80'])
      expect((await send({ body: text + more, headers: { 'content-type': type } })).status).toBe(400)
    const bytes = await send({
      body: new Uint8Array([0x61, 0x3d, 0xff]),
      headers: { 'content-type': type },
    })
    expect(bytes.status).toBe(400)
  })
})

describe('O-36 guessing', () => {
  const guesses = {
    'client secrets': () =>
      post(
        app,
        '/oauth/token',
        { grant_type: 'client_credentials', client_id: 'service', client_secret: 'x' },
        { ip },
      ),
    codes: () => redeem(app, spa, 'guess', {}, { ip }),
    'refresh tokens': () => refresh(app, spa, 'guess', {}, { ip }),
    'refresh tokens at revocation': () => post(app, '/oauth/revoke', { token: 'guess' }, { ip }),
  }
  let ip = ''
  const good = () =>
    post(app, '/oauth/token', { grant_type: 'client_credentials', ...secretOf(service) }, { ip })

  for (const [index, [what, guess]] of Object.entries(guesses).entries())
    test(`O-36 thirty wrong ${what} from one address within a minute: 429, for a minute, for that address`, async () => {
      ip = `198.51.100.${index}`
      for (let i = 0; i < 30; i++) expect((await guess()).status).not.toBe(429)
      const refused = await guesses['client secrets']()
      expect(refused).toMatchObject(refusal('rate_limited', 429))
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await good()).status).toBe(200)
      const address = ip
      ip = '203.0.113.9'
      expect((await guesses.codes()).status).toBe(400)
      ip = address
      app.clock.advance(MINUTE)
      expect((await guesses.codes()).status).toBe(400)
    })

  test('O-36 a throttled caller gets 200 at /oauth/revoke, and nothing is revoked', async () => {
    ip = '198.51.100.77'
    const tokens = await grantTokens(app, spa, alice)
    for (let i = 0; i < 30; i++) await guesses.codes()
    const answer = await post(app, '/oauth/revoke', { token: tokens.refresh_token }, { ip })
    expect(answer).toMatchObject({ status: 200, body: '' })
    expect((await refresh(app, spa, tokens.refresh_token)).status).toBe(200)
    await app.events()
  })

  test('a code or refresh token that was valid before does not count as a guess', async () => {
    ip = '198.51.100.78'
    const tokens = await grantTokens(app, spa, alice)
    await refresh(app, spa, tokens.refresh_token)
    for (let i = 0; i < 40; i++)
      expect((await refresh(app, spa, tokens.refresh_token, {}, { ip })).status).toBe(400)
    // A code that is too long for a URL is stored.
    for (const nonce of ['short', 'long'.repeat(100)]) {
      const code = await addCode(app, spa, alice, { nonce })
      for (let i = 0; i < 40; i++)
        expect((await redeem(app, spa, code, { code_verifier: 'x'.repeat(43) }, { ip })).status).toBe(400)
    }
    expect((await guesses.codes()).status).toBe(400)
    await app.events()
  })

  test('a refresh token whose session is deleted is no guess, at any client', async () => {
    ip = '198.51.100.80'
    const mobile = await addClient(app, 'mobile', { type: 'public', token_endpoint_auth_method: 'none' })
    const { refresh_token } = await grantTokens(app, mobile, alice)
    await post(app, '/oauth/revoke', { token: refresh_token })
    app.clock.advance(DAY + 10 * MINUTE)
    await sweep(app.context)
    const left = await app.context.store.read(q =>
      q.$count(q.tables.sessions, eq(q.tables.sessions.client_id, 'mobile')),
    )
    expect(left).toBe(0)
    await app.events()
    const ended = { error: 'invalid_grant', error_description: 'The session has ended.' }
    for (let i = 0; i < 20; i++) {
      expect((await refresh(app, mobile, refresh_token, {}, { ip })).body).toMatchObject(ended)
      expect((await refresh(app, spa, refresh_token, {}, { ip })).body).toMatchObject(ended)
      expect((await post(app, '/oauth/revoke', { token: refresh_token }, { ip })).status).toBe(200)
    }
    expect(await app.events()).toEqual([])
    const invented = `${'a'.repeat(43)}${refresh_token.slice(43)}`
    for (let i = 0; i < 30; i++)
      expect((await refresh(app, mobile, invented, {}, { ip })).body.error).toBe('invalid_grant')
    expect((await refresh(app, mobile, invented, {}, { ip })).status).toBe(429)
    expect(await app.events()).toEqual([])
  })

  test('H-22 forged codes and tokens do not throttle a client with the right secret', async () => {
    ip = '198.51.100.79'
    await app.events()
    const failures = async () =>
      (await app.context.store.read(async q => q.select().from(q.tables.throttles))).find(
        ({ key }) => key === `secrets:${ip}`,
      )?.failures
    for (let i = 0; i < 20; i++) {
      expect((await redeem(app, client, 'forged', {}, { ip })).status).toBe(400)
      expect((await refresh(app, client, 'forged', {}, { ip })).status).toBe(400)
      expect(
        (await post(app, '/oauth/revoke', { token: 'forged', ...secretOf(client) }, { ip })).status,
      ).toBe(200)
    }
    expect([(await good()).status, await failures()]).toEqual([200, undefined])
    // Failures of other clients at the same address block requests with a missing or wrong secret.
    for (let i = 0; i < 35; i++) await guesses['client secrets']()
    const tokens = await grantTokens(app, client, alice)
    expect((await refresh(app, client, tokens.refresh_token, {}, { ip })).status).toBe(200)
    expect([(await good()).status, (await guesses.codes()).status, await failures()]).toEqual([200, 429, 30])
    expect((await app.events()).map(({ type }) => type)).toEqual([
      'token.issued',
      'user.login',
      'session.created',
      'token.issued',
      'token.refreshed',
      'token.issued',
    ])
  })
})
