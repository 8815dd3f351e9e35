/**
 * Signature algorithms of the key set: https://www.rfc-editor.org/rfc/rfc7518#section-3.1. HMAC is not
 * supported, because each service that can verify an HMAC could also forge a token.
 */
export const signingAlgs = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512'] as const
export type SigningAlg = (typeof signingAlgs)[number]

/** True for a supported signature algorithm. */
export const isSigningAlg = (alg: unknown): alg is SigningAlg => signingAlgs.some(known => known === alg)

/** Returns the name of an algorithm's hash function, such as `sha256`. */
export const hashNameOf = (alg: SigningAlg): string => `sha${alg.slice(2)}`

/** Each ECDSA algorithm with the JWK name and the OpenSSL name of its curve. */
export const curves = [
  { alg: 'ES256', crv: 'P-256', openssl: 'prime256v1' },
  { alg: 'ES384', crv: 'P-384', openssl: 'secp384r1' },
  { alg: 'ES512', crv: 'P-521', openssl: 'secp521r1' },
] as const satisfies { alg: SigningAlg; crv: string; openssl: string }[]
