import { importJWK, type JWK } from 'jose'
import { isObject } from './claims.ts'
import { AlgorithmNotAllowedError, TokenMalformedError, UnknownKeyError } from './errors.ts'

/**
 * Accepted signature algorithms, each with its key type. Gatehouse signs with no other algorithm. HMAC is not
 * accepted, because an attacker could then use a public key as the secret.
 * https://www.rfc-editor.org/rfc/rfc7518#section-3.1
 */
const ALGORITHMS = new Map<unknown, { kty: string; crv?: string }>([
  ['RS256', { kty: 'RSA' }],
  ['RS384', { kty: 'RSA' }],
  ['RS512', { kty: 'RSA' }],
  ['ES256', { kty: 'EC', crv: 'P-256' }],
  ['ES384', { kty: 'EC', crv: 'P-384' }],
  ['ES512', { kty: 'EC', crv: 'P-521' }],
])

/** Algorithm and key id in a token's header. */
export type KeyName = { alg: string; kid: string | undefined }

/**
 * Refused header parameters. `crit` demands extensions. Each other parameter supplies a key that the sender
 * chooses. https://www.rfc-editor.org/rfc/rfc8725#section-3.10
 */
const REFUSED = ['crit', 'jku', 'jwk', 'x5u', 'x5c']

/**
 * Validates the header before the key lookup, so that a refused token causes no request to the issuer.
 *
 * @throws AlgorithmNotAllowedError, TokenMalformedError
 */
export function parseKeyName(header: Record<string, unknown>): KeyName {
  const { alg, kid } = header
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) {
    throw new AlgorithmNotAllowedError(
      `${JSON.stringify(alg)} is not one of ${[...ALGORITHMS.keys()].join(', ')}`,
    )
  }
  const refused = REFUSED.filter(parameter => Object.hasOwn(header, parameter))
  if (refused.length > 0)
    throw new TokenMalformedError(`the header parameter ${refused.join(', ')} is refused`)
  if (kid !== undefined && typeof kid !== 'string') throw new TokenMalformedError('kid is not a string')
  return { alg, kid }
}

type PublicKey = { jwk: JWK; imported: Map<string, CryptoKey> }

/**
 * A parsed key set. A new set replaces the whole old set, so that removed and changed keys are no longer
 * accepted.
 */
export type Keys = readonly PublicKey[]

/**
 * Returns the usable public keys of a JWK Set (https://www.rfc-editor.org/rfc/rfc7517#section-5). Returns
 * undefined when the document is not a JWK Set.
 */
export function parseKeys(document: unknown): Keys | undefined {
  if (!isObject(document) || !Array.isArray(document.keys)) return undefined
  return document.keys.filter(isUsable).map(jwk => ({ jwk, imported: new Map() }))
}

/**
 * True for a public key that verifies signatures. A key with its private part (`d`) is not used, because
 * anybody who reads the set could sign with the key.
 */
function isUsable(jwk: unknown): jwk is JWK {
  if (!isObject(jwk) || 'd' in jwk || (jwk.use !== undefined && jwk.use !== 'sig')) return false
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify')))
    return false
  if (jwk.kid !== undefined && typeof jwk.kid !== 'string') return false
  if (jwk.kty === 'RSA') return typeof jwk.n === 'string' && typeof jwk.e === 'string'
  return jwk.kty === 'EC' && typeof jwk.x === 'string' && typeof jwk.y === 'string'
}

/** Returns true when the key set has a key with this id. */
export const hasKid = (keys: Keys, kid: string) => keys.some(key => key.jwk.kid === kid)

/**
 * Returns the key with the header's kid. For a header without kid, returns the only key that matches the
 * algorithm. A key that was used before is returned without a promise.
 *
 * @throws UnknownKeyError, or AlgorithmNotAllowedError when the key with this kid has another algorithm
 */
export function findKey(keys: Keys, { alg, kid }: KeyName): CryptoKey | Promise<CryptoKey> {
  const named = kid === undefined ? keys : keys.filter(key => key.jwk.kid === kid)
  const fitting = named.filter(key => fits(key.jwk, alg))
  const [key] = fitting
  if (key && (kid !== undefined || fitting.length === 1)) return key.imported.get(alg) ?? importKey(key, alg)
  if (kid === undefined)
    throw new UnknownKeyError(`the header has no kid and ${fitting.length} keys match ${alg}`)
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
  // jose checks the modulus only when it verifies a signature, and then throws a TypeError, which would not
  // be answered as a refused token.
  if ((key.algorithm as RsaKeyAlgorithm).modulusLength < 2048)
    throw new UnknownKeyError(`the key ${JSON.stringify(jwk.kid)} is shorter than 2048 bits`)
  imported.set(alg, key)
  return key
}
