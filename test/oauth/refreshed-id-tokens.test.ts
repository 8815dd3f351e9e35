/** Tests the ID tokens that a client with `id_token_on_refresh` gets when it refreshes its tokens. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import * as oauth from 'oauth4webapi'
import { DAY, HOUR, SECOND } from '#src/lib/duration.ts'
import type { SessionId } from '#src/lib/ids.ts'
import { accessTokenHash } from '#src/protocol/oidc/claims.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { BASE, type Json, START, startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { temporaryDatabase } from '#test/support/store.ts'
import { claimsOf, grantTokens, headerOf, refresh } from '#test/support/tokens.ts'

const ORDERS = 'https://orders.example'

const app = await startApp()
const alice = await addUser(app, 'alice', { attributes: { tenant: 'north' } })
const scopes = ['openid', 'email', 'groups']
const more = { scopes, claims: { tenant: 'user.attributes.tenant' }, access_token_ttl: 600 }
const kubectl = await addClient(app, 'kubectl', { ...more, id_token_on_refresh: true })
const shop = await addClient(app, 'shop', more)
const scope = scopes.join(' ')

/** Returns the authentication that the session of the tokens has stored. */
const storedOf = ({ access_token }: Json) =>
  app.context.store.read(async q => {
    const { sessions } = q.tables
    const id: SessionId = `sess_${claimsOf(access_token).sid}`
    const [row] = await q.select().from(sessions).where(eq(sessions.id, id))
    return row?.authentication
  })
const change = (client: Json, fields: Json) => app.admin('PUT', `/clients/${client.client_id}`, fields)

/** Refreshes the tokens with oauth4webapi, which checks the claims and the signature. */
const refreshByLibrary = async (client: Json, refresh_token: string) => {
  const options = {
    [oauth.customFetch]: (url: string, init: RequestInit) => app.call(url, init),
    [oauth.allowInsecureRequests]: true,
  } as object
  const issuer = new URL(BASE)
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, options))
  const skew = Math.round((app.clock.now() - Date.now()) / SECOND)
  const self: oauth.Client = { client_id: client.client_id, [oauth.clockSkew]: skew }
  const secret = oauth.ClientSecretBasic(client.client_secret)
  const answer = await oauth.refreshTokenGrantRequest(as, self, secret, refresh_token, options)
  const tokens = await oauth.processRefreshTokenResponse(as, self, answer)
  if (tokens.id_token) await oauth.validateApplicationLevelSignature(as, answer, options)
  return tokens
}

test('TOK-21 each refresh gives an ID token with the authentication of the first, also after the login has ended', async () => {
  const auth_time = START - HOUR
  const authentication = { auth_time: auth_time / SECOND, acr: '2', amr: ['pwd', 'otp'] }
  const tokens = await grantTokens(app, kubectl, alice, { scope, ...authentication, auth_time, nonce: 'n-1' })
  const { nonce, ...first } = claimsOf(tokens.id_token)
  expect(nonce).toBe('n-1')
  expect(first).toMatchObject({ ...authentication, tenant: 'north', groups: [], azp: 'kubectl' })
  expect(await storedOf(tokens)).toEqual(authentication)
  await app.context.store.write(async tx => void (await tx.delete(tx.tables.logins)))
  await app.admin('PUT', `/users/${alice.id}`, { attributes: { tenant: 'south' } })
  await app.events()

  let { refresh_token } = tokens
  for (let i = 0; i < 2; i++) {
    app.clock.advance(DAY)
    const renewed = await refreshByLibrary(kubectl, refresh_token)
    const id_token = renewed.id_token ?? ''
    const iat = app.clock.now() / SECOND
    expect(claimsOf(id_token)).toEqual({
      ...first,
      tenant: 'south',
      iat,
      exp: iat + 600,
      at_hash: accessTokenHash(renewed.access_token, 'RS256'),
    })
    expect(headerOf(id_token)).toMatchObject({ alg: 'RS256', typ: 'JWT' })
    expect(claimsOf(renewed.access_token)).not.toHaveProperty('auth_time')
    refresh_token = renewed.refresh_token
  }
  expect((await app.events()).map(({ type, metadata }) => ({ type, metadata }))).toEqual(
    Array(2).fill({ type: 'token.refreshed', metadata: { client_id: 'kubectl' } }),
  )
  await app.admin('PUT', `/users/${alice.id}`, { attributes: { tenant: 'north' } })
})

