import type { JSONWebKeySet, JWK } from 'jose'
import { OAuthError } from './error.ts'

/**
 * Signature algorithms of client assertions: the algorithms of FAPI 2.0 section 5.4, and RS256. OpenID
 * Connect Discovery section 3 recommends RS256, and many clients use it.
 */
export const assertionAlgs = ['ES256', 'EdDSA', 'PS256', 'RS256'] as const
export type AssertionAlg = (typeof assertionAlgs)[number]

/** The keys with which a client signs its assertions: https://www.rfc-editor.org/rfc/rfc7523#section-2.2 */
export interface ClientKeys {
  /** False for a client that may also use the method `none`. */
  readonly is_required: boolean
  /**
   * The only algorithm that the client's assertions may have. When undefined, every supported algorithm is
   * allowed.
   */
  readonly alg: AssertionAlg | undefined
  readonly source: { readonly jwks: JSONWebKeySet } | { readonly jwks_uri: string }
}

/**
 * Maximum number of keys in a set. The limit is needed, because each key is checked. Clients publish one to
 * three keys.
 */
const MAX_KEYS = 100
const secretMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

const invalid = (text: string) => new OAuthError('invalid_client_metadata', text)

/**
 * Returns the length in bits of a number in base64url, rounded down to whole bytes. Returns infinity for a
 * value that is not a string.
 */
const bitsOf = (text: unknown) =>
  typeof text === 'string' ? Math.floor((text.length * 6) / 8) * 8 : Number.POSITIVE_INFINITY

/**
 * True for a key of a supported algorithm. The length of RSA keys is limited, because the verification with a
 * long key takes much time.
 */
const isUsable = ({ kty, crv, n, e }: JWK): boolean =>
  kty === 'RSA'
    ? bitsOf(n) <= 4096 && bitsOf(e) <= 32
    : (kty === 'EC' && crv === 'P-256') || (kty === 'OKP' && crv === 'Ed25519')

/** Returns the key with only the members that are needed. Certificates, for example, are left out. */
const strip = ({ kty, kid, use, alg, crv, x, y, n, e }: JWK): JWK =>
  JSON.parse(JSON.stringify({ kty, kid, use, alg, crv, x, y, n, e }))

/**
 * Reads a key set. Keys of unsupported algorithms and RSA keys that are too long are left out.
 * https://www.rfc-editor.org/rfc/rfc7517#section-5
 *
 * @throws OAuthError `invalid_client_metadata` for a value that is not a key set, for more than `MAX_KEYS`
 * keys, and for a set with a private or symmetric key
 */
export const readKeySet = (value: unknown): JSONWebKeySet => {
  const keys: unknown = Reflect.get(Object(value), 'keys')
  if (!Array.isArray(keys) || keys.length > MAX_KEYS)
    throw invalid(`jwks must contain a list of at most ${MAX_KEYS} keys.`)
  const isSecret = (key: unknown) => secretMembers.some(member => Object.hasOwn(Object(key), member))
  // Clients publish their key sets, so a private key in a key set is known to everyone.
  if (keys.some(isSecret)) throw invalid('jwks must contain public keys only.')
  return {
    keys: keys
      .map(key => Object(key))
      .filter(isUsable)
      .map(strip),
  }
}
