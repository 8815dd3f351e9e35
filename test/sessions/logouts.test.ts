import { beforeEach, describe, expect, test } from 'bun:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import type { Outbound } from '#src/context.ts'
import { DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { purge } from '#src/operations/purge.ts'
import { sweep } from '#src/operations/sweep.ts'
import { deliverLogouts } from '#src/sessions/logout-delivery.ts'
import { BASE, type Json, startApp, type TestApp } from '#test/support/app.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { bearer, claimsOf, get, grantTokens, headerOf, post, refresh } from '#test/support/tokens.ts'

interface Received {
  url: string
  method: string | undefined
  body: URLSearchParams
  token: string
}

let received: Received[]
/** Answers of the applications. */
let answer: (url: string) => Response | Promise<Response>
const fetch: Outbound = async (url, { method, body }) => {
  const form = body as URLSearchParams
  received.push({ url: String(url), method, body: form, token: form.get('logout_token') ?? '' })
  return answer(String(url))
}

let app: TestApp
let shop: Json
let user: Json
const URI = 'https://shop.example/logout'

beforeEach(async () => {
  received = []
  answer = () => new Response(null)
  app = await startApp({}, { fetch })
  shop = await addClient(app, 'shop', { backchannel_logout_uri: URI })
  user = await addUser(app, 'ada')
})

const deliver = () => deliverLogouts(app.context)
const sids = () => received.map(({ token }) => claimsOf(token).sid)
const sessionOf = (tokens: Json) => claimsOf(tokens.access_token).sid

const endOne = async () => {
  const tokens = await grantTokens(app, shop, user)
  expect((await app.admin('DELETE', `/users/${user.id}/sessions`)).status).toBe(200)
  return tokens
}

describe('a logout token', () => {
  test('BCL-03, BCL-05 has the claims of the specification and arrives in a form', async () => {
    const tokens = await endOne()
    await deliver()
    const [first] = received
    expect(first).toMatchObject({ url: URI, method: 'POST' })
    expect([...(first?.body.keys() ?? [])]).toEqual(['logout_token'])
    const iat = Math.floor(app.clock.now() / SECOND)
    expect(claimsOf(first?.token ?? '')).toEqual({
      iss: BASE,
      sub: claimsOf(tokens.id_token).sub,
      sid: claimsOf(tokens.id_token).sid,
      aud: 'shop',
      iat,
      exp: iat + 120,
      jti: expect.any(String),
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    })
  })

  test('BCL-04 has the type logout+jwt and the algorithm of ID tokens, and its signature is valid', async () => {
    await app.admin('PUT', '/clients/shop', { id_token_signed_response_alg: 'ES256' })
    await endOne()
    await deliver()
    const token = received[0]?.token ?? ''
    expect(headerOf(token)).toMatchObject({ alg: 'ES256', typ: 'logout+jwt' })
    const keys = createLocalJWKSet((await get(app, '/.well-known/jwks.json')).body)
    const currentDate = new Date(app.clock.now())
    await jwtVerify(token, keys, { issuer: BASE, audience: 'shop', typ: 'logout+jwt', currentDate })
  })

  test('BCL-09 is neither an access token nor an ID token hint', async () => {
    await grantTokens(app, shop, user)
    await endOne()
    await deliver()
    const token = received[0]?.token ?? ''
    expect((await get(app, '/oauth/userinfo', { headers: bearer(token) })).status).toBe(401)
    expect(await app.context.keys.open(token)).toBeUndefined()
  })
})

test('BCL-01 discovery names it', async () => {
  expect((await get(app, '/.well-known/openid-configuration')).body).toMatchObject({
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
  })
})

describe('BCL-02 the logout URI', () => {
  for (const uri of [
    '',
    '/logout',
    'https://shop.example/#x',
    'ftp://shop.example',
    'https://a:b@shop.example/',
    'https://shop.example/\n',
    'https://shop.example/\0',
  ])
    test(`BCL-02 ${uri || 'an empty text'} is refused`, async () => {
      const { status, body } = await app.admin('PUT', '/clients/shop', { backchannel_logout_uri: uri })
      expect([status, body.details[0].field]).toEqual([422, 'backchannel_logout_uri'])
    })

  test('BCL-02 of a public client is https', async () => {
    await addClient(app, 'spa', { type: 'public' })
    const { status } = await app.admin('PUT', '/clients/spa', { backchannel_logout_uri: 'http://a.example/' })
    expect(status).toBe(422)
  })
})

describe('every end of a session', () => {
  const ends: Record<string, (tokens: Json) => Promise<unknown>> = {
    'revocation by an administrator': tokens => app.admin('DELETE', `/sessions/sess_${sessionOf(tokens)}`),
    'revocation of many': () => app.admin('DELETE', '/sessions?client_id=shop'),
    'revocation by the client': tokens =>
      post(app, '/oauth/revoke', {
        token: tokens.refresh_token,
        client_id: 'shop',
        client_secret: shop.client_secret,
      }),
    'a reused refresh token': async tokens => {
      await refresh(app, shop, tokens.refresh_token)
      await refresh(app, shop, tokens.refresh_token)
    },
    'a hinted logout': tokens => get(app, `/oauth/logout?id_token_hint=${tokens.id_token}`),
    'a new password': () =>
      app.admin('POST', `/users/${user.id}/reset-password`, { password: 'Another-horse-9' }),
    'deletion of the user': () => app.admin('DELETE', `/users/${user.id}`),
    'deletion of the client': () => app.admin('DELETE', '/clients/shop'),
  }
  for (const [name, end] of Object.entries(ends))
    test(`BCL-08 ${name} is reported once`, async () => {
      const tokens = await grantTokens(app, shop, user)
      await end(tokens)
      await deliver()
      await deliver()
      expect(sids()).toEqual([sessionOf(tokens)])
    })

  test('BCL-08 deletion of the organization is reported', async () => {
    const { id: organization_id } = await addOrganization(app, 'acme')
    const client = await addClient(app, 'acme-shop', { organization_id, backchannel_logout_uri: URI })
    const eve = await addUser(app, 'eve', { organization_id })
    const tokens = await grantTokens(app, client, eve)
    expect((await app.admin('DELETE', `/organizations/${organization_id}`)).status).toBe(204)
    await purge(app.context)
    await deliver()
    expect(sids()).toEqual([sessionOf(tokens)])
  })

  test('BCL-08 an expiry is reported if the client asks for it', async () => {
    await grantTokens(app, shop, user)
    const keen = await addClient(app, 'keen', {
      backchannel_logout_uri: 'https://keen.example/',
      backchannel_logout_on_expiry: true,
    })
    await grantTokens(app, keen, user)
    app.clock.advance(40 * DAY)
    await sweep(app.context)
    await deliver()
    expect(received.map(({ url }) => url)).toEqual(['https://keen.example/'])
  })

  test('BCL-08 for a client without logout URI no logout is stored', async () => {
    await app.admin('PUT', '/clients/shop', { backchannel_logout_uri: null })
    await endOne()
    const rows = await app.context.store.read(q => q.select().from(q.tables.logouts))
    expect(rows).toEqual([])
  })
})

describe('an application that fails', () => {
  test('BCL-06, BCL-07 gets its logouts in order once it is back, with new times and the same jti', async () => {
    answer = () => new Response(null, { status: 503 })
    const first = await endOne()
    app.clock.advance(SECOND)
    const second = await endOne()
    for (let waited = 0; waited < HOUR; waited += MINUTE) {
      await deliver()
      app.clock.advance(MINUTE)
    }
    expect(new Set(sids())).toEqual(new Set([sessionOf(first)]))
    const before = claimsOf(received[0]?.token ?? '')
    received = []
    answer = () => new Response(null, { status: 204 })
    app.clock.advance(12 * MINUTE)
    await deliver()
    expect(sids()).toEqual([sessionOf(first), sessionOf(second)])
    const after = claimsOf(received[0]?.token ?? '')
    expect(after.jti).toBe(before.jti)
    expect(after.exp - after.iat).toBe(120)
    expect(after.iat).toBe(Math.floor(app.clock.now() / SECOND))
  })

  test('BCL-07, BCL-11 is not asked again after 400, and administrators see why', async () => {
    answer = () => new Response(null, { status: 400 })
    const tokens = await endOne()
    await deliver()
    app.clock.advance(HOUR)
    await deliver()
    expect(received).toHaveLength(1)
    const { status, body } = await app.admin('GET', '/clients/shop/logouts')
    expect(status).toBe(200)
    expect(body.data).toEqual([
      {
        jti: claimsOf(received[0]?.token ?? '').jti,
        user_id: user.id,
        session_id: `sess_${sessionOf(tokens)}`,
        status: 'failed',
        attempts: 1,
        failure: 'The application answered 400.',
        created_at: expect.any(String),
        next_attempt_at: null,
        done_at: expect.any(String),
      },
    ])
    app.clock.advance(8 * DAY)
    await sweep(app.context)
    expect((await app.admin('GET', '/clients/shop/logouts')).body.data).toEqual([])
  })

  test('BCL-10 to answer delays no other client', async () => {
    const other = await addClient(app, 'other', { backchannel_logout_uri: 'https://other.example/' })
    const silent = Promise.withResolvers<Response>()
    const heard = Promise.withResolvers<void>()
    answer = url => {
      if (url === URI) return silent.promise
      heard.resolve()
      return new Response(null)
    }
    await grantTokens(app, other, user)
    await endOne()
    const delivery = deliver()
    await heard.promise
    silent.resolve(new Response(null))
    await delivery
    expect(received.map(({ url }) => url).sort()).toEqual(['https://other.example/', URI])
  })
})

describe('BCL-19 a new logout URI', () => {
  const outcomes = async () =>
    (await app.admin('GET', '/clients/shop/logouts?order=asc')).body.data.map(
      ({ status, attempts, failure }: Json) => [status, attempts, failure],
    )
  let ended: string[]
  beforeEach(async () => {
    answer = url => new Response(null, { status: url === URI ? 500 : 200 })
    ended = [sessionOf(await endOne())]
    app.clock.advance(1)
    ended.push(sessionOf(await endOne()))
    await deliver()
    expect(await outcomes()).toEqual([
      ['waiting', 1, 'The application answered 500.'],
      ['waiting', 0, null],
    ])
    received = []
  })

  test('BCL-19 gets the logouts that wait, at once and in order', async () => {
    await app.admin('PUT', '/clients/shop', { backchannel_logout_uri: `${URI}/new` })
    await deliver()
    expect(received.map(({ url }) => url)).toEqual([`${URI}/new`, `${URI}/new`])
    expect(sids()).toEqual(ended)
    expect((await outcomes()).map(([status]: Json[]) => status)).toEqual(['delivered', 'delivered'])
  })

  test('BCL-19 that is null ends them', async () => {
    await app.admin('PUT', '/clients/shop', { backchannel_logout_uri: null })
    app.clock.advance(HOUR)
    await deliver()
    expect(received).toEqual([])
    const failure = 'The client has no logout URI any more.'
    const failed = [
      ['failed', 1, failure],
      ['failed', 0, failure],
    ]
    expect(await outcomes()).toEqual(failed)
    app.clock.advance(6 * DAY)
    await sweep(app.context)
    expect(await outcomes()).toEqual(failed)
    app.clock.advance(DAY)
    await sweep(app.context)
    expect(await outcomes()).toEqual([])
  })

  describe('BCL-19 among hundreds of logouts that wait', () => {
    const stored = () =>
      app.context.store.read(q => q.select().from(q.tables.logouts).orderBy(q.tables.logouts.number))
    beforeEach(async () => {
      const next = (await stored()).slice(1).map(({ number: _, ...row }) => row)
      const more = Array.from({ length: 400 }, (_, i) => next.map(row => ({ ...row, jti: `jti-${i}` })))
      await app.context.store.write(tx => tx.insert(tx.tables.logouts).values(more.flat()))
    })
    const waiting = async () => (await stored()).filter(({ done_at }) => done_at === null)

    test('is written into none, and all go there', async () => {
      const before = await stored()
      await app.admin('PUT', '/clients/shop', { backchannel_logout_uri: `${URI}/new` })
      expect(await stored()).toEqual(
        before.map((row, i) => (i > 0 ? row : { ...row, next_attempt_at: app.clock.now() })),
      )
      await deliver()
      expect(received.map(({ url }) => url)).toEqual(Array(402).fill(`${URI}/new`))
      expect(await waiting()).toEqual([])
    })

    test('that is null ends 250 at once, and the others when they are due', async () => {
      await app.admin('PUT', '/clients/shop', { backchannel_logout_uri: null })
      expect(await waiting()).toHaveLength(152)
      await deliver()
      expect([await waiting(), received]).toEqual([[], []])
    })
  })

  test('BCL-19 other changes leave them alone', async () => {
    await app.admin('PUT', '/clients/shop', { name: 'Shop' })
    await deliver()
    expect(received).toEqual([])
  })
})
