import { constants, hash, type KeyObject, verify } from 'node:crypto'
import { RSA_SHA256, SHA256 } from './names.ts'

interface SignatureMethod {
  readonly key: 'rsa' | 'ec'
  readonly hash: 'sha1' | 'sha256' | 'sha384' | 'sha512'
  readonly pss?: true
}

const MORE = 'http://www.w3.org/2001/04/xmldsig-more#'

/**
 * Allowed signature algorithms (https://www.rfc-editor.org/rfc/rfc9231#section-2.3). HMAC is excluded,
 * because an attacker could make the verifier use the public key as the secret. MD5 has collisions, and DSA
 * is obsolete (FIPS 186-5).
 */
const methods: Record<string, SignatureMethod> = {
  [RSA_SHA256]: { key: 'rsa', hash: 'sha256' },
  [`${MORE}rsa-sha384`]: { key: 'rsa', hash: 'sha384' },
  [`${MORE}rsa-sha512`]: { key: 'rsa', hash: 'sha512' },
  'http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1': { key: 'rsa', hash: 'sha256', pss: true },
  [`${MORE}ecdsa-sha256`]: { key: 'ec', hash: 'sha256' },
  [`${MORE}ecdsa-sha384`]: { key: 'ec', hash: 'sha384' },
  [`${MORE}ecdsa-sha512`]: { key: 'ec', hash: 'sha512' },
}

const digests: Record<string, SignatureMethod['hash']> = {
  [SHA256]: 'sha256',
  [`${MORE}sha384`]: 'sha384',
  'http://www.w3.org/2001/04/xmlenc#sha512': 'sha512',
}

/** Allowed only for providers with `allow_sha1`, because SHA-1 has collisions. */
const oldMethods: Record<string, SignatureMethod> = {
  'http://www.w3.org/2000/09/xmldsig#rsa-sha1': { key: 'rsa', hash: 'sha1' },
}
const oldDigests: Record<string, SignatureMethod['hash']> = {
  'http://www.w3.org/2000/09/xmldsig#sha1': 'sha1',
}

const entryOf = <T>(name: string, table: Record<string, T>, old: Record<string, T>, allow_sha1: boolean) =>
  Object.hasOwn(table, name) ? table[name] : allow_sha1 && Object.hasOwn(old, name) ? old[name] : undefined

/**
 * Returns the function that verifies a signature with any of the pinned keys. Returns undefined for an
 * algorithm that is not allowed.
 */
export const findSignatureMethod = (
  name: string,
  allow_sha1: boolean,
): ((material: string, keys: readonly KeyObject[], value: string) => boolean) | undefined => {
  const method = entryOf(name, methods, oldMethods, allow_sha1)
  if (!method) return undefined
  const options = method.pss && {
    padding: constants.RSA_PKCS1_PSS_PADDING,
    saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
  }
  return (material, keys, value) =>
    keys
      .filter(key => key.asymmetricKeyType === method.key)
      .some(key =>
        verify(
          method.hash,
          Buffer.from(material),
          { key, dsaEncoding: 'ieee-p1363', ...options },
          Buffer.from(value, 'base64'),
        ),
      )
}

/**
 * Returns the function that computes a digest in base64. Returns undefined for an algorithm that is not
 * allowed.
 */
export const findDigestMethod = (
  name: string,
  allow_sha1: boolean,
): ((octets: string) => string) | undefined => {
  const algorithm = entryOf(name, digests, oldDigests, allow_sha1)
  return algorithm && (octets => hash(algorithm, octets, 'base64'))
}
