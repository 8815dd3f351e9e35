import { namespaces } from './names.ts'

/** A content encryption algorithm: https://www.w3.org/TR/xmlenc-core1/#sec-Alg-Block */
export type Cipher = 'aes-128-gcm' | 'aes-256-gcm' | 'aes-128-cbc' | 'aes-256-cbc'

// https://www.w3.org/TR/xmlenc-core1/#sec-AES-GCM
export const gcm = new Map<string, Cipher>([
  [`${namespaces.xenc11}aes128-gcm`, 'aes-128-gcm'],
  [`${namespaces.xenc11}aes256-gcm`, 'aes-256-gcm'],
])
/** CBC does not protect integrity, so it is allowed only for providers with `allow_cbc`. */
export const cbc = new Map<string, Cipher>([
  [`${namespaces.xenc}aes128-cbc`, 'aes-128-cbc'],
  [`${namespaces.xenc}aes256-cbc`, 'aes-256-cbc'],
])

/**
 * `node:crypto` uses the same OAEP hash for the label and the mask. It therefore supports `RSA-OAEP-MGF1P`
 * only with SHA-1, and `RSA-OAEP` only with equal hashes.
 */
const OAEP_MGF1P = `${namespaces.xenc}rsa-oaep-mgf1p`
const OAEP = `${namespaces.xenc11}rsa-oaep`
export const SHA1 = `${namespaces.ds}sha1`
export const MGF1_SHA1 = `${namespaces.xenc11}mgf1sha1`
/**
 * OAEP hashes by the URIs of the key transport, the digest and the mask generation function
 * (https://www.w3.org/TR/xmlenc-core1/#sec-RSA-OAEP). RSA PKCS#1 v1.5 is not allowed, because an attacker who
 * sees which messages are refused could decrypt other messages (Bleichenbacher's attack).
 */
export const oaepHashes = new Map([
  [`${OAEP_MGF1P} ${SHA1} ${MGF1_SHA1}`, 'sha1'],
  [`${OAEP} ${SHA1} ${MGF1_SHA1}`, 'sha1'],
  [`${OAEP} ${namespaces.xenc}sha256 ${namespaces.xenc11}mgf1sha256`, 'sha256'],
  [`${OAEP} ${namespaces.xenc}sha512 ${namespaces.xenc11}mgf1sha512`, 'sha512'],
])

/**
 * Encryption algorithms that the metadata of this service provider lists:
 * https://docs.oasis-open.org/security/saml/Post2.0/sstc-saml-metadata-algsupport.html. XML Encryption
 * requires each implementation to support RSA-OAEP-MGF1P.
 */
export const offered = [...gcm.keys(), OAEP_MGF1P]
