/**
 * What every way of using the package has to do, in every runtime: cases as data and functions, without a test framework.
 * `requestCases` run once for each target, each with an issuer, a clock and routes of its own.
 */
import { ok, deepStrictEqual as same } from 'node:assert/strict'
import type { Claims, ErrorCode, Rules, Verifier, VerifierOptions } from '#src/resource-server/index.ts'
import type { BadToken, Header, Payload, TestIssuer } from '#src/resource-server/testing.ts'
import { type Mounted, type Route, requestFor, type Sdk, type Target } from './targets.ts'

const START = 1_900_000_000_000
const NOW = START / 1000
const ISSUER = 'https://id.example.test'
const REALM = `Bearer realm="${ISSUER}"`

type Reply = { status: number; challenge: string | null; retryAfter: number; body: Record<string, unknown> }
/** Sends a bearer token, or headers as they are, or nothing. */
type Ask = (token?: string | HeadersInit) => Promise<Reply>

export type World = {
  sdk: Sdk
  clock: { now: number }
  issuer: TestIssuer
  verifier(options?: Partial<VerifierOptions>): Verifier
  route(route?: Partial<Route>): Promise<Ask>
}

export type Case = { name: string; run(world: World): Promise<void> }

/** Runs one case on one target. Rejects with what was wrong. */
export async function runCase(sdk: Sdk, target: Target, { run }: Case): Promise<void> {
  const clock = { now: START }
  const issuer = await sdk.testing.createTestIssuer({ issuer: ISSUER, now: () => clock.now })
  const mounted: Mounted[] = []
  const verifier = (options: Partial<VerifierOptions> = {}) =>
    sdk.core.createVerifier({ ...issuer, ...options })
  const route = async (options: Partial<Route> = {}): Promise<Ask> => {
    const app = await target.mount(sdk, { verifier: verifier(), ...options })
    mounted.push(app)
    return async token => {
      const headers = typeof token === 'string' ? { authorization: `Bearer ${token}` } : (token ?? {})
      const { status, headers: answer, ...response } = await app.send(requestFor(headers)).then(readReply)
      return {
        status,
        challenge: answer.get('www-authenticate'),
        retryAfter: Number(answer.get('retry-after')),
        ...response,
      }
    }
  }
  try {
    await run({ sdk, clock, issuer, verifier, route })
  } finally {
    await Promise.all(mounted.map(app => app.close()))
  }
}

async function readReply(response: Response) {
  const body = (await response.json()) as Record<string, unknown>
  return { status: response.status, headers: response.headers, body }
}

function accepted(reply: Reply): Claims {
  same([reply.status, reply.body.code], [200, undefined])
  return reply.body.claims as Claims
}

function refused(reply: Reply, code: ErrorCode) {
  same([reply.body.code, reply.status], [code, code === 'jwks_unavailable' ? 503 : 401])
  same(reply.body.status, reply.status)
  if (code === 'jwks_unavailable') {
    same(reply.challenge, null)
    ok(reply.retryAfter >= 1 && Number.isInteger(reply.retryAfter), `Retry-After ${reply.retryAfter}`)
  } else {
    const description = reply.body.error_description
    const error =
      code === 'token_missing' ? '' : `, error="invalid_token", error_description="${description}"`
    same([reply.challenge, reply.body.error], [`${REALM}${error}`, 'invalid_token'])
  }
}

type Outcome = 'accepted' | ErrorCode
const check = (reply: Reply, outcome: Outcome) =>
  outcome === 'accepted' ? void accepted(reply) : refused(reply, outcome)

/** One token, one outcome. `claims` and `header` bend the good token; undefined removes. */
type TokenRow = {
  claims?: Payload | string
  header?: Partial<Header>
  options?: Partial<VerifierOptions>
  token?: (world: World) => Promise<string>
  /** Milliseconds after the token was made. */
  after?: number
  is: Outcome
}

const tokenCases = (rows: Record<string, TokenRow>): Case[] =>
  Object.entries(rows).map(([name, { claims, header, options, token, after = 0, is }]) => ({
    name: `${name}: ${is}`,
    async run(world) {
      const ask = await world.route({ verifier: world.verifier(options) })
      const bearer = await (token?.(world) ?? world.issuer.token(claims, header))
      world.clock.now += after
      check(await ask(bearer), is)
    },
  }))

