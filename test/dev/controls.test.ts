import { describe, expect, test } from 'bun:test'
import { startGatehouse } from '#src/testing/index.ts'
import type { Json } from '#test/support/app.ts'
import { headerOf } from '#test/support/tokens.ts'
import { BAD_TOKENS, type BadToken, createVerifier } from './sdk.ts'

const MINUTE = 60_000

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

const clientToken = async (url: string, client_id = 'dev-service'): Promise<Response> =>
  fetch(`${url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret: 'dev-secret' }),
  })

const jwksOf = async (url: string): Promise<string[]> =>
  ((await (await fetch(`${url}/.well-known/jwks.json`)).json()) as Json).keys.map(({ kid }: Json) => kid)

describe('dev 7: mint', () => {
  test('for a seeded user: their claims, in a session that this server accepts', async () => {
    await using server = await startGatehouse()
    const { token, claims } = await server.mint({ user: 'alice', scope: 'openid profile email' })
    expect(claims).toMatchObject({
      iss: server.url,
      sub: '0190a11c-e000-7000-8000-000000000001',
      aud: 'dev-service',
      preferred_username: 'alice',
      roles: ['user'],
      scope: 'openid profile email',
      org_id: 'default',
    })
    const answer = await fetch(`${server.url}/oauth/userinfo`, bearer(token))
    expect(await answer.json()).toMatchObject({ email: 'alice@example.com' })
    const verifier = createVerifier({ issuer: server.url, audience: 'dev-service' })
    expect((await verifier.verify(token)).roles).toEqual(['user'])
  })

  test('by e-mail or id, for another client, with arbitrary claims, roles and lifetime', async () => {
    await using server = await startGatehouse()
    const { claims, expires_in } = await server.mint({
      user: 'ALICE@example.com',
      client_id: 'dev-web',
      roles: ['editor'],
      claims: { tier: 'gold', email: null, nested: { a: [1] } },
      expires_in: 90,
    })
    expect(expires_in).toBe(90)
    expect(claims).toMatchObject({ aud: 'dev-web', roles: ['editor'], tier: 'gold', nested: { a: [1] } })
    expect(claims).not.toHaveProperty('email')
    const byId = await server.mint({ user: 'usr_0190a11c-e000-7000-8000-000000000001' })
    expect(byId.claims.preferred_username).toBe('alice')
  })

  test('the subject of a made-up user is stable and unique to the name', async () => {
    await using server = await startGatehouse()
    const [one, again, other] = await Promise.all(
      ['somebody', 'somebody', 'somebody-else'].map(user => server.mint({ user })),
    )
    expect(one?.claims.sub).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(again?.claims.sub).toBe(one?.claims.sub)
    expect(other?.claims.sub).not.toBe(one?.claims.sub)
    expect(one?.claims.email).toBe('somebody@example.com')
  })

  test('without a user the token is the client’s own', async () => {
    await using server = await startGatehouse()
    const { claims } = await server.mint({ scope: 'read' })
    expect(claims).toMatchObject({ sub: 'dev-service', client_id: 'dev-service', scope: 'read' })
    expect(claims).not.toHaveProperty('roles')
  })

  test('a minted admin has admin rights', async () => {
    await using server = await startGatehouse()
    const answer = async (user: string) => {
      const { token } = await server.mint({ user, scope: 'admin' })
      return (await fetch(`${server.url}/api/v1/admin/users`, bearer(token))).status
    }
    expect([await answer('admin'), await answer('alice')]).toEqual([200, 403])
  })

  test('the answer to a wrong call names its mistake', async () => {
    await using server = await startGatehouse()
    await expect(server.mint({ organization: 'nowhere' })).rejects.toThrow(
      /organization: The slug of an organization/,
    )
    await expect(server.mint({ bad: 'worse' as BadToken })).rejects.toThrow(
      /bad: One of: expired, not-yet-valid/,
    )
    await server.users.put({ username: 'bob', email: 'bob@example.com', enabled: false })
    await expect(server.mint({ user: 'bob' })).rejects.toThrow(/422 .*user: The user is disabled/)
    expect(await server.events.list({ type: 'token.issued' })).toEqual([])
  })
})

test.each(Object.entries(BAD_TOKENS))('dev 8: the bad token %s is refused as %s', async (bad, code) => {
  await using server = await startGatehouse()
  const verifier = createVerifier({ issuer: server.url, audience: 'dev-service' })
  const wanted = { user: 'alice', roles: ['admin'], expires_in: 2 * 86_400 }
  await verifier.verify((await server.mint(wanted)).token)
  const { token } = await server.mint({ ...wanted, bad: bad as BadToken })
  await expect(verifier.verify(token)).rejects.toMatchObject({ code })
})

describe('dev 9: clock', () => {
  test('freeze, set and advance affect issuing, validation and sessions', async () => {
    await using server = await startGatehouse()
    await server.clock.freeze()
    await server.clock.set('2030-01-01T00:00:00Z')
    expect(await server.clock.now()).toEqual(new Date('2030-01-01T00:00:00Z'))
    const { token, claims } = await server.mint({ user: 'alice', expires_in: 600 })
    expect(claims.iat).toBe(Date.UTC(2030, 0, 1) / 1000)
    const status = async () => (await fetch(`${server.url}/oauth/userinfo`, bearer(token))).status
    expect(await status()).toBe(200)
    await server.clock.advance(11 * MINUTE)
    expect(await status()).toBe(401)
    await server.clock.advance(-5 * MINUTE)
    expect(await status()).toBe(200)
    await server.clock.reset()
    expect(Math.abs((await server.clock.now()).getTime() - Date.now())).toBeLessThan(MINUTE)
  })

  test('a time that cannot be shown is refused, and the clock stays', async () => {
    await using server = await startGatehouse()
    await server.clock.freeze()
    const before = await server.clock.now()
    for (const [change, field] of [
      [() => server.clock.set(Date.UTC(9999, 11, 31) + 86_400_000), 'set'],
      [() => server.clock.set(-1), 'set'],
      [() => server.clock.advance(Number.MAX_SAFE_INTEGER), 'advance'],
      [() => server.clock.advance(-Number.MAX_SAFE_INTEGER), 'advance'],
    ] as const)
      await expect(change()).rejects.toThrow(
        `422 The body is not valid. ${field}: The clock shows only times of the years 1970 to 9999.`,
      )
    expect(await server.clock.now()).toEqual(before)
    await server.clock.set('9999-12-31T23:59:59Z')
    expect((await server.clock.now()).getUTCFullYear()).toBe(9999)
    await server.clock.set(0)
    expect((await server.clock.now()).getTime()).toBe(0)
  })

  test('a published key signs from its start time on', async () => {
    await using server = await startGatehouse()
    const before = (await server.mint()).token
    const [next] = (await server.keys.publish('ES256')).filter(({ state }) => state === 'next')
    expect(headerOf((await server.mint()).token).kid).toBe(headerOf(before).kid)
    await server.clock.advance(16 * MINUTE)
    expect(headerOf((await server.mint()).token).kid).toBe(next?.kid)
  })
})

describe('dev 10: faults', () => {
  test('by endpoint, n times: a status, then normal answers', async () => {
    await using server = await startGatehouse()
    await server.faults.add({ endpoint: 'token', status: 503, times: 2 })
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await clientToken(server.url)).status)
    expect(statuses).toEqual([503, 503, 200])
  })

  test('an OAuth error, for one client only', async () => {
    await using server = await startGatehouse()
    await server.faults.add({ endpoint: 'token', error: 'invalid_client', status: 401, client_id: 'dev-web' })
    const refused = await fetch(`${server.url}/oauth/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('dev-web:x')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    })
    expect([refused.status, ((await refused.json()) as Json).error]).toEqual([401, 'invalid_client'])
    expect((await clientToken(server.url)).status).toBe(200)
  })

  test('discovery and key set too: malformed bodies, cut connections, delays; then cleared', async () => {
    await using server = await startGatehouse()
    await server.faults.add({ endpoint: 'discovery', malformed: true })
    const discovery = await fetch(`${server.url}/.well-known/openid-configuration`)
    await expect(discovery.json()).rejects.toThrow()
    await server.faults.add({ endpoint: 'jwks', reset: true })
    await expect(fetch(`${server.url}/.well-known/jwks.json`)).rejects.toThrow()
    await server.faults.clear()
    await server.faults.add({ endpoint: '/.well-known/*', delay: 20, times: 1 })
    expect((await fetch(`${server.url}/.well-known/jwks.json`)).status).toBe(200)
  })

  test('a page reads the faulty answers that it could read without the fault, and preflights get none', async () => {
    const origin = 'https://shop.example'
    await using server = await startGatehouse({
      seed: {
        clients: [
          {
            client_id: 'spa',
            type: 'public',
            grant_types: ['authorization_code'],
            redirect_uris: [`${origin}/callback`],
            web_origins: [origin],
            scopes: ['openid'],
          },
        ],
        users: [{ username: 'carol', email: 'carol@example.com' }],
      },
    })
    const { token } = await server.mint({ user: 'carol' })
    const readers = async (path: string, init: RequestInit = {}, from = origin) => {
      await server.faults.add({ endpoint: path as `/${string}`, status: 503, times: 1 })
      const headers = { ...init.headers, origin: from }
      const preflight = await fetch(server.url + path, { method: 'OPTIONS', headers })
      const answer = await fetch(server.url + path, { ...init, headers })
      const again = await fetch(server.url + path, { ...init, headers })
      const reader = answer.headers.get('access-control-allow-origin')
      expect([preflight.ok, answer.status, again.status === 503]).toEqual([true, 503, false])
      expect(again.headers.get('access-control-allow-origin')).toBe(reader)
      return [reader, answer.headers.get('access-control-expose-headers')]
    }
    const exposed = 'www-authenticate, retry-after, x-request-id'
    const form = { method: 'POST', body: new URLSearchParams({ client_id: 'spa' }) }
    expect(await readers('/oauth/token', form)).toEqual([origin, exposed])
    expect(await readers('/oauth/token', form, 'https://other.example')).toEqual([null, null])
    expect(await readers('/oauth/revoke', form)).toEqual([origin, exposed])
    expect(await readers('/oauth/register', { method: 'POST' })).toEqual(['*', exposed])
    expect(await readers('/oauth/userinfo', bearer(token))).toEqual([origin, exposed])
    expect(await readers('/.well-known/jwks.json')).toEqual(['*', null])
  })

  test('no answer until the caller gives up', async () => {
    await using server = await startGatehouse()
    await server.faults.add({ endpoint: 'jwks', hang: true })
    const asked = fetch(`${server.url}/.well-known/jwks.json`, { signal: AbortSignal.timeout(50) })
    await expect(asked).rejects.toThrow(/timed out/)
  })

  test('a fault has exactly one kind and a known endpoint', async () => {
    await using server = await startGatehouse()
    await expect(server.faults.add({ endpoint: 'token', hang: true, reset: true })).rejects.toThrow(
      /Give one of/,
    )
    await expect(server.faults.add({ endpoint: 'nowhere' as 'jwks', status: 500 })).rejects.toThrow(
      /or one of: authorize/,
    )
  })
})

