import { beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import type { Draft } from '#src/dev/fake-openid.ts'
import { OutboundError } from '#src/http/outbound.ts'
import { addProvider, goThrough, ISSUER } from '../upstream.ts'
import { startRefusals } from './refusals.ts'

const { app, upstream, honest, fresh, withoutId, expectRefusal } = await startRefusals()

beforeEach(async () => {
  honest()
  await app.events()
})

describe('an ID token with one defect', () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const cases: [string, string, (draft: Draft) => void][] = [
    [
      'of another issuer',
      'id_token_iss',
      ({ claims }) => Object.assign(claims, { iss: 'https://evil.example' }),
    ],
    ['without an issuer', 'id_token_iss', ({ claims }) => delete claims.iss],
    ['for another client', 'id_token_aud', ({ claims }) => Object.assign(claims, { aud: 'another' })],
    [
      'for others too, without azp',
      'id_token_aud',
      ({ claims }) => Object.assign(claims, { aud: [claims.aud, 'x'] }),
    ],
    [
      'for us by the azp of another',
      'id_token_azp',
      ({ claims }) => Object.assign(claims, { azp: 'another' }),
    ],
    [
      'with the nonce of another flow',
      'id_token_nonce',
      ({ claims }) => Object.assign(claims, { nonce: 'n' }),
    ],
    ['without a nonce', 'id_token_nonce', ({ claims }) => delete claims.nonce],
    ['without a subject', 'id_token_sub', ({ claims }) => delete claims.sub],
    ['without a time of issue', 'id_token_iat', ({ claims }) => delete claims.iat],
    ['without an end', 'id_token_exp', ({ claims }) => delete claims.exp],
    ['that has expired', 'id_token_exp', ({ claims }) => Object.assign(claims, { exp: 1_700_000_000 })],
    ['that is not valid yet', 'id_token_nbf', ({ claims }) => Object.assign(claims, { nbf: 99_999_999_999 })],
    ['signed by another key', 'id_token_signature', draft => Object.assign(draft, { key: other })],
    ['of the algorithm none', 'id_token_alg', ({ header }) => Object.assign(header, { alg: 'none' })],
    ['of a symmetric algorithm', 'id_token_alg', ({ header }) => Object.assign(header, { alg: 'HS256' })],
    [
      'of an algorithm that was not announced',
      'id_token_alg',
      ({ header }) => Object.assign(header, { alg: 'RS256' }),
    ],
    [
      'with an unknown critical header',
      'id_token',
      ({ header }) => Object.assign(header, { crit: ['x'], x: 1 }),
    ],
    ['of an unknown key', 'id_token_key', ({ header }) => Object.assign(header, { kid: 'unknown' })],
    [
      'beside another access token',
      'id_token_at_hash',
      draft => Object.assign(draft, { access_token: 'another' }),
    ],
  ]
  const refuse = async (reason: string, twist: (draft: Draft) => void) => {
    upstream.twist = twist
    return withoutId(await expectRefusal(reason, () => goThrough(fresh(), upstream, '/oauth/social/up')))
  }

  test.each(cases)('%s: %s', async (_, reason, twist) => {
    await refuse(reason, twist)
  })

  test('FED-16 the page is the same for every defect', async () => {
    const pages = new Set<string>()
    for (const [, reason, twist] of cases) pages.add(await refuse(reason, twist))
    expect(pages.size).toBe(1)
  })

  test('a genuine login between them succeeds', async () => {
    const page = await goThrough(fresh(), upstream, '/oauth/social/up')
    expect([page.status, page.heading]).toEqual([200, 'Your account'])
  })
})

describe('keys', () => {
  const unnamed = ({ header }: Draft) => {
    delete header.kid
  }

  test('no kid: the only key is used', async () => {
    await addProvider(app, 'one-key')
    Object.assign(upstream, { twist: unnamed })
    const page = await goThrough(fresh(), upstream, '/oauth/social/one-key', {
      sub: 'keyless',
      email: 'keyless@example.com',
    })
    expect(page.heading).toBe('Your account')
  })

  test('no kid and several keys: refused', async () => {
    await addProvider(app, 'many-keys')
    const second = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
    Object.assign(upstream, {
      twist: unnamed,
      publish: (keys: Record<string, unknown>[]) => [...keys, { ...second, kid: 'second', alg: 'ES256' }],
    })
    const walk = () => goThrough(fresh(), upstream, '/oauth/social/many-keys')
    await expectRefusal('id_token_key', walk, 'many-keys')
  })
})

