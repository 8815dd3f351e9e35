import { constants, createDecipheriv, type KeyObject, privateDecrypt } from 'node:crypto'
import { type Cipher, cbc, gcm, MGF1_SHA1, oaepHashes, SHA1 } from './encryption.ts'
import { SamlError } from './error.ts'
import { attributeOf, find, textOf } from './xml.ts'

/**
 * Returns the text of an encrypted assertion. The caller has checked the shape of the assertion. The text is
 * not authenticated, because anyone can encrypt with the public key. All failures of decryption throw the
 * same error, so that a sender learns nothing about the plaintext.
 *
 * @throws SamlError `not_decrypted`, `bad_algorithm`
 */
export const decrypt = (encrypted: Element, key: KeyObject, allow_cbc: boolean): string => {
  const data = find(encrypted, 'xenc:EncryptedData')
  const inside = find(find(data, 'ds:KeyInfo'), 'xenc:EncryptedKey')
  const beside = find(encrypted, 'xenc:EncryptedKey')
  if ((inside === undefined) === (beside === undefined))
    throw new SamlError('not_decrypted', 'the EncryptedKey must be either inside or beside the EncryptedData')
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
    // `createDecipheriv` refuses a key of another length than the cipher needs.
    const plain = cipher.endsWith('gcm') ? openGcm : openCbc
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

const openGcm = (cipher: Cipher, secret: Buffer, sealed: Buffer): Buffer => {
  const decipher = createDecipheriv(cipher as 'aes-256-gcm', secret, sealed.subarray(0, 12), {
    authTagLength: 16,
  })
  decipher.setAuthTag(sealed.subarray(12).subarray(-16))
  return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
}

/**
 * Decrypts CBC. The last byte gives the length of the padding
 * (https://www.w3.org/TR/xmlenc-core1/#sec-Padding). Every padding is accepted, so there is no padding
 * oracle.
 */
const openCbc = (cipher: Cipher, secret: Buffer, sealed: Buffer): Buffer => {
  const decipher = createDecipheriv(cipher, secret, sealed.subarray(0, 16)).setAutoPadding(false)
  const padded = Buffer.concat([decipher.update(sealed.subarray(16)), decipher.final()])
  return padded.subarray(0, padded.length - ((padded.at(-1) ?? 0) & 15 || 16))
}