describe('dev 11: keys', () => {
  test('pre-publish, activate, retire, revoke', async () => {
    await using server = await startGatehouse()
    const [first] = (await server.keys.list()).filter(({ alg }) => alg === 'ES256')
    const states = (keys: Json[]) => keys.filter(({ alg }) => alg === 'ES256').map(({ state }) => state)
    await expect(server.keys.retire(first?.kid ?? '')).rejects.toThrow(/is the signing key/)
    const published = await server.keys.publish('ES256')
    expect(states(published)).toEqual(['signing', 'next'])
    const next = published.find(({ state }) => state === 'next')?.kid ?? ''
    expect(await jwksOf(server.url)).toContain(next)
    const old = (await server.mint({ user: 'alice' })).token
    expect(states(await server.keys.activate(next))).toEqual(['retired', 'signing'])
    const userinfo = async () => (await fetch(`${server.url}/oauth/userinfo`, bearer(old))).status
    expect(await userinfo()).toBe(200)
    expect(states(await server.keys.retire(first?.kid ?? ''))).toEqual(['signing'])
    expect(await userinfo()).toBe(401)
    const revoked = await server.keys.revoke(next)
    expect(states(revoked)).toEqual(['signing'])
    expect(await jwksOf(server.url)).not.toContain(next)
  })

  test('a pinned key signs under its own kid', async () => {
    const { privateKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
      'sign',
    ])
    const jwk = { ...(await crypto.subtle.exportKey('jwk', privateKey)), kid: 'pinned', alg: 'ES256' }
    await using server = await startGatehouse({ key: jwk })
    const { token } = await server.mint()
    expect(headerOf(token).kid).toBe('pinned')
    expect(await jwksOf(server.url)).toContain('pinned')
    await expect(server.keys.pin({ kty: 'oct', k: 'x' })).rejects.toThrow(/private RSA or EC key/)
    expect(JSON.stringify(await (await fetch(`${server.url}/.well-known/jwks.json`)).json())).not.toContain(
      '"d"',
    )
  })
})

