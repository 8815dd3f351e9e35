import { expect, test } from 'bun:test'
import { addSaml, certifiedProvider, partyOf, post } from '#test/federation/saml/world.ts'
import { type Json, startApp } from '#test/support/app.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  CHALLENGE,
  PASSWORD,
  REDIRECT,
  VERIFIER,
} from '#test/support/people.ts'
import { random } from '#test/support/random.ts'
import { encode as encodeSaml } from '#test/support/saml/identity-provider.ts'
import { mutate } from '#test/support/saml/mutate.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { addCode, grantTokens } from '#test/support/tokens.ts'
import { figure, LONG } from './faults.ts'
import { LONGEST_HOLD, timed } from './hold.ts'

/** Number of inputs for each family. */
const ROUNDS = Number(process.env.FUZZ ?? (LONG ? 100_000 : 1_500))
/** Seed of the run. A failed test prints the seed. */
const SEED = Number(process.env.FUZZ_SEED ?? 20_260_115)

const texts = [
  '',
  ' ',
  '\0',
  '\r\n',
  '\ufeff',
  '%',
  '%zz',
  '%00',
  '%ff%fe',
  '..',
  '../..',
  "'",
  '"',
  '`',
  ';--',
  '<script>',
  '{}',
  '[]',
  'null',
  'undefined',
  'NaN',
  '-1',
  '0',
  '1e309',
  '9007199254740993',
  '__proto__',
  'constructor',
  'toString',
  '\ud800',
  '😀',
  'é',
  'ａ',
  '*',
  'a'.repeat(300),
  'x'.repeat(5000),
  'true',
  'org_default',
  'usr_',
  'role_admin',
  'default',
  'none',
  'login',
  'openid',
  'code',
  'S256',
  'https://evil.example/',
  REDIRECT,
  CHALLENGE,
  VERIFIER,
] as const

const fuzzer = (name: string) => {
  const next = random(SEED ^ Bun.hash.crc32(name))
  const below = (n: number) => Math.floor(next() * n)
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T
  const chance = (p: number) => next() < p
  /** Returns a text, unchanged or mutated. */
  const text = (like = ''): string => {
    const base = chance(0.5) ? like : String(pick(texts))
    if (chance(0.4)) return base
    const at = below(base.length + 1)
    return pick([
      base.slice(0, at),
      base.slice(0, at) + pick(texts) + base.slice(at),
      base.slice(at) + base.slice(0, at),
      base.toUpperCase(),
      String.fromCharCode(...Array.from({ length: below(12) }, () => below(0x10000))),
    ])
  }
  const value = (like: Json, depth = 0): Json => {
    if (depth > 3 || chance(0.5)) return chance(0.3) ? like : text(typeof like === 'string' ? like : '')
    return pick<() => Json>([
      () => null,
      () => below(2) === 1,
      () => pick([0, -1, 1.5, 1e308, 2 ** 53, below(1000)]),
      () => Array.from({ length: below(4) }, () => value(like, depth + 1)),
      () => ({ [text()]: value(like, depth + 1), [text('min_length')]: value(like, depth + 1) }),
      () => text(),
    ])()
  }
  /** Returns a valid object with some members mutated, removed or added. */
  const bend = (good: Json): Json => {
    const bent = Object.fromEntries(
      Object.entries<Json>(good)
        .filter(() => chance(0.95))
        .map(([key, each]) => [key, chance(0.75) ? each : value(each)]),
    )
    return chance(0.1) ? { ...bent, [text()]: value('') } : bent
  }
  /** Returns a form or query. Some parameters are left out, repeated, mutated or malformed. */
  const form = (good: Record<string, string>): string =>
    Object.entries(good)
      .filter(() => chance(0.96))
      .flatMap(pair => (chance(0.03) ? [pair, pair] : [pair]))
      .map(([key, each]) => {
        const sent = chance(0.8) ? each : text(each)
        return `${chance(0.98) ? key : text(key)}=${chance(0.9) ? encode(sent) : sent.replace(/[\0\r\n# ]/g, '+')}`
      })
      .join(chance(0.98) ? '&' : ';')
  return { next, pick, chance, text, value, bend, form }
}