test('FED-27 userinfo that fails, for a missing mapped claim, refuses only a person who is not linked', async () => {
  await addProvider(app, 'mapped', { client_id: 'mapped', attribute_mapping: { roles: 'groups' } })
  const go = (sub: string) =>
    goThrough(fresh(), upstream, '/oauth/social/mapped', { sub, email: `${sub}@example.com` })
  await go('linked')
  upstream.intercept = ({ url }) =>
    url.endsWith('/userinfo') ? new Response('', { status: 500 }) : undefined
  expect((await go('linked')).heading).toBe('Your account')
  await expectRefusal('bad_answer', () => go('new'), 'mapped')
})

test('failing userinfo refuses only a person who is not linked and has no name and address', async () => {
  await addProvider(app, 'thin', { client_id: 'thin' })
  const go = (sub: string) =>
    goThrough(fresh(), upstream, '/oauth/social/thin', { sub, email: `thin-${sub}@example.com` })
  upstream.twist = ({ claims }) => {
    for (const name of ['name', 'given_name', 'family_name', 'email']) delete claims[name]
  }
  expect((await go('linked')).heading).toBe('Your account')
  upstream.intercept = ({ url }) =>
    url.endsWith('/userinfo') ? new Response('', { status: 503 }) : undefined
  upstream.asked.length = 0
  await app.events()
  expect((await go('linked')).heading).toBe('Your account')
  expect(upstream.asked).not.toContain('/userinfo')
  expect((await app.events()).map(({ type }) => type)).toEqual(['user.login'])
  await expectRefusal('bad_answer', () => go('new'), 'thin')
})

test('userinfo about another subject', async () => {
  upstream.twist = draft => {
    delete draft.claims.email
    draft.userinfo = { ...draft.userinfo, sub: 'somebody-else' }
  }
  const go = () => goThrough(fresh(), upstream, '/oauth/social/up', { sub: 'not-linked' })
  await expectRefusal('userinfo_sub', go)
})

test.each([
  ['of an algorithm that was not announced', 'userinfo_alg', { alg: 'ES256' }, {}],
  ['for another client', 'userinfo_aud', { alg: 'RS256' }, { aud: 'another' }],
  ['with an unknown critical header', 'userinfo', { alg: 'RS256', crit: ['x'], x: 1 }, {}],
])('a signed answer of userinfo %s: %s', async (_, reason, header, claims) => {
  await addProvider(app, 'signing')
  upstream.twist = draft => {
    delete draft.claims.email
  }
  const token = [header, { sub: 'not-linked', ...claims }, {}]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  upstream.intercept = async ({ url }) => {
    if (url.endsWith('/userinfo'))
      return new Response(token, { headers: { 'content-type': 'application/jwt' } })
    if (!url.endsWith('/openid-configuration')) return undefined
    const metadata = await (await upstream.fetch(new Request(url))).json()
    return Response.json({ ...metadata, userinfo_signing_alg_values_supported: ['RS256'] })
  }
  const go = () => goThrough(fresh(), upstream, '/oauth/social/signing', { sub: 'not-linked' })
  await expectRefusal(reason, go, 'signing')
  await app.admin('DELETE', '/identity-providers/signing')
})

