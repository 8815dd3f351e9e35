import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { Context } from '#src/context.ts'
import { notFound } from '#src/lib/app-error.ts'
import { curves, isSigningAlg, type SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { insertKey, listKeys } from './key-store.ts'
import { keyRow, recordChange, rotateKey } from './rotation.ts'

type Base = Pick<Context, 'store' | 'clock' | 'master'>

/** RSA keys sign with any of three hashes: `RS256` unless `wanted` names another. Throws a plain Error. */
const algorithmOf = (key: KeyObject, wanted: string | undefined): SigningAlg => {
  const { namedCurve = '', modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'rsa') {
    if (modulusLength < 2048) throw new Error('an RSA key has 2048 bits at least')
    const alg = wanted ?? 'RS256'
    if (isSigningAlg(alg) && alg.startsWith('RS')) return alg
    throw new Error('an RSA key signs RS256, RS384 or RS512')
  }
  const alg = curves.find(({ openssl }) => openssl === namedCurve)?.alg
  if (!alg) throw new Error('only RSA keys and keys on the curves P-256, P-384 and P-521 can sign here')
  if (wanted && wanted !== alg) throw new Error(`this key signs ${alg}`)
  return alg
}

/**
 * Takes up a private key (PEM) that was made elsewhere, as the next one of its algorithm: published now, it begins to
 * sign as a rotated one does, or at once where there is no other. Gives its id; throws a plain Error that says what is wrong.
 */
export const importKey = async (base: Base, pem: string, wanted?: string): Promise<string> => {
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(pem)
  } catch {
    throw new Error('this is no private key in PEM, or it has a passphrase')
  }
  const publicKey = createPublicKey(privateKey)
  const row = keyRow(base, algorithmOf(privateKey, wanted), { publicKey, privateKey })
  const known = await base.store.read(listKeys)
  if (known.some(key => key.public_jwk.x === row.public_jwk.x && key.public_jwk.n === row.public_jwk.n))
    throw new Error('this key is here already')
  if (!known.some(key => key.alg === row.alg)) await base.store.write(tx => insertKey(tx, row))
  else if (!(await rotateKey(base, row.alg, row)))
    throw new Error(`a next ${row.alg} key is published and waiting: try again when it signs`)
  await base.store.write(tx => recordChange(base, tx, { action: 'imported', key_id: row.id, alg: row.alg }))
  return row.id
}

/** A private key as PEM (PKCS #8); 404 when there is no such key. */
export const exportKey = async (base: Base, key_id: string): Promise<string> => {
  const row = (await base.store.read(listKeys)).find(({ id }) => id === key_id)
  if (!row) throw notFound('The key')
  const key = createPrivateKey({
    key: base.master.open(row.private_key, row.id),
    format: 'der',
    type: 'pkcs8',
  })
  await base.store.write(tx => recordChange(base, tx, { action: 'exported', key_id }))
  return key.export({ format: 'pem', type: 'pkcs8' }).toString()
}
