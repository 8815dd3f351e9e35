import { exportJWK, exportSPKI, generateKeyPair, type JWK } from 'jose'
import { type BadToken, badToken, type Header, type Payload, signToken } from './bad-tokens.ts'
import type { Fetch } from './fetch-json.ts'

export { BAD_TOKENS, type BadToken, badToken, type Genuine, type Header, type Payload } from './bad-tokens.ts'

/** Signature algorithms of a test issuer: https://www.rfc-editor.org/rfc/rfc7518#section-3.1 */
export type Algorithm = 'RS256' | 'RS384' | 'RS512' | 'ES256' | 'ES384' | 'ES512'

/** Options of `createTestIssuer`. All have defaults. */
export type TestIssuerOptions = {
  /** Default `https://id.example.test`. */
  issuer?: string
  /** Client for which the tokens are issued. Default `test-client`. */
  audience?: string
  /** Algorithm of the keys. Default `ES256`. */
  alg?: Algorithm
  /** Returns the current time in Unix milliseconds. Default `Date.now`. */
  now?: () => number
  /** Receives requests for URLs that are not below the issuer. Default: an answer with 404. */
  fetch?: Fetch
}

/**
 * A test issuer without a server. Its members `issuer`, `audience`, `fetch` and `now` are options of a
 * verifier, so `createVerifier(issuer)` returns a verifier that accepts its tokens.
 */
export type TestIssuer = {
  readonly issuer: string
  readonly audience: string
  readonly now: () => number
  /**
   * Answers requests for the discovery document, for the key set, and for tokens by client credentials. Every
   * client and secret is accepted. The tokens are valid for an hour. Like tokens of the real server, they
   * have no claims about a user. Their audience is the `resource` of the request. If the request has no
   * `resource`, the audience is the client.
   */
  readonly fetch: Fetch
  /** URLs below the issuer that were requested so far, in order. */
  readonly requests: string[]
  /**
   * Intercepts requests. Return undefined to let the issuer answer, or throw to simulate a network failure.
   */
  intercept: ((request: Request) => Response | undefined | Promise<Response | undefined>) | undefined
  /** The published keys. A test can change them. */
  published: JWK[]
  /**
   * Returns an access token that is valid for an hour and signed with the current key. `claims` and `header`
   * replace members. A member whose value is undefined is removed. A string as `claims` becomes the complete
   * payload.
   */
  token(claims?: Payload | string, header?: Partial<Header>): Promise<string>
  /**
   * Returns a logout token that is valid for two minutes and signed with the current key. `claims` and
   * `header` replace or remove members, as for `token`.
   */
  logoutToken(claims?: Payload, header?: Partial<Header>): Promise<string>
  /** Returns an invalid token, which a verifier must refuse. */
  badToken(kind: BadToken): Promise<string>
  /**
   * Creates a new current key and publishes it beside the earlier keys, or in their place with `keep: false`.
   * With `publish: false` the new key signs tokens, and the published keys stay as they are. `kid` is a new
   * one by default, and `alg` that of the current key.
   */
  rotate(options?: { kid?: string; alg?: Algorithm; keep?: boolean; publish?: boolean }): Promise<JWK>
}

/**
 * Creates an in-memory issuer for tests of services that use this package.
 *
 * @param options issuer, audience, algorithm and clock; all have defaults
 * @returns the issuer; some of its members are options of a verifier, so it can be passed to `createVerifier`
 *
 * @example
 * const issuer = await createTestIssuer()
 * const verifier = createVerifier(issuer)
 * const request = new Request('https://api.example.com', {
 *   headers: { authorization: `Bearer ${await issuer.token({ scope: 'orders:read' })}` },
 * })
 */
