import { beforeEach, describe, expect, test } from 'bun:test'
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto'
import { HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { openLogger } from '#src/lib/log.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { listKeys } from '#src/tokens/key-store.ts'
import { signWith } from '#src/tokens/signature.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { basic, bearer, claimsOf, get, grantTokens, headerOf, post, secretOf } from '#test/support/tokens.ts'

const logged: Json[] = []
const log = openLogger('warn', line => void logged.push(JSON.parse(line)))
const app = await startApp({}, { log })
const alice = await addUser(app, 'alice', { roles: ['admin'] })
const client = await addClient(app, 'shop', { scopes: ['openid', 'admin'] })
const asker = await addClient(app, 'asker', {
  grant_types: ['client_credentials'],
  redirect_uris: [],
  capabilities: ['token_introspection'],
})
const grant = () => grantTokens(app, client, alice, { scope: 'openid admin' })
// The first grant generates the keys that sign the tokens.
let tokens = await grant()
let good: Json
let [head, payload, signature] = ['', '', '']
// Some cases advance the clock, so each case gets a new token.
beforeEach(async () => {
  tokens = await grant()
  good = claimsOf(tokens.access_token)
  ;[head = '', payload = '', signature = ''] = tokens.access_token.split('.')
})
const keys = await app.context.store.read(listKeys)

const privateKey = (alg: SigningAlg) => {
  const key = keys.find(each => each.alg === alg)
  if (!key) throw new Error(`no ${alg} key`)
  const pkcs8 = app.context.master.open(key.private_key, key.id)
  return { kid: key.id, key: createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }) }
}
const ours = privateKey('ES256')
const rsa = privateKey('RS256')
const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const header = { alg: 'ES256', kid: ours.kid, typ: 'at+jwt' }
/**
 * Returns a token with this header and these claims. `key` signs the token. The default is the server's key.
 */
const forge = (
  head: Record<string, unknown>,
  claims: object = good,
  key: KeyObject = ours.key,
  alg: SigningAlg = 'ES256',
) => {
  const input = `${encode(head)}.${encode(claims)}`
  return `${input}.${signWith(key, alg, input)}`
}
const hmac = (secret: string | Buffer) => {
  const input = `${encode({ ...header, alg: 'HS256' })}.${encode(good)}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}
const now = () => app.clock.now() / SECOND
const sign = (claims: Record<string, unknown>, typ: 'at+jwt' | 'JWT' = 'at+jwt') =>
  app.context.keys.sign({ ...good, ...claims }, 'ES256', typ)

const bad: Record<string, () => string | Promise<string>> = {
  'alg none': () => `${encode({ ...header, alg: 'none' })}.${payload}.`,
  'alg none with the signature left on': () =>
    `${encode({ ...header, alg: 'none' })}.${payload}.${signature}`,
  'HS256 with the public key (PEM)': () =>
    hmac(createPublicKey(ours.key).export({ format: 'pem', type: 'spki' }).toString()),
  'HS256 with the public key (DER)': () =>
    hmac(createPublicKey(ours.key).export({ format: 'der', type: 'spki' })),
  'an unknown kid': () => forge({ ...header, kid: 'key_00000000-0000-7000-8000-000000000000' }),
  'the kid of another key': () => forge({ ...header, kid: rsa.kid }),
  'no kid': () => forge({ alg: 'ES256', typ: 'at+jwt' }),
  'a kid with ../': () => forge({ ...header, kid: `../${ours.kid}` }),
  'a kid with SQL': () => forge({ ...header, kid: `' OR 1=1 --` }),
  'a stranger’s key under our kid': () => forge(header, good, stranger.privateKey),
  'an embedded jwk': () =>
    forge({ ...header, jwk: stranger.publicKey.export({ format: 'jwk' }) }, good, stranger.privateKey),
  'an embedded jwk, signed by us': () => forge({ ...header, jwk: {} }),
  'a jku header': () => forge({ ...header, jku: 'https://evil.example/jwks' }),
  'an x5u header': () => forge({ ...header, x5u: 'https://evil.example/x5u' }),
  'a crit header': () => forge({ ...header, crit: ['exp'] }),
  'b64 false': () => forge({ ...header, b64: false, crit: ['b64'] }),
  'alg of another key type': () => forge({ ...header, alg: 'RS256' }, good, rsa.key, 'RS256'),
  'alg of another hash': () => forge({ ...header, alg: 'ES384' }, good, ours.key, 'ES384'),
  'no typ': () => forge({ alg: 'ES256', kid: ours.kid }),
  'typ logout+jwt': () => forge({ ...header, typ: 'logout+jwt' }),
  expired: () => sign({ exp: now() }),
  'without exp': () => sign({ exp: undefined }),
  'with exp as text': () => sign({ exp: `${now() + 60}` }),
  'nbf in the future': () => sign({ nbf: now() + 60 }),
  'of another issuer': () => sign({ iss: 'https://evil.example' }),
  'an ID token': () => tokens.id_token,
  'an ID token signed as an access token is': () =>
    sign({ ...claimsOf(tokens.id_token), scope: undefined }, 'JWT'),
  'a refresh token': () => tokens.refresh_token,
  'of a session that does not exist': () => sign({ sid: crypto.randomUUID() }),
  'of another user’s session': () => sign({ sub: crypto.randomUUID() }),
  'a changed payload': () => `${head}.${encode({ ...good, scope: 'openid admin users:read' })}.${signature}`,
  'a changed signature': () => `${head}.${payload}.${signature.slice(0, -6)}AAAAAA`,
  'another spelling of the signature': () => `${tokens.access_token}=`,
  'an empty signature': () => `${head}.${payload}.`,
  'two parts': () => `${head}.${payload}`,
  'four parts': () => `${tokens.access_token}.x`,
  'five parts': () => `${tokens.access_token}.x.y`,
  'nine kilobytes': () => 'a'.repeat(9000),
  'no token at all': () => 'x',
}

