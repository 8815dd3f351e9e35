/** Cases of the verifier's options, and of calls to the verifier without a route. */
import { ok, rejects, deepStrictEqual as same, throws } from 'node:assert/strict'
import type { VerifierOptions } from '#src/resource-server/index.ts'
import { base64url, fromBase64url, tokenSaying } from './token-cases.ts'
import { type Case, held, type World } from './world.ts'

const AUDIENCE = 'test-client'

/** Signs a token whose payload has these bytes, one for each character. */
const signed = async (alg: string, key: CryptoKey, payload: string): Promise<string> => {
  const input = `${base64url(JSON.stringify({ alg, typ: 'at+jwt' }))}.${base64url(payload)}`
  const algorithm = { name: key.algorithm.name, hash: 'SHA-256' }
  const signature = await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(input))
  return `${input}.${base64url(String.fromCharCode(...new Uint8Array(signature)))}`
}

export const settings: Case[] = [
  {
    name: 'H-54 verify() refuses a token with anything around it',
    async run({ issuer, verifier }) {
      const token = await issuer.token()
      const { verify } = verifier()
      for (const given of [`${token}\n`, `${token}\r\n`, ` ${token}`, `${token}=`, token.replace('.', '.\n')])
        await rejects(verify(given), { code: 'token_malformed' })
      same((await verify(token)).name, 'Alice Example')
    },
  },
  {
    name: 'an error that says nothing about the token is thrown unchanged',
    async run({ issuer, verifier }) {
      let fault: Error | undefined
      const now = () => {
        if (fault) throw fault
        return issuer.now()
      }
      const { guard, verify } = verifier({ now })
      const token = await issuer.token()
      fault = new Error('no clock')
      await rejects(verify(token), fault)
      const headers = { authorization: `Bearer ${token}` }
      await rejects(guard(new Request('http://localhost/', { headers })), fault)
    },
  },
  {
    name: 'SDK-14 each of the six algorithms is accepted',
    async run({ issuer, verifier }) {
      for (const alg of ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512'] as const) {
        await issuer.rotate({ alg })
        same((await verifier().verify(await issuer.token())).name, 'Alice Example')
      }
    },
  },
  {
    name: 'SDK-17 issuer and audience are required, and every problem is named at once',
    async run({ sdk: { core } }) {
      const problems = (options: unknown) => {
        try {
          core.createVerifier(options as VerifierOptions)
        } catch (error) {
          ok(error instanceof core.ConfigurationError)
          return error.problems.map(problem => problem.split(' ')[0])
        }
        return []
      }
      same(problems({}), ['issuer', 'audience'])
      const issuer = 'https://id.example.test'
      same(problems({ issuer, audience: 'a' }), [])
      same(problems({ issuer, audience: [] }), ['audience'])
      same(problems({ issuer, audience: ['a', ''] }), ['audience'])
      for (const bad of [
        'id.example.test',
        'ftp://id',
        'https://id/?a',
        'https://id/#a',
        'https://',
        ' https://id',
      ]) {
        same(problems({ issuer: bad, audience: 'a' }), ['issuer'], bad)
      }
      same(problems({ issuer, audience: 'a', clockTolerance: -1, maxStale: Number.NaN }), [
        'maxStale',
        'clockTolerance',
      ])
      same(problems({ issuer, audience: 'a', jwksCacheLifetime: 0.9 }), ['jwksCacheLifetime'])
      same(problems({ issuer, audience: 'a', jwksUri: '/keys', realm: '' }), ['realm', 'jwksUri'])
      same(problems({ issuer, audience: 'a', realm: 'org_' }), ['realm'])
      same(problems({ issuer, audience: 'a', keys: { keys: [] } }), ['keys'])
    },
  },
  {
    name: 'SDK-40 a resource takes the place of the audience, and needs a realm',
    async run({ sdk: { core }, issuer }) {
      const problems = (options: object) => {
        try {
          core.createVerifier({ issuer: issuer.issuer, ...options })
        } catch (error) {
          ok(error instanceof core.ConfigurationError)
          return error.problems.map(problem => problem.split(' ')[0])
        }
        return []
      }
      const resource = 'https://api.example/'
      same(problems({ resource, realm: 'default' }), [])
      same(problems({ resource }), ['realm'])
      same(problems({ resource, realm: 'default', audience: 'a' }), ['audience'])
      for (const bad of ['', 'orders', 'https://api.example/#a'])
        same(problems({ resource: bad, realm: 'default' }), ['resource'], bad)
      const env = { SERVICE_URL: issuer.issuer, SERVICE_RESOURCE: resource }
      throws(() => core.fromEnv({}, env), /SERVICE_REALM is not set/)
      const { fetch, now } = issuer
      const verifier = core.fromEnv({ fetch, now }, { ...env, SERVICE_REALM: 'org_default' })
      same((await verifier.verify(await issuer.token({ aud: resource }))).name, 'Alice Example')
      await rejects(verifier.verify(await issuer.token()), { code: 'claim_invalid', claim: 'aud' })
    },
  },
  {
    name: 'SDK-16 fromEnv names all missing variables in one error; the realm is optional, the audience may be a list',
    async run({ sdk: { core }, issuer }) {
      throws(() => core.fromEnv({}, {}), /SERVICE_URL is not set; SERVICE_CLIENT_ID is not set/)
      throws(
        () => core.fromEnv({}, { SERVICE_URL: 'https://id', SERVICE_CLIENT_ID: ' ' }),
        /: SERVICE_CLIENT_ID is not set$/,
      )
      const env = { SERVICE_URL: `${issuer.issuer}/`, SERVICE_CLIENT_ID: `web, ${AUDIENCE}` }
      const { fetch, now } = issuer
      same((await core.fromEnv({ fetch, now }, env).verify(await issuer.token())).name, 'Alice Example')
      const elsewhere = core.fromEnv({ fetch, now }, { ...env, SERVICE_REALM: 'org_other' })
      await rejects(elsewhere.verify(await issuer.token()), { code: 'claim_invalid', claim: 'org_id' })
      for (const SERVICE_REALM of [' org_default ', ' ']) {
        const here = core.fromEnv({ fetch, now }, { ...env, SERVICE_REALM })
        same((await here.verify(await issuer.token())).org_id, 'default')
      }
      const chosen = core.fromEnv({ fetch, now, audience: 'chosen' }, env)
      same((await chosen.verify(await issuer.token({ aud: 'chosen' }))).aud, 'chosen')
      await rejects(chosen.verify(await issuer.token()), { code: 'claim_invalid', claim: 'aud' })
    },
  },
  {
    name: 'a slug as realm: the error says what it has to be',
    async run({ issuer, verifier }) {
      await rejects(verifier({ realm: 'acme-inc' }).verify(await issuer.token()), {
        message:
          /got "default", expected "acme-inc" \(the realm is the id of an organization, never its slug\)/,
      })
    },
  },
  {
    name: 'SDK-15 errors say for the log what was found and what was expected, and name the claim',
    async run({ issuer, verifier, sdk: { core } }) {
      const verify = async (claims: Record<string, unknown>) => verifier().verify(await issuer.token(claims))
      await rejects(verify({ iss: `${issuer.issuer}/` }), { claim: 'iss', message: /trailing slash/ })
      await rejects(verify({ aud: 'other' }), {
        claim: 'aud',
        message: /got "other", expected one of \["test-client"\]/,
      })
      await rejects(verify({ sub: undefined }), { name: 'ClaimMissingError', claim: 'sub', status: 401 })
      await rejects(verify({ exp: 1 }), core.TokenExpiredError)
      await rejects(verifier().verify(await issuer.badToken('tampered')), core.InvalidSignatureError)
      await rejects(verifier().verify(''), core.TokenMissingError)
    },
  },
  {
    name: 'a refusal is not stored by a cache, and a name in its challenge cannot end the quotes',
    async run({ issuer, verifier }) {
      const headers = { authorization: `Bearer ${await issuer.token()}` }
      const { guard } = verifier({ requiredClaims: ['a"b\\c'] })
      const { response } = await guard(new Request('http://localhost/', { headers }))
      same([response?.status, response?.headers.get('cache-control')], [401, 'no-store'])
      ok(response?.headers.get('www-authenticate')?.endsWith('"The access token lacks the claim a?b?c"'))
    },
  },
  {
    name: 'a payload that is not UTF-8 is malformed',
    async run({ verifier }) {
      const ec = { name: 'ECDSA', namedCurve: 'P-256' }
      const { privateKey, publicKey } = await crypto.subtle.generateKey(ec, true, ['sign', 'verify'])
      const { verify } = verifier({ keys: { keys: [await crypto.subtle.exportKey('jwk', publicKey)] } })
      await rejects(verify(await signed('ES256', privateKey, '{"sub":"\xff"}')), {
        code: 'token_malformed',
        message: /the payload is not JSON/,
      })
    },
  },
  {
    name: 'SDK-14 a key without alg verifies each algorithm of its type and curve, and no other',
    async run({ issuer, verifier }) {
      const rsa = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
      const size = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) }
      const pair = await crypto.subtle.generateKey({ ...rsa, ...size }, true, ['sign', 'verify'])
      const jwkOf = async (key: CryptoKey) => {
        const { alg: _, ...jwk } = await crypto.subtle.exportKey('jwk', key)
        return jwk
      }
      const { verify } = verifier({ keys: { keys: [await jwkOf(pair.publicKey)] } })
      const payload = fromBase64url((await issuer.token()).split('.')[1] ?? '')
      const material = await jwkOf(pair.privateKey)
      for (const [alg, hash] of [
        ['RS256', 'SHA-256'],
        ['RS512', 'SHA-512'],
      ] as const) {
        const key = await crypto.subtle.importKey('jwk', material, { ...rsa, hash }, false, ['sign'])
        same((await verify(await signed(alg, key, payload))).name, 'Alice Example')
      }
      const ec = issuer.published.map(({ alg: _, ...key }) => key)
      const token = await tokenSaying('ES384')({ issuer } as World)
      await rejects(verifier({ keys: { keys: ec } }).verify(token), { code: 'algorithm_not_allowed' })
    },
  },
  {
    name: 'a request to the issuer follows no redirect, and has a time limit of 5 s or of the options',
    async run({ issuer, sdk, verifier }) {
      const client = { ...issuer, clientId: 'billing', clientSecret: 's' }
      const redirects: string[] = []
      issuer.intercept = ({ redirect }) => void redirects.push(redirect)
      const limits: number[] = []
      const { timeout } = AbortSignal
      AbortSignal.timeout = ms => {
        limits.push(ms)
        return timeout.call(AbortSignal, ms)
      }
      try {
        await verifier().warmup()
        await verifier({ jwksTimeout: 7 }).warmup()
        await sdk.client.createServiceClient(client).getToken()
        await sdk.client.createServiceClient({ ...client, timeout: 7 }).getToken()
      } finally {
        AbortSignal.timeout = timeout
      }
      same(limits, [5_000, 7_000, 5_000, 7_000])
      same(redirects, Array(4).fill('manual'))
    },
  },
  {
    name: 'of the kids that are not published a verifier remembers the latest 1,000',
    async run({ clock, issuer, verifier }) {
      const { verify, warmup } = verifier()
      await warmup()
      const unknown = async (kid: string) =>
        rejects(verify(await issuer.token({}, { kid })), { code: 'unknown_key' })
      await unknown('first')
      await unknown('first')
      same(issuer.requests.length, 2)
      const { intercept, release } = held()
      issuer.intercept = intercept
      const tokens = await Promise.all(
        Array.from({ length: 1_000 }, (_, i) => issuer.token({}, { kid: `${i}` })),
      )
      const refusals = tokens.map(token => rejects(verify(token), { code: 'unknown_key' }))
      release()
      await Promise.all(refusals)
      same(issuer.requests.length, 3)
      issuer.intercept = undefined
      await unknown('999')
      same(issuer.requests.length, 3)
      clock.now += 1_000
      await unknown('first')
      same(issuer.requests.length, 4)
    },
  },
  {
    name: 'authenticate: the claims of a request or of anything with headers, else the error',
    async run({ issuer, verifier }) {
      const authorization = `Bearer ${await issuer.token()}`
      const get = (name: string) => (name === 'authorization' ? authorization : null)
      same((await verifier().authenticate({ headers: { get } })).name, 'Alice Example')
      await rejects(verifier().authenticate(new Request('http://localhost/?access_token=a.b.c')), {
        code: 'token_missing',
      })
    },
  },
  {
    name: 'a verifier fetches nothing before it is asked; warmup fetches once, and says when it cannot',
    async run({ issuer, verifier }) {
      const verify = verifier()
      same(issuer.requests.length, 0)
      await verify.warmup()
      await verify.warmup()
      await verify.verify(await issuer.token())
      same(issuer.requests.length, 1)
      issuer.intercept = () => new Response('', { status: 500 })
      await rejects(verifier().warmup(), {
        code: 'jwks_unavailable',
        status: 503,
        retryAfter: 1,
        message: /answered 500/,
      })
      await verifier({ keys: { keys: issuer.published } }).warmup()
    },
  },
  {
    name: 'SDK-13 checks for roles and scopes',
    async run({ issuer, verifier, sdk: { core } }) {
      const claims = await verifier().verify(
        await issuer.token({ roles: ['user', 'clerk'], scope: 'a:read b' }),
      )
      same([core.hasRole(claims, 'clerk'), core.hasRole(claims, 'cler')], [true, false])
      same(
        [
          core.hasAnyRole(claims, ['admin', 'user']),
          core.hasAnyRole(claims, ['admin']),
          core.hasAnyRole(claims, []),
        ],
        [true, false, false],
      )
      same([core.hasScope(claims, 'b'), core.hasScope(claims, 'a')], [true, false])
      same([core.hasAllScopes(claims, ['b', 'a:read']), core.hasAllScopes(claims, ['b', 'c'])], [true, false])
    },
  },
  {
    name: 'the catalogue of bad tokens names the code of each',
    async run({ issuer, verifier, sdk: { testing } }) {
      for (const [kind, code] of Object.entries(testing.BAD_TOKENS)) {
        await rejects(verifier().verify(await issuer.badToken(kind as keyof typeof testing.BAD_TOKENS)), {
          code,
        })
      }
    },
  },
]
