/** Tests that the test login of an application shows the values that a real login produces. */
import { beforeEach, expect, test } from 'bun:test'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, authorizeUrl, logInTo } from '#test/support/people.ts'
import { bearer, claimsOf, get, headerOf, redeem } from '#test/support/tokens.ts'

let app: TestApp
let ada: Json
let shop: Json
const attributes = { team: 'red', phone_number: '+49 30 1' }
const API = 'https://orders.example'

beforeEach(async () => {
  app = await startApp()
  const { status } = await app.admin('PUT', '/organizations/default', {
    settings: {
      session_ttl: '10m',
      user_attributes: [
        { name: 'team', type: 'string' },
        { name: 'phone_number', type: 'string' },
        { name: 'rank', type: 'integer', visible: 'nobody', editable: 'nobody' },
        { name: 'nickname', type: 'string', visible: 'nobody', editable: 'nobody' },
      ],
    },
  })
  expect(status).toBe(200)
  ada = await addUser(app, 'ada', { last_name: '', attributes })
  await create(app, '/roles', { name: 'editor', permissions: ['users:read'] })
  const staff = await create(app, '/groups', { name: 'Staff', roles: ['editor'] })
  await app.admin('PUT', `/groups/${staff.id}/members/${ada.id}`)
  shop = await addClient(app, 'shop', {
    scopes: ['openid', 'profile', 'email', 'phone', 'groups', 'roles', 'users:read'],
    claims: { team: 'user.attributes.team', mail: { from: 'user.email', scope: 'email' } },
  })
  const scope = (name: string, role: string | null, claims = {}) => ({
    name,
    texts: { en: name },
    role,
    claims,
  })
  await create(app, '/apis', {
    identifier: API,
    name: 'Orders',
    scopes: [
      scope('orders.read', null, { desk: 'user.attributes.team' }),
      scope('orders.edit', 'editor'),
      scope('orders.purge', 'admin'),
    ],
    clients: [{ client_id: 'shop', scopes: ['orders.read', 'orders.edit', 'orders.purge'] }],
    access_token_ttl: 120,
    access_token_alg: 'ES384',
  })
})

type Asked = Record<string, string | undefined>
const ask = (asked: Asked = {}, user: Json = ada, client = 'shop') => {
  const given = Object.entries(asked).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return app.admin(
    'GET',
    `/clients/${client}/test-login?${new URLSearchParams([['user_id', user.id], ...given])}`,
  )
}
const withoutLogin = ({ jti, sid, auth_time, acr, amr, nonce, at_hash, ...claims }: Json) => claims
const tokenOf = (token: string) => {
  const { alg, typ } = headerOf(token)
  return { alg, typ, claims: withoutLogin(claimsOf(token)) }
}

/** Returns the tokens of a real login in a browser. */
const logIn = async (asked: Asked) => {
  const { code } = await logInTo(openBrowser(app), 'shop', 'ada', { scope: undefined, nonce: 'n', ...asked })
  const { body } = await redeem(app, shop, code ?? '')
  const userinfo = await get(app, '/oauth/userinfo', { headers: bearer(body.access_token) })
  return {
    refusal: null,
    scope: body.scope,
    id_token: body.id_token ? tokenOf(body.id_token) : null,
    access_token: tokenOf(body.access_token),
    userinfo: userinfo.status === 200 ? userinfo.body : null,
  }
}

const requests: Asked[] = [
  {},
  { scope: 'openid profile email phone groups roles users:read' },
  { scope: 'profile' },
  { scope: 'openid groups orders.read orders.edit orders.purge', resource: API },
  { scope: 'orders.purge', resource: `${API}/` },
]
test.each(requests)('TST-01 shows the claims of a real login: %p', async asked => {
  for (const change of [
    {},
    { access_token_typ: 'JWT', id_token_signed_response_alg: 'ES256', access_token_ttl: 60, claims: {} },
  ]) {
    await app.admin('PUT', '/clients/shop', change)
    const { status, body } = await ask(asked)
    expect(status).toBe(200)
    const { hidden, ...shown } = body
    expect(shown).toEqual(await logIn(asked))
    expect(hidden).toEqual([])
  }
})

