import { constants, createDecipheriv, type KeyObject, privateDecrypt } from 'node:crypto'
import { SamlError } from './error.ts'
import { namespaces } from './names.ts'
import { attributeOf, find, textOf } from './xml.ts'

interface Cipher {
  readonly name: 'aes-128-gcm' | 'aes-256-gcm' | 'aes-128-cbc' | 'aes-256-cbc'
  readonly key_bytes: 16 | 32
}

// https://www.w3.org/TR/xmlenc-core1/#sec-AES-GCM
const gcm = new Map<string, Cipher>([
  [`${namespaces.xenc11}aes128-gcm`, { name: 'aes-128-gcm', key_bytes: 16 }],
  [`${namespaces.xenc11}aes256-gcm`, { name: 'aes-256-gcm', key_bytes: 32 }],
])
/** Without integrity: only for a provider that opts in (`allow_cbc`). */
const cbc = new Map<string, Cipher>([
  [`${namespaces.xenc}aes128-cbc`, { name: 'aes-128-cbc', key_bytes: 16 }],
  [`${namespaces.xenc}aes256-cbc`, { name: 'aes-256-cbc', key_bytes: 32 }],
])

/** OAEP takes one hash for the label and for the mask: `RSA-OAEP-MGF1P` with SHA-1, `RSA-OAEP` with a mask of the same hash. */
const OAEP_MGF1P = `${namespaces.xenc}rsa-oaep-mgf1p`
const OAEP = `${namespaces.xenc11}rsa-oaep`
const SHA1 = `${namespaces.ds}sha1`
const MGF1_SHA1 = `${namespaces.xenc11}mgf1sha1`
const oaepHashes = new Map([
  [`${OAEP_MGF1P} ${SHA1} ${MGF1_SHA1}`, 'sha1'],
  [`${OAEP} ${SHA1} ${MGF1_SHA1}`, 'sha1'],
  [`${OAEP} ${namespaces.xenc}sha256 ${namespaces.xenc11}mgf1sha256`, 'sha256'],
  [`${OAEP} ${namespaces.xenc}sha512 ${namespaces.xenc11}mgf1sha512`, 'sha512'],
])

/** What our metadata offers: https://docs.oasis-open.org/security/saml/Post2.0/sstc-saml-metadata-algsupport.html */
export const offered = [...gcm.keys(), OAEP_MGF1P]

/**
 * The text of an encrypted assertion, of known shape. It is as trustworthy as whoever encrypted it: anybody can.
 * Whatever is wrong is one and the same refusal.
 *
 * @throws SamlError `not_decrypted`, `bad_algorithm`
 */
export const decrypt = (encrypted: Element, key: KeyObject, allow_cbc: boolean): string => {
  const data = find(encrypted, 'xenc:EncryptedData')
  const inside = find(find(data, 'ds:KeyInfo'), 'xenc:EncryptedKey')
  const beside = find(encrypted, 'xenc:EncryptedKey')
  if ((inside === undefined) === (beside === undefined))
    throw new SamlError('not_decrypted', 'not exactly one key')
  const method = find(data, 'xenc:EncryptionMethod')
  const name = attributeOf(method, 'Algorithm') ?? ''
  const cipher = gcm.get(name) ?? (allow_cbc ? cbc.get(name) : undefined)
  const oaepHash = oaepHashOf(find(inside ?? beside, 'xenc:EncryptionMethod'))
  if (!cipher || !oaepHash) throw new SamlError('bad_algorithm', name)
  try {
    const secret = privateDecrypt(
      { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash },
      cipherValue(inside ?? beside),
    )
    if (secret.length !== cipher.key_bytes) throw new Error('a key of another length')
    const plain = cipher.name.endsWith('gcm') ? openGcm : openCbc
    return new TextDecoder('utf-8', { fatal: true }).decode(plain(cipher, secret, cipherValue(data)))
  } catch (cause) {
    throw new SamlError('not_decrypted', undefined, { cause })
  }
}

const oaepHashOf = (method: Element | undefined): string | undefined => {
  const digest = attributeOf(find(method, 'ds:DigestMethod'), 'Algorithm') ?? SHA1
  const mask = attributeOf(find(method, 'xenc11:MGF'), 'Algorithm') ?? MGF1_SHA1
  return oaepHashes.get(`${attributeOf(method, 'Algorithm')} ${digest} ${mask}`)
}

const cipherValue = (parent: Element | undefined): Buffer =>
  Buffer.from(textOf(find(find(parent, 'xenc:CipherData'), 'xenc:CipherValue')), 'base64')

const openGcm = ({ name }: Cipher, secret: Buffer, sealed: Buffer): Buffer => {
  const decipher = createDecipheriv(name as 'aes-256-gcm', secret, sealed.subarray(0, 12), {
    authTagLength: 16,
  })
  decipher.setAuthTag(sealed.subarray(12).subarray(-16))
  return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
}

/** https://www.w3.org/TR/xmlenc-core1/#sec-Padding: the last byte counts. Never refused for it, so it tells nobody anything. */
const openCbc = ({ name }: Cipher, secret: Buffer, sealed: Buffer): Buffer => {
  const decipher = createDecipheriv(name, secret, sealed.subarray(0, 16)).setAutoPadding(false)
  const padded = Buffer.concat([decipher.update(sealed.subarray(16)), decipher.final()])
  return padded.subarray(0, padded.length - ((padded.at(-1) ?? 0) & 15 || 16))
}