describe('O-54 refused everywhere', () => {
  test('O-54 the token that the forgeries start from is valid', async () => {
    expect((await get(app, '/oauth/userinfo', { headers: bearer(tokens.access_token) })).status).toBe(200)
    expect((await app.admin('GET', '/users', undefined, tokens.access_token)).status).toBe(200)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(forge(header)) })).status).toBe(200)
  })

  for (const [what, make] of Object.entries(bad))
    test(`O-54 ${what}`, async () => {
      const token = await make()
      const answer = await get(app, '/oauth/userinfo', { headers: bearer(token) })
      expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_token', status: 401 } })
      expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
      const admin = await app.admin('GET', '/users', undefined, token)
      expect(admin).toMatchObject({ status: 401, body: { error: 'invalid_token' } })
      const headers = basic('asker', asker.client_secret)
      if (token !== tokens.refresh_token)
        expect((await post(app, '/oauth/introspect', { token }, { headers })).body).toEqual({ active: false })
    })

  test('O-54 a token that was verified before is refused once it has expired', async () => {
    const token = await sign({ exp: now() + 60 })
    expect((await get(app, '/oauth/userinfo', { headers: bearer(token) })).status).toBe(200)
    app.clock.advance(MINUTE)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(token) })).status).toBe(401)
  })

  test('R-07 a clock that steps back a few seconds does not invalidate new tokens', async () => {
    app.clock.advance(-5 * SECOND)
    const { access_token } = await grantTokens(app, client, alice)
    app.clock.advance(-5 * SECOND)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(access_token) })).status).toBe(200)
    app.clock.advance(10 * SECOND)
  })
})