const plainJwt: Partial<Header> = { typ: 'JWT' }
const idToken = { scope: undefined, jti: undefined }

const tokens = tokenCases({
  'a good token': { is: 'accepted' },
  ...Object.fromEntries(
    Object.entries({
      expired: 'token_expired',
      'not-yet-valid': 'token_not_yet_valid',
      'wrong-iss': 'claim_invalid',
      'wrong-aud': 'claim_invalid',
      'wrong-signature': 'invalid_signature',
      'unknown-kid': 'unknown_key',
      'alg-none': 'algorithm_not_allowed',
      'hs256-with-public-key': 'algorithm_not_allowed',
      'id-token': 'token_type',
      'missing-claim': 'claim_missing',
      tampered: 'invalid_signature',
    } satisfies Record<BadToken, ErrorCode>).map(([kind, is]) => [
      `bad token ${kind}`,
      { token: (world: World) => world.issuer.badToken(kind as BadToken), is },
    ]),
  ),

  'two parts': { token: async () => 'e30.e30', is: 'token_malformed' },
  'five parts, as an encrypted token has': {
    token: async () => 'e30.e30.e30.e30.e30',
    is: 'token_malformed',
  },
  'three empty parts': { token: async () => '..', is: 'token_malformed' },
  'a header that is no JSON': { token: async () => 'AAAA.e30.AAAA', is: 'token_malformed' },
  'a header that is an array': { token: async () => 'W10.e30.AAAA', is: 'token_malformed' },
  'a token of 9 KiB': { claims: { padding: 'x'.repeat(6_500) }, is: 'token_malformed' },
  'a token of 7 KiB': { claims: { padding: 'x'.repeat(4_800) }, is: 'accepted' },
  'a payload that is an array': { claims: '[]', is: 'token_malformed' },
  'a payload that is null': { claims: 'null', is: 'token_malformed' },
  'a payload that is no JSON': { claims: '{"iss":', is: 'token_malformed' },
  'an empty signature': {
    token: async ({ issuer }) => (await issuer.token()).replace(/[^.]*$/, ''),
    is: 'invalid_signature',
  },

  'header crit': { header: { crit: ['exp'] }, is: 'token_malformed' },
  'header crit b64': { header: { crit: ['b64'], b64: true }, is: 'token_malformed' },
  'header jku': { header: { jku: 'https://evil.example/jwks' }, is: 'token_malformed' },
  'header x5u': { header: { x5u: 'https://evil.example/cert' }, is: 'token_malformed' },
  'header jwk': { header: { jwk: { kty: 'EC' } }, is: 'token_malformed' },
  'header x5c': { header: { x5c: ['MII'] }, is: 'token_malformed' },
  'header kid a number': { header: { kid: 1 as never }, is: 'token_malformed' },
  'header kid a path': { header: { kid: '../../etc/passwd' }, is: 'unknown_key' },
  'header kid of 10,000 characters': { header: { kid: 'k'.repeat(5_000) }, is: 'unknown_key' },
  'no kid and one key': { header: { kid: undefined }, is: 'accepted' },
  'alg a number': { token: tokenSaying(256), is: 'token_malformed' },
  'alg PS256': { token: tokenSaying('PS256'), is: 'algorithm_not_allowed' },
  'alg EdDSA': { token: tokenSaying('EdDSA'), is: 'algorithm_not_allowed' },
  'alg es256 in lower case': { token: tokenSaying('es256'), is: 'algorithm_not_allowed' },
  'alg toString': { token: tokenSaying('toString'), is: 'algorithm_not_allowed' },
  'no alg': { token: tokenSaying(undefined), is: 'token_malformed' },
  'RS256 header with an EC key': { token: tokenSaying('RS256'), is: 'algorithm_not_allowed' },
  'ES384 header with a P-256 key': { token: tokenSaying('ES384'), is: 'algorithm_not_allowed' },

  'typ AT+JWT': { header: { typ: 'AT+JWT' }, is: 'accepted' },
  'typ application/at+jwt': { header: { typ: 'application/at+jwt' }, is: 'accepted' },
  'typ JWT with scope and jti': { header: plainJwt, is: 'accepted' },
  'no typ with scope and jti': { header: { typ: undefined }, is: 'accepted' },
  'typ JWT with an empty scope': { header: plainJwt, claims: { scope: '' }, is: 'accepted' },
  'typ JWT without scope': { header: plainJwt, claims: { scope: undefined }, is: 'token_type' },
  'typ JWT without jti': { header: plainJwt, claims: { jti: undefined }, is: 'token_type' },
  'typ JWT with nonce': { header: plainJwt, claims: { nonce: 'n' }, is: 'token_type' },
  'typ JWT with at_hash': { header: plainJwt, claims: { at_hash: 'h' }, is: 'token_type' },
  'typ JWT with auth_time': { header: plainJwt, claims: { auth_time: NOW }, is: 'token_type' },
  'no typ, an ID token': { header: { typ: undefined }, claims: idToken, is: 'token_type' },
  'typ logout+jwt': { header: { typ: 'logout+jwt' }, is: 'token_type' },
  'typ a number': { header: { typ: 1 as never }, is: 'token_type' },
  'strictType, typ at+jwt': { options: { strictType: true }, is: 'accepted' },
  'strictType, typ JWT': { options: { strictType: true }, header: plainJwt, is: 'token_type' },
  'strictType, no typ': { options: { strictType: true }, header: { typ: undefined }, is: 'token_type' },

  'iss with a trailing slash': { claims: { iss: `${ISSUER}/` }, is: 'claim_invalid' },
  'a trailing slash in the settings alone': { options: { issuer: `${ISSUER}/` }, is: 'accepted' },
  'a trailing slash in both': {
    options: { issuer: `${ISSUER}/` },
    claims: { iss: `${ISSUER}/` },
    is: 'accepted',
  },
  'iss in another case': { claims: { iss: ISSUER.toUpperCase() }, is: 'claim_invalid' },
  'iss an array': { claims: { iss: [ISSUER] }, is: 'claim_invalid' },
  'no iss': { claims: { iss: undefined }, is: 'claim_missing' },

  'aud an array with ours': { claims: { aud: ['other', 'test-client'] }, is: 'accepted' },
  'aud an array without ours': { claims: { aud: ['other', 'test-client-2'] }, is: 'claim_invalid' },
  'aud an empty array': { claims: { aud: [] }, is: 'claim_invalid' },
  'aud empty': { claims: { aud: '' }, is: 'claim_invalid' },
  'aud a part of ours': { claims: { aud: 'test' }, is: 'claim_invalid' },
  'aud a number': { claims: { aud: 1 }, is: 'claim_invalid' },
  'aud an array with a number': { claims: { aud: ['test-client', 1] }, is: 'claim_invalid' },
  'no aud': { claims: { aud: undefined }, is: 'claim_missing' },
  'aud one of several': { options: { audience: ['web', 'test-client'] }, is: 'accepted' },
  'aud none of several': { options: { audience: ['web', 'app'] }, is: 'claim_invalid' },

  'exp 1 ms inside the tolerance': { claims: { exp: NOW }, after: 4_999, is: 'accepted' },
  'exp at the edge of the tolerance': { claims: { exp: NOW }, after: 5_000, is: 'token_expired' },
  'exp now without tolerance': { claims: { exp: NOW }, options: { clockTolerance: 0 }, is: 'token_expired' },
  'no exp': { claims: { exp: undefined }, is: 'claim_missing' },
  'exp a string': { claims: { exp: `${NOW + 60}` }, is: 'claim_invalid' },
  'exp null': { claims: { exp: null }, is: 'claim_missing' },
  'exp infinite': { token: infiniteExp, is: 'claim_invalid' },
  'nbf at the edge of the tolerance': { claims: { nbf: NOW + 5 }, is: 'accepted' },
  'nbf beyond the tolerance': { claims: { nbf: NOW + 5.001 }, is: 'token_not_yet_valid' },
  'nbf a string': { claims: { nbf: 'soon' }, is: 'claim_invalid' },
  'no nbf': { claims: { nbf: undefined }, is: 'accepted' },
  'iat at the edge of the tolerance': { claims: { iat: NOW + 5 }, is: 'accepted' },
  'iat beyond the tolerance': { claims: { iat: NOW + 5.001 }, is: 'token_not_yet_valid' },
  'no iat': { claims: { iat: undefined }, is: 'claim_missing' },
  'clock two years ahead': { after: 63_072_000_000, is: 'token_expired' },
  'clock an hour behind': { after: -3_600_000, is: 'token_not_yet_valid' },

  'realm with org_': { options: { realm: 'org_default' }, is: 'accepted' },
  'realm without org_': { options: { realm: 'default' }, is: 'accepted' },
  'realm of another organization': { options: { realm: 'org_0192d3a4' }, is: 'claim_invalid' },
  'realm without org_id in the token': {
    options: { realm: 'default' },
    claims: { org_id: undefined },
    is: 'claim_missing',
  },
  'required claim there': { options: { requiredClaims: ['email'] }, is: 'accepted' },
  'required claim absent': { options: { requiredClaims: ['tenant'] }, is: 'claim_missing' },
  'required claim null': {
    options: { requiredClaims: ['tenant'] },
    claims: { tenant: null },
    is: 'claim_missing',
  },
  'required claim false': {
    options: { requiredClaims: ['tenant'] },
    claims: { tenant: false },
    is: 'accepted',
  },
  'required claim that every object inherits': {
    options: { requiredClaims: ['toString'] },
    is: 'claim_missing',
  },
  'sub empty': { claims: { sub: '' }, is: 'claim_invalid' },
  'no sub': { claims: { sub: undefined }, is: 'claim_missing' },
  'roles a string': { claims: { roles: 'admin' }, is: 'claim_invalid' },
  'roles with a number': { claims: { roles: ['user', 1] }, is: 'claim_invalid' },
  'scope an array': { claims: { scope: ['openid'] }, is: 'claim_invalid' },
  'email a number': { claims: { email: 1 }, is: 'claim_invalid' },
})

