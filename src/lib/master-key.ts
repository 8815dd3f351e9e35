import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** Keys under the master key: one per purpose, so that a value made for one is worthless for another. */
export interface MasterKey {
  /** 32 bytes by HKDF-SHA-256 (RFC 5869, https://www.rfc-editor.org/rfc/rfc5869). */
  derive(purpose: string): Buffer
  /** AES-256-GCM bound to `label`: nonce (12 bytes), ciphertext, tag (16 bytes). */
  seal(plain: Uint8Array, label: string): Buffer
  /** Throws when the key, the label or a byte is not the one of `seal`. */
  open(sealed: Uint8Array, label: string): Buffer
}

const TAG = 16

/** AES-256-GCM under a key of 32 bytes, with a random nonce; `label` is the associated data. */
export const sealWith = (key: Buffer, plain: Uint8Array, label: string): Buffer => {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(label))
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** Throws when the key, the label or a byte is not the one of `sealWith`. */
export const openWith = (key: Buffer, sealed: Uint8Array, label: string): Buffer => {
  // Without the length a tag of four bytes would do.
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12), { authTagLength: TAG })
  decipher.setAAD(Buffer.from(label)).setAuthTag(sealed.subarray(-TAG))
  return Buffer.concat([decipher.update(sealed.subarray(12, -TAG)), decipher.final()])
}

/** The master key of these 32 bytes. */
export const masterKey = (bytes: Uint8Array): MasterKey => {
  const derived = new Map<string, Buffer>()
  const derive = (purpose: string): Buffer => {
    let key = derived.get(purpose)
    if (!key) {
      key = Buffer.from(hkdfSync('sha256', bytes, '', `gatehouse/${purpose}`, 32))
      derived.set(purpose, key)
    }
    return key
  }
  return {
    derive,
    seal: (plain, label) => sealWith(derive('seal'), plain, label),
    open: (sealed, label) => openWith(derive('seal'), sealed, label),
  }
}
