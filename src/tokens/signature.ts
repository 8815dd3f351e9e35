import { generateKeyPair, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { curves, type SigningAlg } from '#src/protocol/oidc/signing-algs.ts'

const hashOf = (alg: SigningAlg): string => `sha${alg.slice(2)}`

export interface KeyPair {
  publicKey: KeyObject
  privateKey: KeyObject
}

/** A pair of keys for one algorithm: an RSA pair takes up to 300 ms, away from the event loop. */
export const makeKeyPair = async (alg: SigningAlg): Promise<KeyPair> => {
  const namedCurve = curves.find(curve => curve.alg === alg)?.crv
  return namedCurve
    ? generateKeyPairSync('ec', { namedCurve })
    : promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
}

// ECDSA signatures in JOSE are r and s side by side: https://www.rfc-editor.org/rfc/rfc7518#section-3.4
const dsaEncoding = 'ieee-p1363'

/** The signature over `input` as base64url. */
export const signWith = (key: KeyObject, alg: SigningAlg, input: string): string =>
  sign(hashOf(alg), Buffer.from(input), { key, dsaEncoding }).toString('base64url')

/** Whether the signature is the key's, spelled as `signWith` spells it: one token has one spelling. */
export const verifyWith = (key: KeyObject, alg: SigningAlg, input: string, signature: string): boolean => {
  const bytes = Buffer.from(signature, 'base64url')
  return (
    bytes.toString('base64url') === signature &&
    verify(hashOf(alg), Buffer.from(input), { key, dsaEncoding }, bytes)
  )
}