const encode = (text: string): string => encodeURIComponent(text.toWellFormed())

const app = await startApp({
  admin_username: 'root',
  admin_email: 'root@example.com',
  admin_password: PASSWORD,
})
const organization = await addOrganization(app, 'acme')
const user = await addUser(app, 'alice')
const client = await addClient(app, 'shop', { capabilities: ['token_introspection'] })
const idp = await certifiedProvider()
await addSaml(app, idp, 'open', { allow_idp_initiated: true })
const role = (await app.admin('POST', '/roles', { name: 'editor', permissions: ['users:read'] })).body
const { client_id, client_secret } = client
const url = new URL(
  authorizeUrl('shop', {
    nonce: 'n',
    prompt: 'login',
    max_age: '60',
    ui_locales: 'de en',
    acr_values: '1',
    login_hint: 'alice',
  }),
  REDIRECT,
)
const authorization = Object.fromEntries(url.searchParams)

let longest = 0
/** Name of the running case. A case that has timed out stops when the name changes. */
let current = ''
/** Throws unless the input gets an answer below 500 and blocks the event loop for less than a second. */
const survives = async (what: string, ask: () => Response | Promise<Response>): Promise<Response> => {
  const { result: answer, spent } = await timed(async () => ask())
  longest = Math.max(longest, spent)
  if (answer.status >= 500 || spent > LONGEST_HOLD)
    throw new Error(`FUZZ_SEED=${SEED} ${answer.status} after ${Math.round(spent)} ms: ${what}`)
  return answer
}

/** Returns the resident memory in MiB, after a garbage collection. */
const resident = (): number => {
  Bun.gc(true)
  return process.memoryUsage.rss() / 2 ** 20
}

const isWell = async () => expect((await app.admin('GET', '/users')).status).toBe(200)

const rounds = (name: string, round: (fuzz: ReturnType<typeof fuzzer>, i: number) => Promise<Response>) =>
  test(
    `R-22 ${name}`,
    async () => {
      const fuzz = fuzzer(name)
      const statuses = new Set<number>()
      ;[current, longest] = [name, 0]
      let half = Number.NaN
      for (let i = 0; i < ROUNDS; i++) {
        if (current !== name) return
        // Moves the clock so that throttles expire. The inputs then reach the code behind the throttles.
        if (i % 20 === 0) app.clock.advance(120_000)
        if (i === ROUNDS >> 1) half = resident()
        statuses.add((await round(fuzz, i)).status)
      }
      // Some inputs must be valid, because invalid inputs would test only the first check.
      expect([...statuses].some(status => status < 400)).toBe(true)
      expect([...statuses].some(status => status >= 400)).toBe(true)
      await isWell()
      const end = resident()
      if (LONG) expect(end / half).toBeLessThan(1.2)
      figure(
        'R-22',
        `${name}: ${ROUNDS} inputs, no 5xx; the longest answer took ${longest.toFixed(0)} ms; resident MiB ${half.toFixed(0)} half-way, ${end.toFixed(0)} at the end`,
      )
    },
    Math.max(300_000, ROUNDS * 20),
  )

rounds('GET /oauth/authorize', (fuzz, i) => {
  const query = fuzz.form(authorization)
  const headers: Record<string, string> = fuzz.chance(0.2)
    ? {
        cookie: `gatehouse_browser_8080=${encode(fuzz.text())}; gatehouse_login_8080=${encode(fuzz.text())}`,
        accept: 'text/html',
      }
    : {}
  const path = i % 50 === 0 ? '/oauth/login?request=' : '/oauth/authorize?'
  return survives(query, () => app.call(`${path}${query}`, { headers }))
})