describe('a provider with wrong answers', () => {
  const answers: [string, string, () => Response][] = [
    ['an error', 'code_refused', () => Response.json({ error: 'invalid_grant' }, { status: 400 })],
    ['no JSON', 'bad_answer', () => new Response('<html>')],
    ['an empty object', 'bad_answer', () => Response.json({})],
    ['no ID token', 'id_token', () => Response.json({ access_token: 'x', token_type: 'Bearer' })],
    [
      'a malformed ID token',
      'id_token',
      () => Response.json({ access_token: 'x', token_type: 'Bearer', id_token: 'a.b' }),
    ],
    ['a server error', 'bad_answer', () => new Response('', { status: 500 })],
    ['a redirect', 'bad_answer', () => Response.redirect('https://10.0.0.1/', 302)],
    [
      'nothing in time',
      'provider_unreachable',
      () => {
        throw new OutboundError('There was no whole answer in time.')
      },
    ],
  ]
  test.each(answers)('at its token endpoint: %s', async (_, reason, answer) => {
    upstream.intercept = request => (request.url.endsWith('/token') ? answer() : undefined)
    await expectRefusal(reason, () => goThrough(fresh(), upstream, '/oauth/social/up'))
  })

  test('discovery fails: the login stops, nothing waits, and the provider is not asked again for 15 seconds', async () => {
    await addProvider(app, 'down')
    await app.events()
    upstream.intercept = () => new Response('', { status: 503 })
    const page = await fresh().get('/oauth/social/down')
    expect([page.status, page.heading]).toEqual([502, 'Signing in didn’t work'])
    expect(await app.events()).toEqual([])
    upstream.asked.length = 0
    app.clock.advance(14_999)
    expect((await fresh().get('/oauth/social/down')).status).toBe(502)
    expect(upstream.asked).toEqual([])
    app.clock.advance(1)
    expect((await fresh().get('/oauth/social/down')).status).toBe(502)
    expect(upstream.asked).toEqual(['/.well-known/openid-configuration'])
    honest()
    // A change of the settings clears the cached failure.
    await app.admin('PUT', '/identity-providers/down', { name: 'Up again' })
    expect((await fresh().get('/oauth/social/down')).location).toStartWith(ISSUER)
  })

  test('FED-29 discovery fails at a login that waits: the page leads back to it', async () => {
    await addProvider(app, 'broken')
    upstream.intercept = () => new Response('', { status: 503 })
    const browser = fresh()
    const login = await browser.get('/account')
    const button = /href="(\/oauth\/social\/broken\?request=[^"]+)"/.exec(login.html)?.[1] ?? ''
    const page = await browser.get(button)
    expect([page.status, page.heading]).toEqual([502, 'Signing in didn’t work'])
    const link = /href="(\/oauth\/login\?request=[^"]+)"/.exec(page.html)?.[1] ?? ''
    expect((await browser.get(link)).heading).toBe('Sign in')
  })

  test('a failure from before the clock was set back is forgotten', async () => {
    await addProvider(app, 'early')
    upstream.intercept = () => new Response('', { status: 503 })
    app.clock.advance(3_600_000)
    expect((await fresh().get('/oauth/social/early')).status).toBe(502)
    app.clock.advance(-3_600_000)
    honest()
    expect((await fresh().get('/oauth/social/early')).location).toStartWith(ISSUER)
  })

  test('discovery has another issuer, or an endpoint that is not a web address', async () => {
    await addProvider(app, 'mixed')
    const metadata = {
      issuer: ISSUER,
      authorization_endpoint: 'javascript:alert(1)',
      token_endpoint: `${ISSUER}/token`,
      jwks_uri: `${ISSUER}/jwks`,
    }
    for (const change of [
      {},
      { issuer: 'https://evil.example', authorization_endpoint: `${ISSUER}/authorize` },
    ]) {
      upstream.intercept = () => Response.json({ ...metadata, ...change })
      expect((await fresh().get('/oauth/social/mixed')).status).toBe(502)
    }
  })
})

test('R-21 a provider that does not answer delays only its own logins', async () => {
  await addProvider(app, 'slow', { client_id: 'slow' })
  const silence = Promise.withResolvers<Response>()
  upstream.intercept = async request =>
    request.url.endsWith('/token') && (await request.clone().text()).includes('%2Fslow%2F')
      ? silence.promise
      : undefined
  const waiting = [1, 2, 3].map(() => goThrough(fresh(), upstream, '/oauth/social/slow'))
  const other = await goThrough(fresh(), upstream, '/oauth/social/up')
  expect(other.heading).toBe('Your account')
  silence.resolve(Response.json({ error: 'temporarily_unavailable' }, { status: 503 }))
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([400, 400, 400])
})

test('R-22 callbacks of random bytes are each refused, none with 5xx', async () => {
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed % below
  }
  const alphabet = [
    '%',
    '&',
    '=',
    '+',
    '%00',
    '%ff',
    '%F0%9F',
    'state',
    'code',
    'iss',
    'error',
    'id_token',
    '[]',
    '"',
    '<',
    '\u00e9',
    'a',
    '.',
    '../',
    'response',
  ]
  const text = () => Array.from({ length: random(40) }, () => alphabet[random(alphabet.length)]).join('')
  const statuses = new Set<number>()
  for (let n = 0; n < 150; n++) {
    const browser = fresh()
    const away = await browser.get('/oauth/social/up')
    const state = new URL(away.location ?? '').searchParams.get('state')
    const query = `${text()}&state=${state}&${text()}`
    const got = await browser.get(`/oauth/social/up/callback?${query}`)
    const posted = await browser.post('/oauth/social/up/callback', query, { origin: 'null' })
    statuses.add(got.status).add((await browser.follow(posted)).status)
  }
  expect([...statuses].filter(status => status !== 400 && status !== 404)).toEqual([])
}, 60_000)
