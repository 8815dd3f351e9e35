import { createPrivateKey, createPublicKey } from 'node:crypto'
import type { Core } from '#src/context.ts'
import { conflict, invalid, notFound } from '#src/lib/app-error.ts'
import type { KeyId } from '#src/lib/ids.ts'
import { iso, isoOrNull } from '#src/lib/text.ts'
import { isSigningAlg, type SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { algorithmOf } from './key-import.ts'
import {
  insertKey,
  type KeyRow,
  listKeys,
  publishedAt,
  reinstateKey,
  removeKey,
  supersede,
} from './key-store.ts'
import { keyRow, MAX_TOKEN_LIFETIME } from './rotation.ts'
import type { KeyPair } from './signature.ts'

/*
 * The steps of a key rotation, which the development controls run one by one. In production, rotation.ts runs
 * them on schedule, and only `keyStates` of this file is used.
 */

/** A key, as the admin API and the development controls show it. */
export interface KeyState {
  kid: string
  alg: SigningAlg
  /** A `next` key is published and signs later. A `retired` key no longer signs. */
  state: 'next' | 'signing' | 'retired'
  /** ISO times. */
  signs_from: string
  published_until: string | null
}

/** Returns the published keys, or all keys. Keys that were published formerly verify only `id_token_hint`. */
export const keyStates = async (
  { store, clock }: Core,
  which: 'published' | 'any' = 'published',
): Promise<KeyState[]> => {
  const now = clock.now()
  const all = await store.read(listKeys)
  const published = all.filter(publishedAt(now))
  const signing = new Map(
    published.filter(({ active_at }) => active_at <= now).map(({ alg, id }) => [alg, id]),
  )
  return (which === 'any' ? all : published).map(({ id, alg, active_at, expires_at }) => ({
    kid: id,
    alg,
    state: active_at > now ? 'next' : signing.get(alg) === id ? 'signing' : 'retired',
    signs_from: iso(active_at),
    published_until: isoOrNull(expires_at),
  }))
}

const getKey = async ({ store }: Core, kid: string): Promise<KeyRow> => {
  const key = (await store.read(listKeys)).find(({ id }) => id === kid)
  if (!key) throw notFound('The key')
  return key
}

/**
 * Makes the key sign from now on. The previous signing key stays published, because its tokens are still
 * valid.
 *
 * @throws AppError 404 when there is no such key
 */
export const activateKey = async (base: Core, kid: string): Promise<void> => {
  const { id, alg } = await getKey(base, kid)
  const now = base.clock.now()
  await base.store.write(async tx => {
    await supersede(tx, alg, { now, expires_at: now + MAX_TOKEN_LIFETIME })
    await reinstateKey(tx, id, now)
  })
}

/**
 * Removes a key from the key set, so that tokens signed with the key are refused. The signing key cannot be
 * removed, because the server would then sign with an older key or have no key.
 *
 * @throws AppError 404 when there is no such key, 409 while it signs
 */
export const retireKey = async (base: Core, kid: string): Promise<void> => {
  const { id } = await getKey(base, kid)
  const { state } = (await keyStates(base)).find(key => key.kid === kid) ?? {}
  if (state === 'signing')
    throw conflict('This key is the signing key. Activate another key first, or revoke this one.')
  await base.store.write(tx => removeKey(tx, id))
}

/**
 * Imports a key that signs from now on, so that tests can use the same key in every run. The key keeps its
 * `kid`; a key without a `kid` gets a new one. Returns the `kid`.
 *
 * @throws AppError 422 when the JWK is not a private RSA or EC key, or its `alg` does not fit the key
 */
export const pinKey = async (base: Core, jwk: JsonWebKey & { kid?: unknown }): Promise<string> => {
  const { alg, ...pair } = openJwk(jwk)
  const now = base.clock.now()
  const kid = typeof jwk.kid === 'string' ? (jwk.kid as KeyId) : undefined
  const key = keyRow(base, alg, pair, kid)
  await base.store.write(async tx => {
    await removeKey(tx, key.id)
    await supersede(tx, alg, { now, expires_at: now + MAX_TOKEN_LIFETIME })
    await insertKey(tx, key)
  })
  return key.id
}

/** Returns the key pair and the algorithm of a JWK. An `alg` with which no key here signs is ignored. */
const openJwk = (jwk: JsonWebKey): KeyPair & { alg: SigningAlg } => {
  try {
    const privateKey = createPrivateKey({ key: jwk, format: 'jwk' })
    const alg = algorithmOf(privateKey, isSigningAlg(jwk.alg) ? jwk.alg : undefined)
    return { alg, privateKey, publicKey: createPublicKey(privateKey) }
  } catch {
    throw invalid({
      field: 'jwk',
      code: 'unsupported',
      message:
        'A private RSA or EC key as a JWK: RSA of at least 2048 bits, or P-256, P-384 or P-521. Its alg fits the key.',
    })
  }
}

/** Returns the key pair of a `kid`, to sign invalid tokens for tests. */
export const openPair = async (base: Core, kid: string) => {
  const { id, alg, private_key } = await getKey(base, kid)
  const privateKey = createPrivateKey({
    key: base.master.open(private_key, id),
    format: 'der',
    type: 'pkcs8',
  })
  return { alg, privateKey, publicKey: createPublicKey(privateKey) }
}