/** A token that says `alg` in its header, whoever signed it. */
function tokenSaying(alg: unknown) {
  return async ({ issuer }: World) => {
    const [head = '', ...rest] = (await issuer.token()).split('.')
    const header = JSON.parse(fromBase64url(head))
    return [base64url(JSON.stringify({ ...header, alg })), ...rest].join('.')
  }
}

const fromBase64url = (text: string) => atob(text.replaceAll('-', '+').replaceAll('_', '/'))
const base64url = (text: string) => btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')

/** `1e999` is a number in JSON, and infinite. */
async function infiniteExp({ issuer }: World) {
  const [, payload = ''] = (await issuer.token()).split('.')
  return issuer.token(fromBase64url(payload).replace(/"exp":\d+/, '"exp":1e999'))
}

const rights: Case[] = [
  {
    name: 'the claims are exposed under their wire names, everything else in raw',
    async run({ issuer, route }) {
      const ask = await route()
      const { raw, ...claims } = accepted(await ask(await issuer.token({ tenant: 'blue' })))
      same(claims, {
        sub: '0192d3a4-5b6c-7d8e-9f00-112233445566',
        email: 'alice@example.test',
        name: 'Alice Example',
        roles: ['user'],
        scope: 'openid',
        org_id: 'default',
        iss: ISSUER,
        aud: 'test-client',
        exp: NOW + 3600,
        iat: NOW,
      })
      same([raw.tenant, raw.preferred_username], ['blue', 'alice'])
    },
  },
  {
    name: 'the name falls back to preferred_username; a service has neither name nor e-mail nor roles',
    async run({ issuer, route }) {
      const ask = await route()
      const names = { given_name: undefined, family_name: undefined }
      same(accepted(await ask(await issuer.token(names))).name, 'alice')
      same(accepted(await ask(await issuer.token({ given_name: 'Al', family_name: '' }))).name, 'Al')
      const service = {
        ...names,
        preferred_username: undefined,
        email: undefined,
        roles: undefined,
        scope: undefined,
      }
      const { name, email, roles, scope } = accepted(
        await ask(await issuer.token({ ...service, org_id: undefined })),
      )
      same([name, email, roles, scope], [undefined, undefined, [], ''])
    },
  },
  {
    name: 'extraction: absent, empty and other schemes are no token',
    async run({ route }) {
      const ask = await route()
      refused(await ask(), 'token_missing')
      refused(await ask({ authorization: '' }), 'token_missing')
      refused(await ask({ authorization: 'Basic YTpi' }), 'token_missing')
      refused(await ask({ authorization: 'Bearertoken' }), 'token_missing')
      refused(await ask({ 'x-authorization': 'Bearer e30.e30.e30' }), 'token_missing')
    },
  },
  {
    name: 'extraction: the scheme in any case, one token, nothing else',
    async run({ issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
        accepted(await ask({ authorization: `${scheme} ${token}` }))
      }
      for (const value of [
        'Bearer',
        `Bearer ${token} x`,
        `Bearer "${token}"`,
        `Bearer ${token}, Bearer ${token}`,
        `Bearer ${token};`,
      ]) {
        refused(await ask({ authorization: value }), 'token_malformed')
      }
    },
  },
  {
    name: 'roles: all of them; anyRole: one of them, none of an empty list',
    async run({ issuer, route }) {
      const clerk = await issuer.token({ roles: ['user', 'clerk'] })
      const status = async (rules: Rules) => (await (await route({ rules }))(clerk)).status
      same(await status({ roles: ['clerk'] }), 200)
      same(await status({ roles: ['user', 'clerk'] }), 200)
      same(await status({ roles: ['user', 'admin'] }), 403)
      same(await status({ roles: ['cler'] }), 403)
      same(await status({ anyRole: ['admin', 'clerk'] }), 200)
      same(await status({ anyRole: ['admin', 'CLERK'] }), 403)
      same(await status({ anyRole: [] }), 403)
      const { body, challenge } = await (await route({ rules: { roles: ['admin'] } }))(clerk)
      same([body.error, body.code, body.status, challenge], ['forbidden', 'forbidden', 403, null])
    },
  },
  {
    name: 'scopes: all of them, else 403 insufficient_scope naming them',
    async run({ issuer, route }) {
      const token = await issuer.token({ scope: 'orders:readonly orders:write' })
      accepted(await (await route({ rules: { scopes: ['orders:write', 'orders:readonly'] } }))(token))
      const reply = await (await route({ rules: { scopes: ['orders:read', 'orders:write'] } }))(token)
      same(
        [reply.status, reply.body.error, reply.body.code],
        [403, 'insufficient_scope', 'insufficient_scope'],
      )
      ok(reply.challenge?.startsWith(`${REALM}, error="insufficient_scope", `), `${reply.challenge}`)
      ok(reply.challenge?.endsWith(', scope="orders:read orders:write"'), `${reply.challenge}`)
      same((await (await route({ rules: { scopes: [''] } }))(await issuer.token({ scope: 'a' }))).status, 403)
    },
  },
  {
    name: 'a bad token is 401 before any role or scope is looked at',
    async run({ issuer, route }) {
      const ask = await route({ rules: { roles: ['admin'], scopes: ['orders'] } })
      refused(await ask(await issuer.badToken('expired')), 'token_expired')
      refused(await ask(), 'token_missing')
    },
  },
  {
    name: 'optional: absent passes without claims, good passes with them, bad is 401',
    async run({ issuer, route }) {
      const ask = await route({ rules: { optional: true, roles: ['user'] } })
      same(accepted(await ask()), null)
      same(accepted(await ask({ authorization: 'Basic YTpi' })), null)
      same(accepted(await ask(await issuer.token())).name, 'Alice Example')
      refused(await ask(await issuer.badToken('expired')), 'token_expired')
      refused(await ask({ authorization: 'Bearer' }), 'token_malformed')
      same((await ask(await issuer.token({ roles: [] }))).status, 403)
    },
  },
  {
    name: 'optional with onInvalid anonymous: a bad token passes without claims, an unknowable one is 503',
    async run({ issuer, route, verifier }) {
      const rules: Rules = { optional: true, onInvalid: 'anonymous', roles: ['user'] }
      const ask = await route({ rules })
      same(accepted(await ask(await issuer.badToken('tampered'))), null)
      same(accepted(await ask({ authorization: 'Bearer' })), null)
      same(accepted(await ask(await issuer.token())).name, 'Alice Example')
      same((await ask(await issuer.token({ roles: [] }))).status, 403)
      issuer.intercept = dead
      refused(await (await route({ rules, verifier: verifier() }))(await issuer.token()), 'jwks_unavailable')
    },
  },
  {
    name: 'own handlers replace 401 and 403, and nothing else',
    async run({ issuer, route }) {
      const ask = await route({ ownHandlers: true, rules: { scopes: ['orders'] } })
      const handled = async (token?: string) => {
        const { status, body } = await ask(token)
        return [status, body.handled]
      }
      same(await handled(), [418, 'token_missing'])
      same(await handled(await issuer.badToken('expired')), [418, 'token_expired'])
      same(await handled(await issuer.token()), [418, 'insufficient_scope'])
      accepted(await ask(await issuer.token({ scope: 'orders' })))
      issuer.intercept = dead
      refused(await (await route({ ownHandlers: true }))(await issuer.token()), 'jwks_unavailable')
    },
  },
  {
    name: 'no refusal repeats what was sent',
    async run({ issuer, route }) {
      const ask = await route()
      for (const token of [
        await issuer.token({ iss: 'https://marker.example', sub: 'marker' }),
        await issuer.token({ aud: 'marker' }),
        await issuer.token({}, { kid: 'marker' }),
        await issuer.token({}, { typ: 'marker' }),
      ]) {
        const { body, challenge } = await ask(token)
        ok(!JSON.stringify([body, challenge]).includes('marker'), JSON.stringify([body, challenge]))
      }
    },
  },
]