test('TOK-21 other clients get none, and their sessions store nothing for it', async () => {
  const tokens = await grantTokens(app, shop, alice, { scope })
  expect(await storedOf(tokens)).toBeNull()
  const renewed = await refreshByLibrary(shop, tokens.refresh_token)
  expect(Object.keys(renewed).sort()).toEqual([
    'access_token',
    'expires_in',
    'refresh_token',
    'scope',
    'token_type',
  ])
})

test('TOK-21 an ID token needs the scope openid: granted, requested and still allowed to the client', async () => {
  const without = await grantTokens(app, kubectl, alice, { scope: 'email' })
  expect((await refresh(app, kubectl, without.refresh_token)).body).not.toHaveProperty('id_token')

  const tokens = await grantTokens(app, kubectl, alice, { scope })
  const narrow = await refresh(app, kubectl, tokens.refresh_token, { scope: 'email' })
  expect(narrow.body).not.toHaveProperty('id_token')
  const full = await refresh(app, kubectl, narrow.body.refresh_token)
  expect(claimsOf(full.body.id_token).sub).toBe(claimsOf(tokens.id_token).sub)

  await change(kubectl, { scopes: ['email'] })
  const lost = await refresh(app, kubectl, full.body.refresh_token)
  expect([lost.body.scope, lost.body.id_token]).toEqual(['email', undefined])
  await change(kubectl, { scopes })
})

test('TOK-21 the field counts at the start of the session and at the refresh', async () => {
  const early = await grantTokens(app, shop, alice)
  await app.events()
  expect((await change(shop, { id_token_on_refresh: true })).body.id_token_on_refresh).toBe(true)
  expect((await app.events()).map(({ type, metadata }) => ({ type, metadata }))).toEqual([
    { type: 'client.updated', metadata: { fields: ['id_token_on_refresh'] } },
  ])
  const { body: still } = await refresh(app, shop, early.refresh_token)
  expect(still).not.toHaveProperty('id_token')

  const late = await grantTokens(app, shop, alice)
  const { body: renewed } = await refresh(app, shop, late.refresh_token)
  expect(claimsOf(renewed.id_token).sid).toBe(claimsOf(late.id_token).sid)
  await change(shop, { id_token_on_refresh: false })
  const { body: again } = await refresh(app, shop, renewed.refresh_token)
  expect(again).not.toHaveProperty('id_token')
})

test('TOK-21 a repeated answer has an ID token too', async () => {
  await change(kubectl, { refresh_token_reuse_window: 10 })
  const { refresh_token } = await grantTokens(app, kubectl, alice)
  const { body: lost } = await refresh(app, kubectl, refresh_token)
  const { body: again } = await refresh(app, kubectl, refresh_token)
  expect(again.refresh_token).toBe(lost.refresh_token)
  expect(claimsOf(again.id_token).at_hash).toBe(accessTokenHash(again.access_token, 'RS256'))
})

test('TOK-21 an ID token that comes with a token for an API is for the client', async () => {
  await create(app, '/apis', {
    identifier: ORDERS,
    name: 'Orders',
    scopes: [],
    clients: [{ client_id: 'kubectl', scopes: [] }],
  })
  app.clock.advance(SECOND)
  const tokens = await grantTokens(app, kubectl, alice, { scope, resources: ORDERS })
  const { body } = await refresh(app, kubectl, tokens.refresh_token, { resource: ORDERS })
  expect([claimsOf(body.access_token).aud, claimsOf(body.id_token).aud]).toEqual([ORDERS, 'kubectl'])
})

test('TOK-21 R-09 a session that began before the upgrade continues, without ID tokens', async () => {
  const path = await temporaryDatabase()
  const before = await startApp({}, { store: await openSqlite({ path }) })
  const user = await addUser(before, 'alice')
  const client = await addClient(before, 'shop')
  const { refresh_token } = await grantTokens(before, client, user)
  await before.context.store.close()
  using db = new Database(path)
  db.run('ALTER TABLE clients DROP COLUMN id_token_on_refresh')
  db.run('ALTER TABLE sessions DROP COLUMN authentication')
  db.run('DROP INDEX webhook_deliveries_event')
  db.run("DELETE FROM migrations WHERE name >= '0031_id_token_on_refresh.sql'")
  db.close()

  const after = await startApp({}, { store: await openSqlite({ path }) })
  expect((await after.admin('GET', '/clients/shop')).body.id_token_on_refresh).toBe(false)
  await after.admin('PUT', '/clients/shop', { id_token_on_refresh: true })
  const { status, body } = await refresh(after, client, refresh_token)
  expect([status, body.id_token]).toEqual([200, undefined])
  const tokens = await grantTokens(after, client, user)
  expect((await refresh(after, client, tokens.refresh_token)).body).toHaveProperty('id_token')
  await after.context.store.close()
})
