import { beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import type { Draft } from '#src/dev/fake-openid.ts'
import { OutboundError } from '#src/http/outbound.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { addOrganization } from '#test/support/people.ts'
import { addProvider, atUpstream, goThrough, ISSUER, pathOf, startFederated } from '../upstream.ts'

const { app, upstream, honest } = await startFederated()
await addProvider(app, 'up')
let made = 0

beforeEach(async () => {
  honest()
  await app.events()
})

/** Each from an address of its own: refusals are counted by address. */
const fresh = (): Browser => openBrowser(app, { ip: `198.51.${made >> 8}.${made++ & 255}` })

const sum = () =>
  app.context.store.read(async q => {
    const { external_accounts, logins, users, sessions } = q.tables
    return [
      (await q.select().from(users)).length,
      (await q.select().from(logins)).length,
      (await q.select().from(external_accounts)).length,
      (await q.select().from(sessions)).length,
    ]
  })

const withoutId = (page: Page): string =>
  page.html.replaceAll(page.headers.get('x-request-id') ?? '', '').replace(/request=[\w-]+/, 'request=')

/** Refused with the one page, a reason in the audit log, and nothing stored. */
const expectRefusal = async (reason: string, walk: () => Promise<Page>, alias = 'up'): Promise<Page> => {
  const before = await sum()
  await app.events()
  const page = await walk()
  expect([page.status, page.heading]).toEqual([400, 'Signing in didn’t work'])
  expect(page.html).toContain(page.headers.get('x-request-id') ?? '-')
  expect(page.headers.getSetCookie()).toEqual([])
  const provider = await app.admin('GET', `/identity-providers/${alias}`)
  expect((await app.events()).filter(({ type }) => !/^token/.test(type))).toEqual([
    {
      type: 'user.login_failed',
      actor_id: null,
      target_id: '',
      target_type: 'user',
      organization_id: 'org_default',
      metadata: {
        username_attempted: '',
        failure_reason: reason,
        attempt_count: expect.any(Number),
        identity_provider: provider.body.id,
      },
    },
  ])
  expect(await sum()).toEqual(before)
  return page
}

describe('an ID token that is wrong in one way', () => {
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
  const pages: string[] = []

  test.each(cases)('%s: %s', async (_, reason, twist) => {
    upstream.twist = twist
    const page = await expectRefusal(reason, () => goThrough(fresh(), upstream, '/oauth/social/up'))
    pages.push(withoutId(page))
  })

  test('FED-16 the page is the same for every reason', () => {
    expect(pages).toHaveLength(cases.length)
    expect(new Set(pages).size).toBe(1)
  })

  test('and an honest one is let in between them', async () => {
    const page = await goThrough(fresh(), upstream, '/oauth/social/up')
    expect([page.status, page.heading]).toEqual([200, 'Your account'])
  })
})

describe('keys', () => {
  const unnamed = ({ header }: Draft) => {
    delete header.kid
  }

  test('no kid: the only key is taken', async () => {
    await addProvider(app, 'one-key')
    Object.assign(upstream, { twist: unnamed })
    const page = await goThrough(fresh(), upstream, '/oauth/social/one-key', {
      sub: 'keyless',
      email: 'keyless@example.com',
    })
    expect(page.heading).toBe('Your account')
  })

  test('no kid and many keys: refused', async () => {
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

test('userinfo about somebody else', async () => {
  upstream.twist = draft => {
    delete draft.claims.email
    draft.userinfo = { ...draft.userinfo, sub: 'somebody-else' }
  }
  await expectRefusal('userinfo_sub', () => goThrough(fresh(), upstream, '/oauth/social/up'))
})

describe('a provider that answers badly', () => {
  const answers: [string, string, () => Response][] = [
    ['an error', 'code_refused', () => Response.json({ error: 'invalid_grant' }, { status: 400 })],
    ['no JSON', 'bad_answer', () => new Response('<html>')],
    ['an empty object', 'bad_answer', () => Response.json({})],
    ['no ID token', 'id_token', () => Response.json({ access_token: 'x', token_type: 'Bearer' })],
    [
      'an ID token that is none',
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

  test('about itself: no way there; it is left alone for a quarter of a minute, and nobody waits for it', async () => {
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
    // Changed settings take effect without a wait.
    await app.admin('PUT', '/identity-providers/down', { name: 'Up again' })
    expect((await fresh().get('/oauth/social/down')).location).toStartWith(ISSUER)
  })

  test('about itself: metadata of another issuer, or that leads to no web address', async () => {
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

test('R-21 a provider that does not answer keeps nobody waiting but those who asked it', async () => {
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

describe('O-24 a callback that is not the end of this browser’s own journey', () => {
  const begin = async (browser: Browser, alias = 'up'): Promise<string> => {
    const away = await browser.get(`/oauth/social/${alias}`)
    return pathOf(await atUpstream(upstream, away.location ?? '', { sub: 'o24', email: 'o24@example.com' }))
  }
  const refusedWith = (reason: string, browser: Browser, path: string, alias?: string) =>
    expectRefusal(reason, async () => browser.follow(await browser.get(path)), alias)

  test('no state, an unknown one, one given twice', async () => {
    const browser = fresh()
    const path = await begin(browser)
    const { searchParams } = new URL(path, ISSUER)
    for (const query of [
      '',
      'code=x',
      'code=x&state=',
      'code=x&state=unknown',
      `${searchParams}&state=${searchParams.get('state')}`,
    ])
      await refusedWith('unknown_state', browser, `/oauth/social/up/callback?${query}`)
  })

  test('in another browser: refused, and the owner’s is not used up by it', async () => {
    const owner = fresh()
    const path = await begin(owner)
    await refusedWith('unknown_state', fresh(), path)
    const other = fresh()
    await begin(other)
    await refusedWith('unknown_state', other, path)
    expect((await owner.follow(await owner.get(path))).heading).toBe('Your account')
  })

  test('a second time', async () => {
    const browser = fresh()
    const path = await begin(browser)
    expect((await browser.follow(await browser.get(path))).heading).toBe('Your account')
    await app.events()
    await refusedWith('unknown_state', browser, path)
  })

  test('at another provider, and with the issuer of another', async () => {
    await addProvider(app, 'twin')
    await app.events()
    const browser = fresh()
    const path = await begin(browser)
    await refusedWith('unknown_state', browser, path.replace('/up/', '/twin/'), 'twin')
    const mixed = path.replace(encodeURIComponent(ISSUER), encodeURIComponent('https://evil.example'))
    await refusedWith('bad_answer', browser, mixed)
    const silent = (await begin(browser)).replace(/&iss=[^&]*/, '')
    await refusedWith('bad_answer', browser, silent)
  })

  test('M-04 a state is no other handle of ours, and no other handle is a state', async () => {
    const browser = fresh()
    const state = new URL(await begin(browser), ISSUER).searchParams.get('state') ?? ''
    expect((await browser.get(`/oauth/login?request=${state}`)).status).toBe(400)
    expect((await browser.get(`/oauth/link-account?request=${state}`)).status).toBe(400)
    expect((await browser.get(`/oauth/social/up/callback/replay?handle=${state}`)).status).toBe(400)
    expect((await browser.get(`/oauth/authorize/replay?handle=${state}`)).status).toBe(400)
  })

  test('after half an hour', async () => {
    const browser = fresh()
    const path = await begin(browser)
    app.clock.advance(30 * 60_000)
    await refusedWith('unknown_state', browser, path)
  })
})

test('whoever says no there comes back to the other ways in', async () => {
  const page = await expectRefusal('access_denied', () =>
    goThrough(fresh(), upstream, '/oauth/social/up', { decision: 'deny' } as object),
  )
  expect(page.html).toMatch(/href="\/oauth\/login\?request=[\w-]+"/)
})

test('M-09 a provider that is switched off lets nobody out or in, on the way neither', async () => {
  await addProvider(app, 'off')
  const browser = fresh()
  const away = await browser.get('/oauth/social/off')
  const path = pathOf(await atUpstream(upstream, away.location ?? ''))
  await app.admin('PUT', '/identity-providers/off', { enabled: false })
  await app.events()
  await expectRefusal('provider_disabled', () => browser.get(path), 'off')
  expect((await fresh().get('/oauth/social/off')).status).toBe(404)
})

test('unknown providers, SAML ones and those of another organization are not found', async () => {
  const { id } = await addOrganization(app, 'elsewhere')
  await addProvider(app, 'theirs', { organization_id: id })
  const browser = fresh()
  const login = await browser.follow(await browser.get('/account'))
  const request = login.forms.find(({ action }) => action === '/oauth/login')?.fields.request
  expect(login.html).toContain('/oauth/social/up?request=')
  expect(login.html).not.toContain('/oauth/social/theirs')
  for (const path of [
    '/oauth/social/nobody',
    `/oauth/social/theirs?request=${request}`,
    '/oauth/social/nobody/callback?state=x',
  ])
    expect((await browser.get(path)).status).toBe(404)
})

test('FED-15 refused arrivals are throttled by address, apart from passwords', async () => {
  const browser = openBrowser(app, { ip: '203.0.113.77' })
  for (let n = 0; n < 30; n++) expect((await browser.get('/oauth/social/up/callback')).status).toBe(400)
  const late = await browser.get('/oauth/social/up/callback')
  expect([late.status, late.headers.get('retry-after')]).toEqual([429, '60'])
  expect((await browser.post('/oauth/social/up/callback', 'state=x')).status).toBe(429)
  expect((await browser.get('/account')).heading).toBe('Sign in')
  expect((await fresh().get('/oauth/social/up/callback')).status).toBe(400)
  app.clock.advance(60_000)
  expect((await browser.get('/oauth/social/up/callback')).status).toBe(400)
})

test('R-22 callbacks of random bytes: refused each, none with 5xx', async () => {
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