describe('dev 6: users and seeds over HTTP', () => {
  test('users are created, changed and deleted through the services', async () => {
    await using server = await startGatehouse()
    await server.users.put({ username: 'carol', email: 'carol@example.com', password: 'x', roles: ['admin'] })
    await server.users.put({
      username: 'carol',
      email: 'carol@example.com',
      roles: ['user'],
      attributes: { a: 1 },
    })
    const [carol] = (await server.users.list()).filter(({ username }) => username === 'carol')
    expect(carol).toMatchObject({ roles: ['user'], attributes: { a: 1 } })
    const types = (await server.events.list()).map(({ type }) => type).slice(-2)
    expect(types).toEqual(['user.created', 'user.updated'])
    await server.users.remove('carol')
    expect((await server.users.list()).map(({ username }) => username)).toEqual(['alice', 'admin'])
    expect((await server.events.list()).at(-1)?.type).toBe('user.deleted')
  })

  test('dev 14: a second factor and its codes', async () => {
    await using server = await startGatehouse()
    await expect(server.mfa.code('alice')).rejects.toThrow(/no authenticator app/)
    await server.clock.freeze()
    const secret = await server.mfa.enrol('alice')
    const code = await server.mfa.code('alice')
    const { generateSync } = await import('otplib')
    const epoch = Math.floor((await server.clock.now()).getTime() / 1000)
    expect(code).toBe(generateSync({ secret, epoch }))
    await server.reset()
    await expect(server.mfa.code('alice')).rejects.toThrow(/no authenticator app/)
  })

  test('a refusal names each mistake', async () => {
    await using server = await startGatehouse()
    const seed = { users: [{ username: 'carol', email: 'carol@example.com', roles: ['ghost'] }] }
    await expect(server.seed(seed)).rejects.toThrow(/users\[0\]\.roles: The organization has no role ghost/)
  })
})