const postForm = (path: string, body: string, headers: Record<string, string> = {}) =>
  survives(`${path} ${body}`, () =>
    app.call(path, {
      method: 'POST',
      body: Buffer.from(body, body.length % 7 === 0 ? 'latin1' : 'utf8'),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    }),
  )

rounds('POST /oauth/authorize', fuzz => postForm('/oauth/authorize', fuzz.form(authorization)))

rounds('POST /oauth/token', async (fuzz, i) => {
  const grants: Record<string, string>[] = [
    { grant_type: 'client_credentials', scope: 'openid' },
    { grant_type: 'refresh_token', refresh_token: 'x'.repeat(43), scope: 'openid' },
    {
      grant_type: 'authorization_code',
      code: i % 10 === 0 ? await addCode(app, client, user) : 'x'.repeat(43),
      redirect_uri: REDIRECT,
      code_verifier: VERIFIER,
    },
  ]
  const basic = Buffer.from(fuzz.text(`${client_id}:${client_secret}`)).toString('base64')
  const headers: Record<string, string> = fuzz.chance(0.2) ? { authorization: `Basic ${basic}` } : {}
  return postForm('/oauth/token', fuzz.form({ client_id, client_secret, ...fuzz.pick(grants) }), headers)
})

rounds('the other OAuth endpoints', async fuzz => {
  const token = fuzz.text('eyJhbGciOiJFUzI1NiJ9.e30.x')
  const path = fuzz.pick([
    '/oauth/revoke',
    '/oauth/introspect',
    '/oauth/logout',
    '/oauth/consent',
    '/oauth/login',
    '/oauth/userinfo',
  ])
  const body = fuzz.form({
    client_id,
    client_secret,
    token,
    csrf_token: token,
    id_token_hint: token,
    decision: 'approve',
  })
  const authorization = `Bearer ${token.replace(/[^\x20-\x7e]/g, '?')}`
  return postForm(path, body, fuzz.chance(0.3) ? { authorization } : {})
})

rounds('H-05 POST /saml/:provider/acs', async (fuzz, i) => {
  const roll = (n: number) => Math.floor(fuzz.next() * n)
  const xml = idp.respond(ordinary(partyOf(app, 'open')), fuzz.pick(['response', 'assertion', 'both']))
  const SAMLResponse = encodeSaml(mutate(xml, roll))
  const fields = fuzz.form({ SAMLResponse: fuzz.chance(0.95) ? SAMLResponse : fuzz.text(SAMLResponse) })
  // Each callback has its own network, so that the limit of callbacks does not apply.
  const answer = await survives(fields, () => post(app, 'open', fields, `2001:db8:${i.toString(16)}::1`))
  if (answer.status < 400) expect(answer.status).toBe(303)
  return answer
})

const bodies: Record<string, Json> = {
  'POST /users': { ...user, password: PASSWORD },
  [`PUT /users/${user.id}`]: {
    first_name: 'A',
    attributes: { a: [1, { b: null }] },
    roles: ['user'],
    enabled: true,
  },
  'POST /organizations': {
    name: 'New',
    slug: 'new',
    settings: {
      theme: 'slate',
      session_ttl: '12h',
      allowed_domains: ['a.example'],
      password_policy: { min_length: 8 },
    },
  },
  [`PUT /organizations/${organization.id}`]: {
    display_name: 'A',
    settings: { session_ttl: null, password_policy: null },
  },
  'POST /roles': { name: 'r', description: '', permissions: ['users:read'] },
  [`PUT /roles/${role.id}`]: { description: 'x', permissions: ['users:read'] },
  'POST /groups': { name: 'g', description: '', roles: ['user'] },
  'POST /clients': { ...client, client_id: 'new', client_secret: undefined },
  'PUT /clients/shop': {
    name: 'Shop',
    redirect_uris: [REDIRECT],
    scopes: ['openid'],
    web_origins: ['https://a.example'],
  },
  'POST /identity-providers': {
    name: 'G',
    alias: 'g',
    type: 'oidc',
    preset: 'google',
    client_id: 'x',
    client_secret: 'y',
  },
}
delete bodies['POST /users'].id
for (const name of ['created_at', 'updated_at', 'last_login']) delete bodies['POST /users'][name]

