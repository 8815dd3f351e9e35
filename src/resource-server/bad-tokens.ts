import { base64url } from 'jose'
import type { ErrorCode } from './errors.ts'

/** JOSE header of a token: https://www.rfc-editor.org/rfc/rfc7515#section-4 */
export type Header = {
  alg: string
  kid?: string | undefined
  typ?: string | undefined
  [name: string]: unknown
}
/** Claims of a token by name. */
export type Payload = Record<string, unknown>

/** Kinds of invalid tokens for tests. Each kind has the error code with which such a token is refused. */
export const BAD_TOKENS = {
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
} as const satisfies Record<string, ErrorCode>

/** Name of an invalid token, such as `expired`. */
export type BadToken = keyof typeof BAD_TOKENS

/** Header, claims and keys of a valid token, from which `badToken` makes an invalid token. */
export type Genuine = {
  header: Header
  claims: Payload
  /** Public key that verifies the signatures of `sign`, as PEM. */
  publicKey: string
  /** Signs with the issuer's key. */
  sign: (header: Header, claims: Payload) => Promise<string>
  /** Signs with a key that the issuer does not have. */
  signElsewhere: (header: Header, claims: Payload) => Promise<string>
}

/** Returns an invalid token that has the named defect and no other defect. */
export const badToken = (kind: BadToken, genuine: Genuine): Promise<string> => MAKERS[kind](genuine)

const MAKERS: Record<BadToken, (genuine: Genuine) => Promise<string>> = {
  /** The token has the lifetime of the valid token, and expired a day before the valid token was issued. */
  expired: ({ header, claims, sign }) => {
    const life = Number(claims.exp) - Number(claims.iat)
    return sign(header, { ...claims, ...shifted(claims, ['iat', 'nbf', 'exp'], -86_400 - life) })
  },
  'not-yet-valid': ({ header, claims, sign }) =>
    sign(header, { ...claims, ...shifted(claims, ['nbf', 'exp'], 86_400) }),
  'wrong-iss': ({ header, claims, sign }) => sign(header, { ...claims, iss: 'https://someone-else.example' }),
  'wrong-aud': ({ header, claims, sign }) => sign(header, { ...claims, aud: 'someone-else' }),
  'wrong-signature': ({ header, claims, signElsewhere }) => signElsewhere(header, claims),
  'unknown-kid': ({ header, claims, sign }) =>
    sign({ ...header, kid: `unknown-${crypto.randomUUID()}` }, claims),
  'alg-none': async ({ header, claims }) => `${encode({ ...header, alg: 'none' })}.${encode(claims)}.`,
  /**
   * Uses the public key as the HMAC secret. A verifier that accepts the token is vulnerable to algorithm
   * confusion: https://www.rfc-editor.org/rfc/rfc8725#section-2.1
   */
  'hs256-with-public-key': async ({ header, claims, publicKey }) => {
    const hmac = { name: 'HMAC', hash: 'SHA-256' }
    const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(publicKey), hmac, false, [
      'sign',
    ])
    return signToken({ ...header, alg: 'HS256' }, claims, key)
  },
  'id-token': ({ header, claims: { scope, jti, client_id, ...claims }, sign }) =>
    sign({ ...header, typ: 'JWT' }, { ...claims, nonce: 'n', at_hash: 'h', auth_time: claims.iat }),
  'missing-claim': ({ header, claims: { exp, ...claims }, sign }) => sign(header, claims),
  /** Changes `jti` too, because `admin` may already be the only role of the valid token. */
  tampered: async ({ header, claims, sign }) => {
    const [head, , signature] = (await sign(header, claims)).split('.')
    return `${head}.${encode({ ...claims, roles: ['admin'], jti: crypto.randomUUID() })}.${signature}`
  },
}

const shifted = (claims: Payload, names: readonly string[], seconds: number) =>
  Object.fromEntries(names.map(name => [name, Number(claims[name]) + seconds]))

const encode = (value: unknown) => base64url.encode(typeof value === 'string' ? value : JSON.stringify(value))

/**
 * Returns a compact JWS for any header and any claims. A string as `claims` becomes the payload unchanged.
 * jose is not used, because its signer refuses many of the invalid tokens that tests need.
 */
export async function signToken(header: Header, claims: Payload | string, key: CryptoKey): Promise<string> {
  const input = `${encode(header)}.${encode(claims)}`
  const { name } = key.algorithm
  const algorithm = name === 'ECDSA' ? { name, hash: `SHA-${header.alg.slice(2)}` } : name
  const signature = await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(input))
  return `${input}.${base64url.encode(new Uint8Array(signature))}`
}