test('TST-01 makes no token, session, event or other row', async () => {
  await app.events()
  const dump = () =>
    app.context.store.read(q =>
      Promise.all(Object.values(q.tables).map(table => q.select().from(table as typeof q.tables.users))),
    )
  const before = await dump()
  const { body } = await ask({ scope: 'openid profile' })
  expect(body.access_token.claims.sub).toBe(ada.id.slice(4))
  expect(JSON.stringify(body)).not.toMatch(/\beyJ/)
  expect(await dump()).toEqual(before)
  expect(await app.events()).toEqual([])
})

const refusal = (error: string) => ({
  status: 200,
  body: {
    refusal: { error, error_description: expect.any(String) },
    ...{ scope: null, id_token: null, access_token: null, userinfo: null, hidden: [] },
  },
})

const wrong: [string, Asked][] = [
  ['invalid_scope', { scope: 'openid orders.read' }],
  ['invalid_scope', { scope: 'openid "' }],
  ['invalid_target', { resource: 'https://unknown.example' }],
]
test.each(wrong)(
  'TST-02 refuses a request as the authorization endpoint does: %s %p',
  async (error, asked) => {
    const { body } = await ask(asked)
    const page = await openBrowser(app).get(authorizeUrl('shop', { scope: undefined, ...asked }))
    expect(body).toEqual(refusal(error).body)
    expect(answerOf(page).error).toBe(error)
  },
)

test('TST-02 says why a user gets in nowhere', async () => {
  const acme = await addOrganization(app, 'acme')
  const bob = await addUser(app, 'bob', { organization_id: acme.id })
  expect(await ask({}, bob)).toMatchObject(refusal('invalid_request'))
  await app.admin('PUT', '/clients/shop', { allowed_roles: ['admin'] })
  expect(await ask()).toMatchObject(refusal('access_denied'))
  await app.admin('PUT', '/clients/shop', { allowed_roles: ['editor'] })
  expect((await ask()).body.refusal).toBe(null)
  await app.admin('PUT', `/users/${ada.id}`, { enabled: false })
  expect(await ask()).toMatchObject(refusal('access_denied'))
  await addClient(app, 'job', { grant_types: ['client_credentials'], redirect_uris: [] })
  expect(await ask({}, ada, 'job')).toMatchObject(refusal('unauthorized_client'))
})

test('TST-03 names the claims whose values administrators do not see', async () => {
  const claims = { ...shop.claims, level: 'user.attributes.rank', all: 'user.username' }
  await app.admin('PUT', '/clients/shop', { claims })
  // The test stores the attributes itself. The admin API cannot set attributes with `editable: nobody`.
  await app.context.store.write(async tx => {
    await tx.update(tx.tables.users).set({ attributes: { ...attributes, rank: 7, nickname: 'Countess' } })
  })
  const { body } = await ask({ scope: 'openid profile' })
  expect(body.hidden).toEqual(['level', 'nickname'])
  expect(JSON.stringify(body)).not.toContain('Countess')
  const tokens = [body.id_token.claims, body.access_token.claims, body.userinfo]
  expect(tokens.map(claims => [claims.all, claims.team, 'level' in claims, 'nickname' in claims])).toEqual(
    Array(3).fill(['ada', 'red', false, false]),
  )
})

test("TST-03 a rule of the client that gives no value does not uncover the API's hidden value", async () => {
  const claims = {
    desk: { from: 'user.attributes.team', scope: 'never' },
    level: 'user.attributes.phone_number',
  }
  await app.admin('PUT', '/clients/shop', { claims })
  await app.context.store.write(async tx => {
    await tx.update(tx.tables.users).set({ attributes: { team: 'red', rank: 7 } })
    const { apis } = tx.tables
    const [api] = await tx.select().from(apis)
    const scopes = api?.scopes.map(scope => ({
      ...scope,
      claims: { desk: 'user.attributes.rank', level: 'user.attributes.rank' },
    }))
    await tx.update(apis).set({ scopes })
    tx.changed('apis')
  })
  const { body } = await ask({ scope: 'openid orders.read', resource: API })
  expect(body.hidden).toEqual(['desk', 'level'])
  const { desk, level } = body.access_token.claims
  expect([desk, level]).toEqual([undefined, undefined])
})