export async function createTestIssuer(options: TestIssuerOptions = {}): Promise<TestIssuer> {
  const { issuer = 'https://id.example.test', audience = 'test-client', now = Date.now } = options
  let current = await makeKey(options.alg ?? 'ES256', 'test-key-1')
  let keyCount = 1

  const claims = () => defaultClaims(issuer, audience, now())
  const header = (): Header => ({ alg: current.alg, kid: current.kid, typ: 'at+jwt' })

  async function answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname.endsWith('/.well-known/jwks.json')) return Response.json({ keys: self.published })
    if (pathname.endsWith('/.well-known/openid-configuration')) {
      return Response.json({
        issuer,
        jwks_uri: `${issuer}/.well-known/jwks.json`,
        token_endpoint: `${issuer}/oauth/token`,
      })
    }
    if (!pathname.endsWith('/oauth/token')) return new Response('Not found', { status: 404 })
    const form = new URLSearchParams(await request.text())
    const [basic] = atob(request.headers.get('authorization')?.replace(/^Basic /i, '') ?? '').split(':')
    const client = form.get('client_id') || decodeURIComponent(basic ?? '')
    const audience = form.get('resource') ?? client
    const scope = form.get('scope') ?? ''
    const access_token = await self.token(
      JSON.stringify({ ...serviceClaims(issuer, audience, now()), sub: client, client_id: client, scope }),
    )
    return Response.json({ access_token, token_type: 'Bearer', expires_in: 3600 })
  }

  const self: TestIssuer = {
    issuer,
    audience,
    now,
    requests: [],
    intercept: undefined,
    published: [current.jwk],
    async fetch(input, init) {
      const request = new Request(input, init)
      if (!request.url.startsWith(`${issuer}/`)) {
        return options.fetch?.(request) ?? new Response('Not found', { status: 404 })
      }
      self.requests.push(request.url)
      return (await self.intercept?.(request)) ?? answer(request)
    },
    token: (changes, headerChanges) =>
      signToken(
        { ...header(), ...headerChanges },
        typeof changes === 'string' ? changes : { ...claims(), ...changes },
        current.privateKey,
      ),
    logoutToken: (changes, headerChanges) =>
      signToken(
        { ...header(), typ: 'logout+jwt', ...headerChanges },
        { ...logoutClaims(issuer, audience, now()), ...changes },
        current.privateKey,
      ),
    badToken: async kind =>
      badToken(kind, {
        header: header(),
        claims: claims(),
        publicKey: await exportSPKI(current.publicKey),
        sign: (head, payload) => signToken(head, payload, current.privateKey),
        signElsewhere: async (head, payload) =>
          signToken(head, payload, (await makeKey(current.alg, 'stranger')).privateKey),
      }),
    async rotate({ kid = `test-key-${++keyCount}`, alg = current.alg, keep = true, publish = true } = {}) {
      current = await makeKey(alg, kid)
      const others = keep ? self.published.filter(key => key.kid !== kid) : []
      if (publish) self.published = [...others, current.jwk]
      return current.jwk
    },
  }
  return self
}

function defaultClaims(issuer: string, audience: string, now: number): Payload {
  const iat = Math.floor(now / 1000)
  return {
    iss: issuer,
    sub: '0192d3a4-5b6c-7d8e-9f00-112233445566',
    aud: audience,
    iat,
    nbf: iat,
    exp: iat + 3600,
    jti: crypto.randomUUID(),
    scope: 'openid',
    client_id: audience,
    org_id: 'default',
    preferred_username: 'alice',
    email: 'alice@example.test',
    email_verified: true,
    given_name: 'Alice',
    family_name: 'Example',
    roles: ['user'],
  }
}

/** Claims of a client's own token, which belongs to no user. */
function serviceClaims(issuer: string, audience: string, now: number): Payload {
  const { iss, aud, iat, nbf, exp, jti, org_id } = defaultClaims(issuer, audience, now)
  return { iss, aud, iat, nbf, exp, jti, org_id }
}

function logoutClaims(issuer: string, audience: string, now: number): Payload {
  const { iss, sub, aud, iat, jti } = defaultClaims(issuer, audience, now)
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  return { iss, sub, aud, iat, exp: Number(iat) + 120, jti, events, sid: crypto.randomUUID() }
}

async function makeKey(alg: Algorithm, kid: string) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, publicKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}
