import { createPrivateKey, type KeyObject, sign } from 'node:crypto'

// This file must not import project files, because signing-thread.ts runs the text of this file alone.
declare const self: Worker

/** A signature to make. `pkcs8` is present in the first job of a key. */
export interface SigningJob {
  id: number
  key_id: string
  pkcs8?: Uint8Array
  hash: string
  input: string
}

/** Answer of the signing thread. */
export interface SigningResult {
  id: number
  signature: string
}

const keys = new Map<string, KeyObject>()

self.onmessage = ({ data: { id, key_id, pkcs8, hash, input } }: MessageEvent<SigningJob>) => {
  if (pkcs8) keys.set(key_id, createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' }))
  const key = keys.get(key_id)
  if (!key) throw new Error('the key of this job was never sent')
  const signature = sign(hash, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
  self.postMessage({ id, signature } satisfies SigningResult)
}

self.postMessage('ready')
