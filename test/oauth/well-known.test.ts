import { describe, expect, test } from 'bun:test'
import { unavailable } from '#src/storage/errors.ts'
import { startApp } from '#test/support/app.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { freshStore } from '#test/support/store.ts'
import { bearer, get, grantTokens, post, redeem, secretOf } from '#test/support/tokens.ts'

const app = await startApp()
const alice = await addUser(app, 'alice')
const ORIGIN = 'https://shop.example'
const spa = await addClient(app, 'spa', {
  type: 'public',
  token_endpoint_auth_method: 'none',
  web_origins: [ORIGIN],
})
const other = await addClient(app, 'other', { web_origins: ['https://other.example'] })

const paths = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']
const keySet = '/.well-known/jwks.json'

describe('discovery', () => {
  test('AUT-32 both paths return one document with the issuer of the settings, whatever the request says', async () => {
    const documents = await Promise.all(
      paths.map(path =>
        get(app, path, { headers: { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' } }),
      ),
    )
    const [document] = documents.map(({ body }) => body)
    expect(documents[1]?.body).toEqual(document)
    expect(document).toMatchObject({
      issuer: 'http://localhost:8080',
      token_endpoint: 'http://localhost:8080/oauth/token',
      jwks_uri: `http://localhost:8080${keySet}`,
      id_token_signing_alg_values_supported: ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512'],
      scopes_supported: ['openid', 'profile', 'email', 'phone', 'address', 'groups', 'roles'],
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
      authorization_response_iss_parameter_supported: true,
      request_uri_parameter_supported: false,
    })
    expect(JSON.stringify(document)).not.toContain('evil')
  })

  test('AUT-33 every endpoint in it exists', async () => {
    const { body } = await get(app, '/.well-known/openid-configuration')
    for (const [name, url] of Object.entries<string>(body).filter(([name]) => /_endpoint$|_uri$/.test(name)))
      expect([
        name,
        (await app.call(url, { method: /token|revo|intro/.test(name) ? 'POST' : 'GET' })).status,
      ]).not.toEqual([name, 404])
  })
})

describe('caching', () => {
  for (const path of [...paths, keySet])
    test(`${path} can be cached for five minutes and is revalidated by its ETag`, async () => {
      const { headers, status } = await get(app, path)
      expect(status).toBe(200)
      expect(headers.get('content-type')).toStartWith('application/json')
      expect(headers.get('cache-control')).toBe('public, max-age=300')
      const etag = headers.get('etag') ?? ''
      expect(etag).toMatch(/^"[\w-]+"$/)
      for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const again = await app.call(path, { headers: { 'if-none-match': known } })
        expect([again.status, await again.text()]).toEqual([304, ''])
        expect(again.headers.get('etag')).toBe(etag)
      }
      expect((await app.call(path, { headers: { 'if-none-match': '"x"' } })).status).toBe(200)
    })
})

describe('a database that', () => {
  const lost = Object.assign(new Error('lost'), { code: 'ERR_POSTGRES_CONNECTION_CLOSED' })
  const outages = {
    'cannot be read': () => Promise.reject(unavailable(lost)),
    'does not answer': () => new Promise<never>(() => {}),
  }
  for (const [name, outage] of Object.entries(outages))
    test(`${name} leaves the documents as they were, also when the caches are dropped`, async () => {
      const store = await freshStore()
      let isDown = false
      const read: typeof store.read = work => (isDown ? outage() : store.read(work))
      const own = await startApp({}, { store: { ...store, read } })
      const settings = { client_registration: 'open', client_metadata_documents: 'any' }
      await own.admin('PUT', '/organizations/org_default', { settings })
      const all = () =>
        Promise.all([...paths, keySet].map(async path => [path, await (await own.call(path)).json()]))
      const before = await all()
      expect(before[0]?.[1].registration_endpoint).toBeString()
      isDown = true
      await store.write(async tx => {
        for (const topic of ['organizations', 'keys'] as const) tx.changed(topic)
      })
      expect(await all()).toEqual(before)
      isDown = false
      await own.admin('PUT', '/organizations/org_default', { settings: { client_registration: null } })
      expect((await all())[0]?.[1].registration_endpoint).toBeUndefined()
    })
})

describe('O-44 CORS', () => {
  const ask = (path: string, origin: string, init: RequestInit = {}) =>
    app.call(path, { ...init, headers: { origin, ...(init.headers as Record<string, string>) } })
  const allowed = (response: { headers: Headers }) => response.headers.get('access-control-allow-origin')
  const preflight = (path: string, origin: string) =>
    ask(path, origin, { method: 'OPTIONS', headers: { 'access-control-request-method': 'POST' } })
  const foreign = [
    'https://evil.example',
    'null',
    'https://shop.example.evil.example',
    'https://notshop.example',
    'http://shop.example',
    'https://shop.example:8443',
    'https://shop.example/',
    'https://SHOP.example',
  ]

  test('O-44 discovery and key set are open to any origin, without credentials', async () => {
    for (const path of [...paths, keySet])
      for (const origin of [ORIGIN, 'https://evil.example', 'null']) {
        const answers = [await ask(path, origin), await preflight(path, origin)]
        expect(answers.map(allowed)).toEqual(['*', '*'])
        for (const { headers } of answers) expect(headers.has('access-control-allow-credentials')).toBe(false)
      }
  })

  for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/userinfo'])
    test(`H-44, O-44 the preflight of ${path} is the same for registered and other origins`, async () => {
      const said = async (origin: string) => {
        const { status, headers } = await preflight(path, origin)
        headers.delete('x-request-id')
        return { status, headers: Object.fromEntries(headers) }
      }
      const answer = await said(ORIGIN)
      expect(answer).toEqual({
        status: 204,
        headers: {
          'access-control-allow-origin': '*',
          'access-control-allow-methods': path === '/oauth/userinfo' ? 'GET, POST' : 'POST',
          'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
          'access-control-max-age': '86400',
          'x-content-type-options': 'nosniff',
        },
      })
      for (const origin of foreign) expect(await said(origin)).toEqual(answer)
    })

  test('O-44 the answer itself is only for the origins of the client concerned, refusals included', async () => {
    const headers = { origin: ORIGIN }
    const form = { grant_type: 'authorization_code', client_id: 'spa' }
    const refused = await post(app, '/oauth/token', form, { headers })
    expect([refused.status, allowed(refused)]).toEqual([400, ORIGIN])
    expect(refused.headers.get('vary')).toBe('Origin')
    expect(refused.headers.get('access-control-expose-headers')).toBe(
      'www-authenticate, retry-after, x-request-id',
    )
    const theirs = await post(app, '/oauth/token', { ...form, client_id: 'other' }, { headers })
    expect(allowed(theirs)).toBeNull()
    expect(theirs.headers.get('vary')).toBe('Origin')
    for (const origin of foreign)
      expect(allowed(await post(app, '/oauth/token', form, { headers: { origin } }))).toBeNull()
    expect(allowed(await redeem(app, spa, 'x', {}, { headers }))).toBe(ORIGIN)
  })

  test('O-44 userinfo and revocation are for the origins of the client to which the token was issued', async () => {
    const mine = await grantTokens(app, spa, alice)
    const theirs = await grantTokens(app, other, alice)
    const headers = (token: string) => ({ origin: ORIGIN, ...bearer(token) })
    expect(allowed(await get(app, '/oauth/userinfo', { headers: headers(mine.access_token) }))).toBe(ORIGIN)
    expect(allowed(await get(app, '/oauth/userinfo', { headers: headers(theirs.access_token) }))).toBeNull()
    const bad = await get(app, '/oauth/userinfo', { headers: headers(`${mine.access_token}x`) })
    expect([bad.status, allowed(bad)]).toEqual([401, ORIGIN])
    const revoke = (form: Record<string, string>) =>
      post(app, '/oauth/revoke', form, { headers: { origin: ORIGIN } })
    expect(allowed(await revoke({ token: mine.refresh_token }))).toBe(ORIGIN)
    expect(allowed(await revoke({ token: theirs.refresh_token }))).toBeNull()
    expect(allowed(await revoke({ token: 'x', client_id: 'spa' }))).toBe(ORIGIN)
  })

  test('O-44 authorize, introspection, logout and the admin API never send CORS headers', async () => {
    for (const path of ['/oauth/authorize?client_id=spa', '/oauth/logout', '/api/v1/admin/users'])
      expect(allowed(await ask(path, ORIGIN))).toBeNull()
    const answer = await post(app, '/oauth/introspect', secretOf(other), {
      headers: { origin: 'https://other.example' },
    })
    expect(allowed(answer)).toBeNull()
    for (const path of ['/oauth/authorize', '/oauth/introspect', '/oauth/logout', '/api/v1/admin/users'])
      expect(allowed(await preflight(path, ORIGIN))).toBeNull()
  })
})