const adminCall = async (method: string, path: string, init: RequestInit, token: string): Promise<Response> =>
  survives(`${method} ${path} ${init.body}`, () =>
    app.call(`/api/v1/admin${path}`, {
      method,
      ...init,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    }),
  )

const adminToken = () => app.tokenOf('gatehouse-admin', 'test-admin-secret-with-enough-entropy')

rounds('JSON bodies of the admin API', async fuzz => {
  const [method = '', path = ''] = fuzz.pick(Object.keys(bodies)).split(' ')
  const good = bodies[`${method} ${path}`]
  const unique = method === 'POST' ? { ...good, ...names(fuzz) } : good
  const whole = JSON.stringify(fuzz.chance(0.9) ? fuzz.bend(pickOwn(good, unique)) : fuzz.value(good))
  const body = fuzz.chance(0.95) ? whole : fuzz.text(whole)
  return adminCall(method, path, { body: Buffer.from(body ?? '', 'utf8') }, await currentToken())
})

/** New names, so that valid bodies create an object. */
const names = (fuzz: ReturnType<typeof fuzzer>): Json => {
  const name = `n-${Math.floor(fuzz.next() * 1e9)}`
  return { username: name, email: `${name}@example.com`, name, slug: name, client_id: name, alias: name }
}
const pickOwn = (good: Json, all: Json): Json =>
  Object.fromEntries(Object.keys(good).map(key => [key, all[key]]))

rounds('queries and paths of the admin API', async fuzz => {
  const lists: Record<string, Record<string, string>> = {
    '/users': {
      limit: '20',
      sort: 'email',
      order: 'asc',
      search: 'ali',
      enabled: 'true',
      role: 'user',
      email_verified: 'false',
    },
    '/organizations': { search: 'acme' },
    '/roles': { organization_id: 'org_default' },
    '/groups': { organization_id: 'org_default' },
    '/clients': { type: 'public', organization_id: organization.id },
    '/sessions': { user_id: user.id, client_id, organization_id: 'org_default' },
    '/events': {
      type: 'user.login',
      actor_id: user.id,
      ip_address: '::1',
      from: '2026-01-01',
      to: '2026-12-31T00:00:00Z',
    },
    '/identity-providers': {},
  }
  const path = fuzz.pick(Object.keys(lists))
  const query = fuzz.form({ ...lists[path], ...(fuzz.chance(0.2) && { cursor: fuzz.text('abc.def') }) })
  const target = fuzz.chance(0.7) ? `${path}?${query}` : `${path}/${encode(fuzz.text(user.id)) || 'x'}`
  return adminCall('GET', target, {}, await currentToken())
})

const currentToken = (() => {
  let made = { token: '', until: 0 }
  return async () => {
    if (app.clock.now() >= made.until)
      made = { token: await adminToken(), until: app.clock.now() + 3_000_000 }
    return made.token
  }
})()

rounds('bearer tokens', async (fuzz, i) => {
  const { access_token } = i % 100 === 0 ? await grantTokens(app, client, user) : { access_token: 'a.b.c' }
  const [head = '', payload = '', signature = ''] = String(access_token).split('.')
  const bent =
    i % 100 === 0 ? access_token : [fuzz.text(head), fuzz.text(payload), fuzz.text(signature)].join('.')
  const authorization = `${fuzz.chance(0.9) ? 'Bearer' : fuzz.text('Bearer')} ${bent}`.replace(
    /[^\x20-\x7e]/g,
    '?',
  )
  return survives(authorization, () => app.call('/oauth/userinfo', { headers: { authorization } }))
})