const dead = () => {
  throw new TypeError('connection refused')
}
const answering =
  (status: number, body = '', headers: HeadersInit = {}) =>
  () =>
    new Response(body, { status, headers })

/** An answer that is held back until `release`. */
function held() {
  let release = () => {}
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  return { release, intercept: () => gate.then(() => undefined) }
}

const MINUTE = 60_000
/** Time for everything that needs no outside event to happen. */
const settle = async (done: () => boolean) => {
  for (let turn = 0; turn < 10_000 && !done(); turn++) await new Promise(resolve => setTimeout(resolve, 0))
  ok(done(), 'did not settle')
}

const keySets: Case[] = [
  {
    name: 'an ES256 header with an RSA key, and a key meant for another algorithm or use',
    async run({ issuer, route }) {
      const jwk = await issuer.rotate({ alg: 'RS256' })
      refused(await (await route())(await tokenSaying('ES256')({ issuer } as World)), 'algorithm_not_allowed')
      issuer.published = [{ ...jwk, alg: 'RS512' }]
      refused(await (await route())(await issuer.token()), 'algorithm_not_allowed')
      issuer.published = [{ ...jwk, use: 'enc' }]
      refused(await (await route())(await issuer.token()), 'unknown_key')
    },
  },
  {
    name: 'what is refused by its header alone costs no request',
    async run({ issuer, route }) {
      const ask = await route()
      refused(await ask(await issuer.badToken('alg-none')), 'algorithm_not_allowed')
      refused(await ask(await issuer.badToken('hs256-with-public-key')), 'algorithm_not_allowed')
      refused(await ask(await issuer.token({}, { jku: 'https://evil.example' })), 'token_malformed')
      refused(await ask(await issuer.token({}, { typ: 'logout+jwt' })), 'token_type')
      refused(await ask('a.b'), 'token_malformed')
      same(issuer.requests, [])
    },
  },
  {
    name: '50 parallel cold requests make one fetch',
    async run({ issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      same(issuer.requests.length, 0)
      for (const reply of await Promise.all(Array.from({ length: 50 }, () => ask(token)))) accepted(reply)
      same(issuer.requests, [`${ISSUER}/.well-known/jwks.json`])
    },
  },
  {
    name: '1,000 bogus kids make at most 3 fetches, and a rotation among them gets through within 10 s',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const flood = async (from: number, count: number) => {
        for (let kid = from; kid < from + count; kid++)
          refused(await ask(await issuer.token({}, { kid: `${kid}` })), 'unknown_key')
      }
      await Promise.all([flood(0, 250), flood(250, 250), flood(500, 250), flood(750, 250)])
      ok(issuer.requests.length <= 3, `${issuer.requests.length} fetches`)
      await issuer.rotate()
      const rotated = await issuer.token()
      refused(await ask(rotated), 'unknown_key')
      clock.now += 9_999
      await flood(1000, 5)
      clock.now += 1
      accepted(await ask(rotated))
      ok(issuer.requests.length <= 4, `${issuer.requests.length} fetches`)
    },
  },
  {
    name: 'one bogus kid over and over leaves room for a rotation',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const bogus = await issuer.badToken('unknown-kid')
      for (let second = 0; second < 100; second++) {
        refused(await ask(bogus), 'unknown_key')
        clock.now += 1_000
      }
      ok(issuer.requests.length <= 12, `${issuer.requests.length} fetches`)
      await issuer.rotate()
      accepted(await ask(await issuer.token()))
    },
  },
  {
    name: 'the same kid with another key: the old key until the set is fetched again, then the new one alone',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const old = await issuer.token()
      accepted(await ask(old))
      await issuer.rotate({ kid: 'test-key-1' })
      const replaced = await issuer.token()
      refused(await ask(replaced), 'invalid_signature')
      same(issuer.requests.length, 1)
      clock.now += 10 * MINUTE
      accepted(await ask(replaced))
      refused(await ask(old), 'invalid_signature')
    },
  },
  {
    name: 'a key that is no longer published is refused from the next fetch on',
    async run({ issuer, route }) {
      const ask = await route()
      const old = await issuer.token()
      accepted(await ask(old))
      await issuer.rotate({ keep: false })
      accepted(await ask(await issuer.token()))
      refused(await ask(old), 'unknown_key')
    },
  },
  {
    name: 'issuer down before the first fetch: 503, no storm, well again after the wait',
    async run({ clock, issuer, route, verifier }) {
      const large = `{"keys":[],"x":"${'x'.repeat(1024 * 1024)}"}`
      const faults = [
        dead,
        answering(500),
        answering(404),
        answering(302, '', { location: `${ISSUER}/elsewhere` }),
      ]
      for (const fault of [
        ...faults,
        answering(200, '<html>'),
        answering(200, '[]'),
        answering(200, large),
      ]) {
        issuer.intercept = fault
        issuer.requests.length = 0
        const ask = await route({ verifier: verifier() })
        const token = await issuer.token()
        const { retryAfter, ...reply } = await ask(token)
        refused({ retryAfter, ...reply }, 'jwks_unavailable')
        refused(await ask(token), 'jwks_unavailable')
        same([issuer.requests.length, reply.body.error], [1, 'temporarily_unavailable'])
        issuer.intercept = undefined
        clock.now += retryAfter * 1000
        accepted(await ask(token))
      }
    },
  },
  {
    name: 'an issuer that never answers: 503 after the time limit',
    async run({ issuer, route, verifier }) {
      const hanging: VerifierOptions['fetch'] = (_, init) =>
        new Promise((_, reject) => {
          // In Node the signal's timer alone does not keep the process alive, as the socket of a real request does.
          const socket = setInterval(() => {}, 1_000)
          init?.signal?.addEventListener('abort', () => {
            clearInterval(socket)
            reject(init.signal?.reason)
          })
        })
      const ask = await route({ verifier: verifier({ fetch: hanging, jwksTimeout: 0.01 }) })
      refused(await ask(await issuer.token()), 'jwks_unavailable')
    },
  },
  {
    name: 'issuer down after expiry: known keys go on for an hour, unknown ones are 503',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token({ exp: NOW + 86_400 })
      accepted(await ask(token))
      for (const fault of [answering(503), dead]) {
        issuer.intercept = fault
        clock.now += 20 * MINUTE
        accepted(await ask(token))
      }
      refused(await ask(await issuer.badToken('unknown-kid')), 'jwks_unavailable')
      clock.now = START + 70 * MINUTE - 1
      accepted(await ask(token))
      clock.now += 1
      refused(await ask(token), 'jwks_unavailable')
      issuer.intercept = undefined
      clock.now += MINUTE
      accepted(await ask(token))
    },
  },
  {
    name: 'while the issuer is down the attempts become rarer',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token({ exp: NOW + 86_400 })
      accepted(await ask(token))
      issuer.intercept = dead
      clock.now += 10 * MINUTE
      for (let second = 0; second < 300; second++) {
        accepted(await ask(token))
        clock.now += 1_000
      }
      ok(
        issuer.requests.length > 5 && issuer.requests.length < 15,
        `${issuer.requests.length} fetches in 5 minutes`,
      )
    },
  },
  {
    name: 'an issuer that answers nonsense after expiry is not merely down: 503',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      accepted(await ask(token))
      issuer.intercept = answering(200, '<html>')
      clock.now += 9 * MINUTE
      accepted(await ask(token))
      clock.now += MINUTE
      refused(await ask(token), 'jwks_unavailable')
    },
  },
  {
    name: 'an empty key set is believed at once',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      accepted(await ask(token))
      issuer.published = []
      clock.now += 10 * MINUTE
      refused(await ask(token), 'unknown_key')
    },
  },
  {
    name: 'a slow key set does not block known kids: neither a refresh in the background nor an unknown kid',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      accepted(await ask(token))
      const slow = held()
      issuer.intercept = slow.intercept
      const unknown = ask(await issuer.badToken('unknown-kid'))
      await settle(() => issuer.requests.length === 2)
      accepted(await ask(token))
      clock.now += 8 * MINUTE
      accepted(await ask(token))
      slow.release()
      refused(await unknown, 'unknown_key')
    },
  },
  {
    name: 'the set is refreshed in the background from 80 % of its lifetime on',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      accepted(await ask(token))
      clock.now += 8 * MINUTE - 1
      accepted(await ask(token))
      same(issuer.requests.length, 1)
      const slow = held()
      issuer.intercept = slow.intercept
      clock.now += 1
      accepted(await ask(token))
      accepted(await ask(token))
      await settle(() => issuer.requests.length === 2)
      await issuer.rotate({ keep: false })
      slow.release()
      const rotated = await issuer.token()
      accepted(await ask(rotated))
      same(issuer.requests.length, 2)
    },
  },
  {
    name: 'unusable keys are passed over',
    async run({ issuer, route }) {
      const [good] = issuer.published
      issuer.published = [
        null,
        'key',
        {},
        { kty: 'oct', k: 'AAAA', kid: 'a' },
        { kty: 'OKP', crv: 'Ed25519', x: 'AAAA' },
        { kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'short' },
        { kty: 'EC', crv: 'P-256', kid: 'test-key-1' },
        { ...good, d: 'AAAA' },
        { ...good, key_ops: ['sign'] },
        { ...good, kid: 7 },
        good,
      ] as typeof issuer.published
      const ask = await route()
      accepted(await ask(await issuer.token()))
      refused(await ask(await issuer.token({}, { kid: 'short' })), 'unknown_key')
    },
  },
  {
    name: 'a point that is not on the curve is refused, not a crash',
    async run({ issuer, route }) {
      issuer.published = issuer.published.map(key => ({ ...key, x: 'AAAA' }))
      const { status, body } = await (await route())(await issuer.token())
      // Deno looks at the point only while verifying.
      ok(
        status === 401 && ['unknown_key', 'invalid_signature'].includes(`${body.code}`),
        `${status} ${body.code}`,
      )
    },
  },
  {
    name: 'no kid among several keys that fit is an unknown key and costs no further request',
    async run({ issuer, route }) {
      await issuer.rotate()
      const ask = await route()
      refused(await ask(await issuer.token({}, { kid: undefined })), 'unknown_key')
      same(issuer.requests.length, 1)
    },
  },
  {
    name: 'a clock that jumps ahead or back keeps known keys usable and the set refreshed',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const forever = { exp: NOW * 2, iat: 0, nbf: 0 }
      const token = await issuer.token(forever)
      for (const jump of [0, 63_072_000_000, -63_072_000_000, -3_600_000, 7_200_000]) {
        clock.now += jump
        accepted(await ask(token))
        await issuer.rotate()
        accepted(await ask(await issuer.token(forever)))
        clock.now += 10_000
      }
    },
  },
  {
    name: 'a fixed key set is never fetched',
    async run({ issuer, route, verifier }) {
      const ask = await route({ verifier: verifier({ keys: { keys: issuer.published } }) })
      accepted(await ask(await issuer.token()))
      refused(await ask(await issuer.badToken('unknown-kid')), 'unknown_key')
      same(issuer.requests, [])
    },
  },
  {
    name: 'another key set address',
    async run({ issuer, route, verifier }) {
      const jwksUri = `${ISSUER}/internal/.well-known/jwks.json`
      accepted(await (await route({ verifier: verifier({ jwksUri }) }))(await issuer.token()))
      same(issuer.requests, [jwksUri])
    },
  },
]

export const requestCases: readonly Case[] = [...tokens, ...rights, ...keySets]
