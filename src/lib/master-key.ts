import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import { randomOctets } from './secrets.ts'

/** File of the master key in the data directory. */
export const MASTER_KEY_FILE = 'master.key'

/**
 * The master key, from which a key for each purpose is derived. `seal` and `open` use one of these keys and
 * bind each value to a label. A value that was sealed under one label cannot be opened under another.
 */
export interface MasterKey {
  /** Derives a key of 32 bytes by HKDF-SHA-256 (https://www.rfc-editor.org/rfc/rfc5869). */
  derive(purpose: string): Buffer
  /** Returns a new HMAC-SHA-256 hasher with the derived key: call `update`, then `digest`. */
  hmac(purpose: string): Bun.CryptoHasher
  /**
   * Encrypts with AES-256-GCM, bound to `label`. Returns the nonce (12 bytes), the ciphertext and the tag (16
   * bytes).
   */
  seal(plain: Uint8Array, label: string): Buffer
  /** Decrypts the result of `seal`. Throws when the key or the label is wrong, or a byte has changed. */
  open(sealed: Uint8Array, label: string): Buffer
}

const TAG = 16

/** Encrypts with AES-256-GCM under a key of 32 bytes and a random nonce. `label` is the associated data. */
export const sealWith = (key: Buffer, plain: Uint8Array, label: string): Buffer => {
  const nonce = randomOctets(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(label))
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** Decrypts the result of `sealWith`. Throws when the key or the label is wrong, or a byte has changed. */
export const openWith = (key: Buffer, sealed: Uint8Array, label: string): Buffer => {
  // Without `authTagLength` Node accepts a tag of four bytes.
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12), { authTagLength: TAG })
  decipher.setAAD(Buffer.from(label)).setAuthTag(sealed.subarray(-TAG))
  return Buffer.concat([decipher.update(sealed.subarray(12, -TAG)), decipher.final()])
}

/** Returns the master key made from 32 bytes. */
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
  const hashers = new Map<string, Bun.CryptoHasher>()
  return {
    derive,
    // Copying a hasher takes a third of the time of `createHmac`, which prepares the key at each call.
    hmac: purpose => {
      const known = hashers.get(purpose)
      const hasher = known ?? new Bun.CryptoHasher('sha256', derive(purpose))
      if (!known) hashers.set(purpose, hasher)
      return hasher.copy()
    },
    seal: (plain, label) => sealWith(derive('seal'), plain, label),
    open: (sealed, label) => openWith(derive('seal'), sealed, label),
  }
}
