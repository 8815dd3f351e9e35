/** A table of tokens, each with its outcome. */
import type { ErrorCode, VerifierOptions } from '#src/resource-server/index.ts'
import type { BadToken, Header, Payload } from '#src/resource-server/testing.ts'
import { accepted, type Case, ISSUER, NOW, type Reply, refused, type World } from './world.ts'

type Outcome = 'accepted' | ErrorCode
const check = (reply: Reply, outcome: Outcome) =>
  outcome === 'accepted' ? void accepted(reply) : refused(reply, outcome)

/** `claims` and `header` change the valid token. A member with the value undefined is removed. */
type TokenRow = {
  claims?: Payload | string
  header?: Partial<Header>
  options?: Partial<VerifierOptions>
  token?: (world: World) => Promise<string>
  /** Milliseconds between the issue and the use of the token. */
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

const API = 'https://api.example/'
const api = { audience: undefined, resource: API, realm: 'org_default' }
const plainJwt: Partial<Header> = { typ: 'JWT' }
const idToken = { scope: undefined, jti: undefined }

export const tokens = tokenCases({
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
  'a token of 15.2 KiB': { claims: { padding: 'x'.repeat(11_250) }, is: 'token_malformed' },
  'a token of 14.2 KiB': { claims: { padding: 'x'.repeat(10_500) }, is: 'accepted' },
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
  'aud an array without the audience': { claims: { aud: ['other', 'test-client-2'] }, is: 'claim_invalid' },
  'aud an empty array': { claims: { aud: [] }, is: 'claim_invalid' },
  'aud empty': { claims: { aud: '' }, is: 'claim_invalid' },
  'aud a part of the audience': { claims: { aud: 'test' }, is: 'claim_invalid' },
  'aud a number': { claims: { aud: 1 }, is: 'claim_invalid' },
  'aud an array with a number': { claims: { aud: ['test-client', 1] }, is: 'claim_invalid' },
  'no aud': { claims: { aud: undefined }, is: 'claim_missing' },
  'aud one of several': { options: { audience: ['web', 'test-client'] }, is: 'accepted' },
  'aud none of several': { options: { audience: ['web', 'app'] }, is: 'claim_invalid' },

  'SDK-40 the API as audience': { options: api, claims: { aud: API }, is: 'accepted' },
  'SDK-40 the API without its slash': {
    options: api,
    claims: { aud: 'https://api.example' },
    is: 'accepted',
  },
  'SDK-40 another API': { options: api, claims: { aud: 'https://api.example/v2' }, is: 'claim_invalid' },
  'SDK-40 the API in another case': { options: api, claims: { aud: API.toUpperCase() }, is: 'claim_invalid' },
  'SDK-40 a client as audience': { options: api, is: 'claim_invalid' },
  'SDK-40 the same API of another organization': {
    options: { ...api, realm: 'org_0192d3a4' },
    claims: { aud: API },
    is: 'claim_invalid',
  },

  'exp 1 ms inside the tolerance': { claims: { exp: NOW }, after: 4_999, is: 'accepted' },
  'SDK-12 exp at the edge of the tolerance': { claims: { exp: NOW }, after: 5_000, is: 'token_expired' },
  'exp half a second ago with a tolerance of half a second': {
    claims: { exp: NOW },
    options: { clockTolerance: 0.5 },
    after: 500,
    is: 'token_expired',
  },
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
  'realm with org_ in its middle': { options: { realm: 'deforg_ault' }, is: 'claim_invalid' },
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

/** Returns a token whose header names this `alg`. The signature stays unchanged. */
export function tokenSaying(alg: unknown) {
  return async ({ issuer }: World) => {
    const [head = '', ...rest] = (await issuer.token()).split('.')
    const header = JSON.parse(fromBase64url(head))
    return [base64url(JSON.stringify({ ...header, alg })), ...rest].join('.')
  }
}

export const fromBase64url = (text: string) => atob(text.replaceAll('-', '+').replaceAll('_', '/'))
/** Encodes bytes, one for each character. */
export const base64url = (text: string) =>
  btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')

/** `1e999` is a valid number in JSON, and is parsed as `Infinity`. */
async function infiniteExp({ issuer }: World) {
  const [, payload = ''] = (await issuer.token()).split('.')
  return issuer.token(fromBase64url(payload).replace(/"exp":\d+/, '"exp":1e999'))
}
