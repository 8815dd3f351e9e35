import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { Core } from '#src/context.ts'
import { notFound } from '#src/lib/app-error.ts'
import { curves, isSigningAlg, type SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { insertKey, listKeys } from './key-store.ts'
import { keyRow, publishNext, recordKeyChange } from './rotation.ts'

/**
 * Returns the algorithm of a key. An RSA key uses `RS256` unless `wanted` names `RS384` or `RS512`. An RSA
 * key needs at least 2048 bits: https://www.rfc-editor.org/rfc/rfc7518#section-3.3
 *
 * @throws Error whose message says which keys and algorithms are allowed
 */
export const algorithmOf = (key: KeyObject, wanted: string | undefined): SigningAlg => {
  const { namedCurve = '', modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'rsa') {
    if (modulusLength < 2048) throw new Error('an RSA key needs at least 2048 bits')
    const alg = wanted ?? 'RS256'
    if (isSigningAlg(alg) && alg.startsWith('RS')) return alg
    throw new Error('the algorithm of an RSA key is RS256, RS384 or RS512')
  }
  const alg = curves.find(({ openssl }) => openssl === namedCurve)?.alg
  if (!alg) throw new Error('the key must be RSA, or EC on the curve P-256, P-384 or P-521')
  if (wanted && wanted !== alg) throw new Error(`the algorithm of this key is ${alg}`)
  return alg
}

/**
 * Imports a private key (PEM) as the next key of its algorithm. The key is published now and begins to sign
 * 15 minutes later, like a rotated key, so that caches have read the key by then. If the algorithm has no
 * key, the imported key signs at once. Returns the id of the key.
 *
 * @throws Error when the key cannot be read, is of an unsupported kind, does not fit the `wanted` algorithm
 * or is already stored. Also throws while another key of the algorithm is published but does not sign yet.
 */
export const importKey = async (base: Core, pem: string, wanted?: string): Promise<string> => {
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(pem)
  } catch {
    throw new Error('expected a private key in PEM without a passphrase')
  }
  const publicKey = createPublicKey(privateKey)
  const row = keyRow(base, algorithmOf(privateKey, wanted), { publicKey, privateKey })
  await base.store.write(async tx => {
    const known = await listKeys(tx)
    if (known.some(key => key.public_jwk.x === row.public_jwk.x && key.public_jwk.n === row.public_jwk.n))
      throw new Error('this key is already stored')
    if (!known.some(key => key.alg === row.alg)) await insertKey(tx, row)
    else if (!(await publishNext(base, tx, row)))
      throw new Error(`another ${row.alg} key is published and does not sign yet: try again when it signs`)
    await recordKeyChange(base, tx, { action: 'imported', key_id: row.id, alg: row.alg })
  })
  return row.id
}

/**
 * Returns a private key as PEM (PKCS #8). Records the export, because any holder of the key can sign tokens.
 *
 * @throws AppError 404 when there is no such key
 */
export const exportKey = async (base: Core, key_id: string): Promise<string> => {
  const row = (await base.store.read(listKeys)).find(({ id }) => id === key_id)
  if (!row) throw notFound('The key')
  const key = createPrivateKey({
    key: base.master.open(row.private_key, row.id),
    format: 'der',
    type: 'pkcs8',
  })
  await base.store.write(tx => recordKeyChange(base, tx, { action: 'exported', key_id }))
  return key.export({ format: 'pem', type: 'pkcs8' }).toString()
}
