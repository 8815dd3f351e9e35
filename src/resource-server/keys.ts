import { importJWK, type JWK } from 'jose'
import { isObject } from './claims.ts'
import { AlgorithmNotAllowedError, TokenMalformedError, UnknownKeyError } from './errors.ts'

/** The signature algorithms that are accepted, each with the only kind of key that fits it (RFC 7518 section 3.1). */
const ALGORITHMS = new Map<unknown, { kty: string; crv?: string }>([
  ['RS256', { kty: 'RSA' }],
  ['RS384', { kty: 'RSA' }],
  ['RS512', { kty: 'RSA' }],
  ['ES256', { kty: 'EC', crv: 'P-256' }],
  ['ES384', { kty: 'EC', crv: 'P-384' }],
  ['ES512', { kty: 'EC', crv: 'P-521' }],
])

/** What a token's header says about its key. */
export type KeyName = { alg: string; kid: string | undefined }

/** Header parameters that bring or point to a key of the sender's own, or change the rules (RFC 8725 section 3.10). */
const REFUSED = ['crit', 'jku', 'jwk', 'x5u', 'x5c']

/** Checks the header before any key is looked for: what is not acceptable costs no request to the issuer. */
export function parseKeyName(header: Record<string, unknown>): KeyName {
  const { alg, kid } = header
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) {
    throw new AlgorithmNotAllowedError(
      `${JSON.stringify(alg)} is none of ${[...ALGORITHMS.keys()].join(', ')}`,
    )
  }
  const refused = REFUSED.filter(parameter => Object.hasOwn(header, parameter))
  if (refused.length > 0)
    throw new TokenMalformedError(`the header parameter ${refused.join(', ')} is refused`)
  if (kid !== undefined && typeof kid !== 'string') throw new TokenMalformedError('kid is not a string')
  return { alg, kid }
}

type PublicKey = { jwk: JWK; imported: Map<string, CryptoKey> }

/** A parsed key set. A new one replaces it whole, so a key that is gone, or changed under its kid, is gone at once. */
export type Keys = readonly PublicKey[]

/** Keeps the usable public keys of a JWK Set (RFC 7517 section 5) and passes over the rest; undefined when it is none. */
export function parseKeys(document: unknown): Keys | undefined {
  if (!isObject(document) || !Array.isArray(document.keys)) return undefined
  return document.keys.filter(isUsable).map(jwk => ({ jwk, imported: new Map() }))
}

/** A 2048-bit modulus is 342 base64url characters; jose refuses shorter ones only while verifying. */
const MIN_MODULUS = 342

function isUsable(jwk: unknown): jwk is JWK {
  if (!isObject(jwk) || 'd' in jwk || (jwk.use !== undefined && jwk.use !== 'sig')) return false
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify')))
    return false
  if (jwk.kid !== undefined && typeof jwk.kid !== 'string') return false
  if (jwk.kty === 'RSA')
    return typeof jwk.n === 'string' && jwk.n.length >= MIN_MODULUS && typeof jwk.e === 'string'
  return jwk.kty === 'EC' && typeof jwk.x === 'string' && typeof jwk.y === 'string'
}

export const hasKid = (keys: Keys, kid: string) => keys.some(key => key.jwk.kid === kid)

/**
 * The key for a header: the one with its kid, or without a kid the only one that fits the algorithm. At once when it
 * was used before. Throws unknown_key, or algorithm_not_allowed when the kid's key is for something else.
 */
export function findKey(keys: Keys, { alg, kid }: KeyName): CryptoKey | Promise<CryptoKey> {
  const named = kid === undefined ? keys : keys.filter(key => key.jwk.kid === kid)
  const fitting = named.filter(key => fits(key.jwk, alg))
  const [key] = fitting
  if (key && (kid !== undefined || fitting.length === 1)) return key.imported.get(alg) ?? importKey(key, alg)
  if (kid === undefined)
    throw new UnknownKeyError(`the header has no kid and ${fitting.length} keys fit ${alg}`)
  if (named.length === 0) throw new UnknownKeyError(`the issuer publishes no key ${JSON.stringify(kid)}`)
  throw new AlgorithmNotAllowedError(`the key ${JSON.stringify(kid)} is not for ${alg}`)
}

function fits(jwk: JWK, alg: string): boolean {
  const wanted = ALGORITHMS.get(alg)
  if (jwk.kty !== wanted?.kty || (jwk.alg !== undefined && jwk.alg !== alg)) return false
  return wanted?.crv === undefined || jwk.crv === wanted.crv
}

async function importKey({ jwk, imported }: PublicKey, alg: string): Promise<CryptoKey> {
  const key = await importJWK(jwk, alg).catch(cause => {
    throw new UnknownKeyError(`the key ${JSON.stringify(jwk.kid)} cannot be used`, cause)
  })
  if (key instanceof Uint8Array) throw new UnknownKeyError('symmetric keys are not accepted')
  imported.set(alg, key)
  return key
}
