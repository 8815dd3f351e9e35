import { generateKeyPair, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import type { JWTHeaderParameters, JWTPayload } from 'jose'
import { curves, hashNameOf, type SigningAlg } from '#src/protocol/oidc/signing-algs.ts'

/** A signing key and its public half. */
export interface KeyPair {
  publicKey: KeyObject
  privateKey: KeyObject
}

/**
 * Generates a key pair. An RSA key takes up to 300 ms, so it is generated off the event loop. RSA keys have
 * 2048 bits, because longer keys make each signature slower. RFC 7518 section 3.3 allows no shorter keys.
 */
export const makeKeyPair = async (alg: SigningAlg): Promise<KeyPair> => {
  const namedCurve = curves.find(curve => curve.alg === alg)?.crv
  return namedCurve
    ? generateKeyPairSync('ec', { namedCurve })
    : promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
}

// JOSE concatenates r and s of ECDSA signatures: https://www.rfc-editor.org/rfc/rfc7518#section-3.4
const dsaEncoding = 'ieee-p1363'

/** Returns the signature over `input` in base64url. */
export const signWith = (key: KeyObject, alg: SigningAlg, input: string): string =>
  sign(hashNameOf(alg), Buffer.from(input), { key, dsaEncoding }).toString('base64url')

/**
 * Signs a JWT for another server; this server's tokens are signed by `issueToken`. The first call imports
 * jose.
 */
export const signJwt = async (
  key: KeyObject,
  header: JWTHeaderParameters,
  claims: JWTPayload,
): Promise<string> => {
  const { SignJWT } = await import('jose')
  return new SignJWT(claims).setProtectedHeader(header).sign(key)
}

/** True for a valid signature in canonical base64url, so that a signature has exactly one spelling. */
export const verifyWith = (key: KeyObject, alg: SigningAlg, input: string, signature: string): boolean => {
  const bytes = Buffer.from(signature, 'base64url')
  return (
    bytes.toString('base64url') === signature &&
    verify(hashNameOf(alg), Buffer.from(input), { key, dsaEncoding }, bytes)
  )
}
