/** Tests https://openid.net/specs/openid-connect-backchannel-1_0.html over sockets: the application is a real server. */
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { deliverLogouts } from '#src/sessions/logout-delivery.ts'
import { BASE, type Json, startApp, type TestApp } from '#test/support/app.ts'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { addClient, addUser, authorizeUrl, logInTo, PASSWORD, signIn } from '#test/support/people.ts'
import { claimsOf, get, grantTokens, headerOf, redeem, refresh } from '#test/support/tokens.ts'

interface Received {
  method: string
  path: string
  type: string | null
  form: URLSearchParams
  token: string
}

let received: Received[]
/** Status of the application's answers. */
let status: number
const application = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname, search } = new URL(request.url)
    const form = new URLSearchParams(await request.text())
    const type = request.headers.get('content-type')
    const token = form.get('logout_token') ?? ''
    received.push({ method: request.method, path: pathname + search, type, form, token })
    return new Response(null, { status, headers: { location: '/elsewhere' } })
  },
})
afterAll(() => application.stop(true))

let app: TestApp
let user: Json
const uriOf = (client_id: string) => `http://127.0.0.1:${application.port}/${client_id}?tenant=1&a=%20b`
const addListener = (client_id: string) =>
  addClient(app, client_id, { backchannel_logout_uri: uriOf(client_id) })

beforeEach(async () => {
  received = []
  status = 200
  app = await startApp({ outbound_allow: [`127.0.0.1:${application.port}`] })
  user = await addUser(app, 'ada')
})

const deliver = () => deliverLogouts(app.context)
const endAll = () => app.admin('DELETE', `/users/${user.id}/sessions`)
const sidOf = (tokens: Json): string => claimsOf(tokens.id_token).sid
const sids = () => received.map(({ token }) => claimsOf(token).sid)

test('BCL-12 sid names one session of ID tokens, and has the characters of a client identifier', async () => {
  const shop = await addListener('shop')
  const sessions = [await grantTokens(app, shop, user), await grantTokens(app, shop, user)]
  const [one = '', other = ''] = sessions.map(sidOf)
  expect(one).toMatch(/^[\x20-\x7e]+$/)
  expect(other).not.toBe(one)
  const renewed = (await refresh(app, shop, sessions[0]?.refresh_token)).body
  expect(claimsOf(renewed.access_token).sid).toBe(one)
  await app.admin('DELETE', `/sessions/sess_${one}`)
  await deliver()
  expect(sids()).toEqual([one])
})

test('BCL-13 the request is a form, posted to the registered URI with its query', async () => {
  await grantTokens(app, await addListener('shop'), user)
  await endAll()
  await deliver()
  expect(received.map(({ method, path, type }) => [method, path, type?.split(';')[0]])).toEqual([
    ['POST', '/shop?tenant=1&a=%20b', 'application/x-www-form-urlencoded'],
  ])
  expect([...(received[0]?.form.keys() ?? [])]).toEqual(['logout_token'])
})

describe('BCL-14 the end of a login', () => {
  test('BCL-14 is sent to each client with a session, at once, and to no other', async () => {
    const [shop, wiki] = [await addListener('shop'), await addListener('wiki')]
    await addListener('idle')
    await addClient(app, 'deaf')
    const browser = openBrowser(app)
    const codes = [await logInTo(browser, 'shop', 'ada')]
    for (const client_id of ['wiki', 'deaf']) {
      const { location = '' } = await browser.get(authorizeUrl(client_id))
      codes.push(Object.fromEntries(new URL(location).searchParams))
    }
    const first = (await redeem(app, shop, codes[0]?.code ?? '')).body
    const second = (await redeem(app, wiki, codes[1]?.code ?? '')).body
    const elsewhere = await grantTokens(app, shop, await addUser(app, 'bob'))
    await browser.get(`/oauth/logout?id_token_hint=${first.id_token}`)
    await deliver()
    expect(received.map(({ path }) => path.split('?')[0]).sort()).toEqual(['/shop', '/wiki'])
    expect(sids().sort()).toEqual([sidOf(first), sidOf(second)].sort())
    expect(sids()).not.toContain(sidOf(elsewhere))
  })

  test('BCL-14 on the page of the account is sent too', async () => {
    const shop = await addListener('shop')
    const browser = openBrowser(app)
    const { code } = await logInTo(browser, 'shop', 'ada')
    const tokens = (await redeem(app, shop, code ?? '')).body
    const account = await browser.get('/account')
    await browser.submit(account, {}, '/account/logout')
    await deliver()
    expect(sids()).toEqual([sidOf(tokens)])
  })

  test('BCL-14 by a login of another user keeps the sessions', async () => {
    const shop = await addListener('shop')
    await addUser(app, 'bob')
    const browser = openBrowser(app)
    const { code } = await logInTo(browser, 'shop', 'ada')
    await redeem(app, shop, code ?? '')
    await signIn(browser, await browser.get(authorizeUrl('shop', { prompt: 'login' })), 'bob')
    await deliver()
    expect(received).toEqual([])
  })
})