test('the token of a user with many roles is accepted, as long as the headers may be', async () => {
  const roles = Array.from({ length: 75 }, (_, i) => `${i}`.padEnd(128, 'role'))
  for (const name of roles) await create(app, '/roles', { name, permissions: [] })
  const boss = await addUser(app, 'boss', { roles: ['admin', ...roles] })
  const { access_token } = await grantTokens(app, client, boss, { scope: 'openid admin' })
  expect(access_token.length).toBeWithin(13_000, 15 * 1024)
  expect((await get(app, '/oauth/userinfo', { headers: bearer(access_token) })).status).toBe(200)
  expect((await app.admin('GET', '/users', undefined, access_token)).status).toBe(200)
  expect(logged).toEqual([])
  // A token that is too long for many services is issued, and the log names its user.
  const groups = Array.from({ length: 20 }, (_, i) => `${i}`.padEnd(128, 'group'))
  for (const name of groups) await create(app, '/roles', { name, permissions: [] })
  const { id } = await create(app, '/groups', { name: 'Everyone', roles: groups })
  await app.admin('PUT', `/groups/${id}/members/${boss.id}`)
  await app.events()
  const long = await grantTokens(app, client, boss)
  expect(claimsOf(long.access_token).roles).toHaveLength(96)
  expect((await app.events()).map(({ type }) => type)).toEqual([
    'user.login',
    'session.created',
    'token.issued',
  ])
  expect(logged.splice(0)).toMatchObject([
    { event: 'long_token', user_id: boss.id, client_id: 'shop', characters: long.access_token.length },
  ])
})

describe('O-55 the form of an access token', () => {
  test('O-55 header and claims are those of RFC 9068, and no others', async () => {
    const { access_token } = await grantTokens(app, client, alice)
    expect(headerOf(access_token)).toEqual({
      typ: 'at+jwt',
      alg: 'ES256',
      kid: expect.stringMatching(/^key_/),
    })
    const names = ['iss', 'sub', 'aud', 'exp', 'iat', 'nbf', 'jti', 'client_id', 'scope', 'sid', 'org_id']
    const identity = ['preferred_username', 'email', 'email_verified', 'given_name', 'family_name', 'roles']
    expect(Object.keys(claimsOf(access_token)).sort()).toEqual([...names, ...identity].sort())
  })

  test('O-55 every jti is unique', async () => {
    const jtis = new Set<string>()
    for (let i = 0; i < 50; i++) jtis.add(claimsOf((await grantTokens(app, client, alice)).access_token).jti)
    expect(jtis.size).toBe(50)
  })

  test('TOK-01 a client chooses its algorithms and the type JWT, and such a token is accepted here', async () => {
    const old = await addClient(app, 'old', {
      access_token_typ: 'JWT',
      access_token_signed_response_alg: 'RS512',
      id_token_signed_response_alg: 'ES384',
    })
    const made = await grantTokens(app, old, alice)
    expect(headerOf(made.access_token)).toMatchObject({ alg: 'RS512', typ: 'JWT' })
    expect(headerOf(made.id_token)).toMatchObject({ alg: 'ES384', typ: 'JWT' })
    expect(claimsOf(made.id_token).at_hash).toMatch(/^[\w-]{32}$/)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(made.access_token) })).status).toBe(200)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(made.id_token) })).status).toBe(401)
  })

  test('O-55 of the tokens with a permission only those of type at+jwt have auth_time, as ID tokens have it', async () => {
    const scope = 'openid admin'
    const plain = await addClient(app, 'plain', { access_token_typ: 'JWT', scopes: ['openid', 'admin'] })
    const [typed, untyped] = [
      await grantTokens(app, client, alice, { scope }),
      await grantTokens(app, plain, alice, { scope }),
    ]
    expect(claimsOf(typed.access_token).auth_time).toBe(now())
    expect(claimsOf(untyped.access_token)).not.toHaveProperty('auth_time')
  })

  test('O-55 the algorithm of an API takes precedence over that of the client', async () => {
    const signed = await addClient(app, 'signed', {
      grant_types: ['client_credentials'],
      redirect_uris: [],
      access_token_signed_response_alg: 'RS512',
    })
    const api = { identifier: 'https://signed.example', name: 'Signed', access_token_alg: 'ES384' }
    await create(app, '/apis', { ...api, clients: [{ client_id: 'signed', scopes: [] }] })
    const form = { grant_type: 'client_credentials', ...secretOf(signed) }
    const algOf = async (more: Json) =>
      headerOf((await post(app, '/oauth/token', { ...form, ...more })).body.access_token).alg
    expect([await algOf({}), await algOf({ resource: api.identifier })]).toEqual(['RS512', 'ES384'])
  })
})