describe('dev 15: requests received, tokens and events recorded', () => {
  test('requests and tokens by client', async () => {
    await using server = await startGatehouse()
    await clientToken(server.url)
    await fetch(`${server.url}/oauth/authorize?client_id=dev-web&state=s`, { redirect: 'manual' })
    expect(await server.requests({ client_id: 'dev-web' })).toMatchObject([
      { method: 'GET', path: '/oauth/authorize', parameters: { state: 's' }, status: 400 },
    ])
    expect(await server.requests({ path: '/oauth/token' })).toMatchObject([
      {
        method: 'POST',
        client_id: 'dev-service',
        parameters: { grant_type: 'client_credentials' },
        status: 200,
      },
    ])
    await server.mint({ client_id: 'dev-web', user: 'alice' })
    expect(
      (await server.tokens()).map(({ client_id, grant_type, kind }) => [client_id, grant_type, kind]),
    ).toEqual([
      ['dev-service', 'client_credentials', 'access_token'],
      ['dev-web', 'mint', 'access_token'],
    ])
    expect(await server.tokens({ client_id: 'dev-web' })).toMatchObject([
      { claims: { preferred_username: 'alice' } },
    ])
  })

  test('a refused stream of events is the error of a refused list', async () => {
    await using server = await startGatehouse()
    for (const filter of [{ organization: 'nowhere' }, { type: 'user.flown' as 'user.created' }]) {
      const refused: Error = await server.events.list(filter).catch(error => error)
      expect(refused.message).toMatch(/^GET \/dev\/events\?\w+=.+: 4\d\d ./)
      await expect(server.events.stream(filter).next()).rejects.toThrow(refused.message)
    }
  })

  test('audit events as a list and as a stream', async () => {
    await using server = await startGatehouse()
    const after = (await server.events.list()).at(-1)?.seq ?? 0
    const seen: string[] = []
    const reading = (async () => {
      for await (const { type } of server.events.stream({ after })) {
        seen.push(type)
        if (seen.length === 3) return
      }
    })()
    await clientToken(server.url)
    await server.mint({ user: 'alice' })
    await reading
    expect(seen).toEqual(['token.issued', 'session.created', 'token.issued'])
    expect((await server.events.list({ type: 'session.created' })).length).toBe(1)
  })

  test('a list has the latest 1,000 events, or the first 1,000 after one', async () => {
    await using server = await startGatehouse()
    const user = (_: unknown, i: number) => ({ username: `user-${i}`, email: `user-${i}@example.com` })
    await server.users.put(...Array.from({ length: 1_001 }, user))
    await server.users.remove('user-0')
    const [latest, first] = await Promise.all([server.events.list(), server.events.list({ after: 0 })])
    expect([latest.length, latest.at(-1)?.type]).toEqual([1_000, 'user.deleted'])
    expect([first.length, first.at(-1)?.type]).toEqual([1_000, 'user.created'])
  })
})

describe('dev 6: guarded', () => {
  test('by the token that is printed once', async () => {
    await using server = await startGatehouse()
    const ask = async (headers: Record<string, string>) =>
      (await fetch(`${server.url}/dev/users`, { headers })).status
    expect([await ask({}), await ask({ authorization: 'Bearer wrong' })]).toEqual([401, 401])
  })

  test('an unknown control is 404, as is every control in production mode', async () => {
    const { startApp } = await import('#test/support/app.ts')
    const app = await startApp()
    for (const path of ['/dev/mint', '/dev/users', '/dev/pick', '/dev/'])
      expect([(await app.call(path)).status, (await app.call(path, { method: 'POST' })).status]).toEqual([
        404, 404,
      ])
  })
})