describe('BCL-08 the person ends', () => {
  type Both = { mine: string; other: string }
  const NEW = 'Another-horse-8'
  test.each<[string, (browser: Browser) => Promise<unknown>, (sids: Both) => string[]]>([
    [
      'the other browser',
      async browser => browser.submit(await browser.get('/account'), {}, '/account/logins'),
      ({ other }) => [other],
    ],
    [
      'everything else',
      async browser => browser.submit(await browser.get('/account'), {}, '/account/logins/others'),
      ({ other }) => [other],
    ],
    [
      'all sessions by a new password',
      async browser =>
        browser.submit(await browser.get('/account/change-password'), {
          current_password: PASSWORD,
          password: NEW,
          password_repeat: NEW,
        }),
      ({ mine, other }) => [mine, other],
    ],
    [
      'the access of the application',
      async browser =>
        browser.submit(
          await browser.get('/account/applications'),
          { client_id: 'shop' },
          '/account/applications/disconnect',
        ),
      ({ mine, other }) => [mine, other],
    ],
  ])('BCL-08 %s, and the application is told', async (_, act, told) => {
    const shop = await addListener('shop')
    const [browser, elsewhere] = [openBrowser(app), openBrowser(app)]
    const logIn = async (by: Browser) =>
      sidOf((await redeem(app, shop, (await logInTo(by, 'shop', 'ada')).code ?? '')).body)
    const both = { mine: await logIn(browser), other: await logIn(elsewhere) }
    await act(browser)
    await deliver()
    expect(sids().sort()).toEqual(told(both).sort())
  })
})

test('BCL-15 the refresh tokens of a reported session have ended', async () => {
  const shop = await addListener('shop')
  const [ended, other] = [await grantTokens(app, shop, user), await grantTokens(app, shop, user)]
  await app.admin('DELETE', `/sessions/sess_${sidOf(ended)}`)
  await deliver()
  expect(sids()).toEqual([sidOf(ended)])
  expect((await refresh(app, shop, ended.refresh_token)).body.error).toBe('invalid_grant')
  expect((await refresh(app, shop, other.refresh_token)).status).toBe(200)
})

describe('BCL-16 the answer', () => {
  const outcomeOf = async (answer: number) => {
    status = answer
    await grantTokens(app, await addListener('shop'), user)
    await endAll()
    await deliver()
    return (await app.admin('GET', '/clients/shop/logouts')).body.data[0]
  }

  test.each([200, 204])('BCL-16 %d is success', async answer => {
    expect(await outcomeOf(answer)).toMatchObject({ status: 'delivered', attempts: 1, failure: null })
  })

  test.each([302, 404, 500, 501, 503, 504])(
    'BCL-07 %d is tried again, without following a redirect',
    async answer => {
      expect(await outcomeOf(answer)).toMatchObject({
        status: 'waiting',
        attempts: 1,
        failure: `The application answered ${answer}.`,
      })
      expect(received).toHaveLength(1)
    },
  )

  test('BCL-07 400 is not tried again', async () => {
    expect(await outcomeOf(400)).toMatchObject({ status: 'failed', attempts: 1 })
  })
})

test('a metric counts attempts by outcome', async () => {
  const counted = () =>
    app.context.store.metrics
      .render()
      .split('\n')
      .filter(line => line.startsWith('gatehouse_logouts_total{'))
  const shop = await addListener('shop')
  for (const answer of [503, 200, 400]) {
    status = answer
    await grantTokens(app, shop, user)
    await endAll()
    app.clock.advance(MINUTE)
    await deliver()
  }
  await app.admin('PUT', '/clients/shop', { backchannel_logout_uri: 'http://127.0.0.1:1/' })
  await grantTokens(app, shop, user)
  await endAll()
  await deliver()
  expect(counted()).toEqual([
    'gatehouse_logouts_total{outcome="failed"} 3',
    'gatehouse_logouts_total{outcome="delivered"} 2',
  ])
})

test('BCL-17 each logout has a jti of its own, and a signature by a published key', async () => {
  const shop = await addListener('shop')
  await grantTokens(app, shop, user)
  await grantTokens(app, shop, user)
  await endAll()
  await deliver()
  expect(new Set(received.map(({ token }) => claimsOf(token).jti)).size).toBe(2)
  const keys = createLocalJWKSet((await get(app, '/.well-known/jwks.json')).body)
  const { id_token_signing_alg_values_supported } = (await get(app, '/.well-known/openid-configuration')).body
  for (const { token } of received) {
    const options = { issuer: BASE, audience: 'shop', typ: 'logout+jwt' }
    await jwtVerify(token, keys, { ...options, currentDate: new Date(app.clock.now() + SECOND) })
    expect(id_token_signing_alg_values_supported).toContain(headerOf(token).alg)
    expect(claimsOf(token)).not.toHaveProperty('nonce')
  }
})