describe('O-56 how a token may be sent', () => {
  test('O-56 in the query it is ignored; sent in two ways it is 400', async () => {
    const path = `/oauth/userinfo?access_token=${tokens.access_token}`
    const alone = await get(app, path)
    expect(alone.status).toBe(401)
    expect(alone.headers.get('www-authenticate')).toBe('Bearer')
    expect(await get(app, path, { headers: bearer(tokens.access_token) })).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
    const admin = await app.call(`/api/v1/admin/users?access_token=${tokens.access_token}`)
    expect(admin.status).toBe(401)
  })

  test('O-56 in a form it is ignored too', async () => {
    const form = { access_token: tokens.access_token }
    expect((await post(app, '/oauth/userinfo', form)).status).toBe(401)
    const twice = await post(app, '/oauth/userinfo', form, { headers: bearer(tokens.access_token) })
    expect(twice).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })

  test('O-56 the scheme is case-insensitive; no token means no error code; another scheme is no token', async () => {
    const lower = { authorization: `bearer ${tokens.access_token}` }
    expect((await get(app, '/oauth/userinfo', { headers: lower })).status).toBe(200)
    for (const headers of [{}, { authorization: 'Basic eDp5' }, { authorization: 'Bearerx' }]) {
      const answer = await get(app, '/oauth/userinfo', { headers })
      expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_token' } })
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
    const admin = await app.call('/api/v1/admin/users')
    expect(admin.status).toBe(401)
    expect(admin.headers.get('www-authenticate')).toBe('Bearer')
  })

  test('O-56 without openid userinfo is 403 insufficient_scope', async () => {
    const { access_token } = await grantTokens(app, client, alice, { scope: 'admin' })
    const answer = await get(app, '/oauth/userinfo', { headers: bearer(access_token) })
    expect(answer).toMatchObject({ status: 403, body: { error: 'insufficient_scope', status: 403 } })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="openid"')
  })

  test('a client’s own token has no userinfo', async () => {
    const service = await addClient(app, 'service', {
      grant_types: ['client_credentials'],
      redirect_uris: [],
    })
    const token = await app.tokenOf('service', service.client_secret)
    expect((await get(app, '/oauth/userinfo', { headers: bearer(token) })).status).toBe(403)
  })
})

describe('userinfo', () => {
  test('TOK-03 the claims follow the scopes profile and email', async () => {
    const full = await addClient(app, 'full')
    const ask = async (scope: string) => {
      const { access_token } = await grantTokens(app, full, alice, { scope })
      return get(app, '/oauth/userinfo', { headers: bearer(access_token) })
    }
    const sub = alice.id.slice(4)
    expect((await ask('openid')).body).toEqual({ sub })
    expect((await ask('openid email')).body).toEqual({
      sub,
      email: 'alice@example.com',
      email_verified: false,
    })
    expect((await ask('openid profile')).body).toEqual({
      sub,
      name: 'Alice Example',
      preferred_username: 'alice',
      given_name: 'Alice',
      family_name: 'Example',
      updated_at: Math.floor(Date.parse(alice.updated_at) / SECOND),
    })
    const posted = await post(
      app,
      '/oauth/userinfo',
      {},
      {
        headers: bearer((await grantTokens(app, full, alice)).access_token),
      },
    )
    expect(posted.status).toBe(200)
    expect(posted.headers.get('cache-control')).toBe('no-store')
  })

  test('TOK-02 a token stays valid after /oauth/revoke and the deletion of its client, until it expires', async () => {
    const doomed = await addClient(app, 'doomed')
    const made = await grantTokens(app, doomed, alice)
    const headers = bearer(made.access_token)
    await post(app, '/oauth/revoke', { token: made.refresh_token })
    await app.admin('DELETE', '/clients/doomed')
    expect((await get(app, '/oauth/userinfo', { headers })).status).toBe(200)
    app.clock.advance(HOUR)
    expect((await get(app, '/oauth/userinfo', { headers })).status).toBe(401)
  })
})
