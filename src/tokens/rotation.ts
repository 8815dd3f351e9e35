import { hostActor, record } from '#src/audit/record.ts'
import type { Core } from '#src/context.ts'
import { notFound } from '#src/lib/app-error.ts'
import { CLOCK_SKEW, DAY, MINUTE } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION, type KeyId, newId } from '#src/lib/ids.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import type { Transaction } from '#src/storage/store.ts'
import {
  advanceKey,
  insertKey,
  type KeyRow,
  listKeys,
  reinstateKey,
  removeExpiredKeys,
  removeKey,
  retireKeys,
} from './key-store.ts'
import { type KeyPair, makeKeyPair } from './signature.ts'

/**
 * Milliseconds between publishing a key and signing with it. Caches keep the key set for less time: 5 minutes
 * by `max-age`, 10 minutes in the SDK.
 */
const LEAD = 15 * MINUTE
/**
 * Maximum lifetime of a client's tokens (one day) plus ten minutes for clock skew, in ms. A key that no
 * longer signs stays published for this time, because services still have to verify its tokens.
 */
export const MAX_TOKEN_LIFETIME = DAY + 10 * MINUTE
/**
 * Milliseconds for which a key is kept after it has left the key set, to verify ID tokens that applications
 * send as `id_token_hint`. It is the maximum lifetime of a refresh token, because most clients get no new ID
 * token on a refresh.
 */
const KEPT_FOR_HINTS = 365 * DAY

/** Returns the row of a key that signs at once. The private key is sealed with the instance key. */
export const keyRow = (
  { master, clock }: Core,
  alg: SigningAlg,
  { publicKey, privateKey }: KeyPair,
  id: KeyId = newId('key', clock.now()),
): KeyRow => {
  const now = clock.now()
  return {
    id,
    alg,
    public_jwk: publicKey.export({ format: 'jwk' }) as Record<string, string>,
    private_key: master.seal(privateKey.export({ format: 'der', type: 'pkcs8' }), id),
    created_at: now,
    active_at: now,
    retired_at: null,
    expires_at: null,
  }
}

const makeKey = async (base: Core, alg: SigningAlg): Promise<KeyRow> =>
  keyRow(base, alg, await makeKeyPair(alg))

const keysOf = async (tx: Transaction, alg: SigningAlg): Promise<KeyRow[]> =>
  (await listKeys(tx)).filter(key => key.alg === alg)

/**
 * Generates the first key of an algorithm. The key signs at once: no token of the algorithm exists, so no
 * verifier needs to have read the key. The function is called when the keys are opened, when a client or an
 * API is registered with the algorithm, and before a token is signed whose algorithm has no key.
 */
export const ensureKey = async (base: Core, alg: SigningAlg): Promise<void> => {
  if ((await base.store.read(listKeys)).some(key => key.alg === alg)) return
  const key = await makeKey(base, alg)
  await base.store.write(async tx => {
    if ((await keysOf(tx, alg)).length === 0) await insertKey(tx, key)
  })
}

/**
 * Publishes `key` as the next key of its algorithm. Returns false when the algorithm has no key, and while
 * another key is published but does not sign yet. Two simultaneous calls therefore add only one key.
 */
export const publishNext = async ({ clock }: Core, tx: Transaction, key: KeyRow): Promise<boolean> => {
  const { alg } = key
  const active_at = clock.now() + LEAD
  const latest = (await keysOf(tx, alg)).at(-1)
  if (!latest || latest.active_at > clock.now()) return false
  await retireKeys(tx, alg, { retired_at: active_at, expires_at: active_at + MAX_TOKEN_LIFETIME })
  await insertKey(tx, { ...key, active_at })
  return true
}

/** Publishes a new key as the next key of an algorithm, unless {@link publishNext} refuses it. */
export const rotateKey = async (base: Core, alg: SigningAlg): Promise<void> => {
  const key = await makeKey(base, alg)
  await base.store.write(tx => publishNext(base, tx, key))
}

const latestKeys = async (base: Core): Promise<KeyRow[]> => {
  const keys = await base.store.read(listKeys)
  return [...new Map(keys.map(key => [key.alg, key])).values()]
}

/**
 * Records a change of the keys. The default of `by` names no actor, because commands and the development
 * controls require no login.
 */
export const recordKeyChange = (
  context: Core,
  tx: Transaction,
  metadata: Record<string, unknown>,
  by = hostActor,
) =>
  record(context, tx, {
    ...by,
    type: 'admin.settings_changed',
    target_id: 'signing_keys',
    target_type: 'settings',
    organization_id: DEFAULT_ORGANIZATION,
    metadata,
  })

/**
 * Publishes the next key of each algorithm that has a key, unless a next key is published already. The new
 * keys begin to sign 15 minutes later. Records nothing when no key was published.
 *
 * @param write runs the change in a transaction, such as `writeAs` for a caller of the admin API
 */
export const rotateKeys = async (
  context: Core,
  by = hostActor,
  write: (change: (tx: Transaction) => Promise<void>) => Promise<void> = change =>
    context.store.write(change),
): Promise<void> => {
  const keys = await Promise.all((await latestKeys(context)).map(({ alg }) => makeKey(context, alg)))
  await write(async tx => {
    let isRotated = false
    for (const key of keys) isRotated = (await publishNext(context, tx, key)) || isRotated
    if (isRotated) await recordKeyChange(context, tx, { action: 'rotated' }, by)
  })
}

/**
 * Removes a compromised key at once, because a thief could sign tokens with it. If the key signs or will
 * sign, another key replaces it at once. Tokens signed with the key are refused. Sessions continue, because
 * refresh tokens are not signed with these keys.
 *
 * @throws AppError 404 when there is no such key
 */
export const revokeKey = async (context: Core, key_id: string): Promise<void> => {
  const revoked = (await context.store.read(listKeys)).find(({ id }) => id === key_id)
  if (!revoked) throw notFound('The key')
  const replacement = await makeKey(context, revoked.alg)
  await context.store.write(async tx => {
    if (!(await removeKey(tx, revoked.id))) throw notFound('The key')
    await recordKeyChange(context, tx, { action: 'revoked', key_id })
    const now = context.clock.now()
    const isReplaced = (key: KeyRow) => key.retired_at !== null && key.retired_at <= now
    if (isReplaced(revoked)) return
    const next = (await keysOf(tx, revoked.alg)).findLast(key => !isReplaced(key))
    if (next) await reinstateKey(tx, next.id, Math.min(next.active_at, now))
    else await insertKey(tx, replacement)
  })
}

/**
 * Rotates keys that have signed for `oldest` ms or longer, and removes keys that are no longer kept to verify
 * an `id_token_hint`. The first key that was published while the clock was ahead signs 15 minutes from now,
 * because otherwise no key would follow until its `active_at`. It is also possible that the clock is behind
 * now. Therefore no key is retired, and the key moves only if the key before it has begun to sign.
 */
export const rotateDueKeys = async (context: Core, oldest: number): Promise<void> => {
  const now = context.clock.now()
  const isAhead = ({ active_at }: KeyRow) => active_at > now + LEAD + CLOCK_SKEW
  for (const latest of await latestKeys(context)) {
    const { alg } = latest
    if (latest.active_at <= now - oldest) await rotateKey(context, alg)
    if (isAhead(latest))
      await context.store.write(async tx => {
        const keys = await keysOf(tx, alg)
        const next = keys.find(isAhead)
        const before = keys.findLast(key => !isAhead(key))
        if (next && (!before || before.active_at <= now)) await advanceKey(tx, next.id, now + LEAD)
      })
  }
  const end = now - KEPT_FOR_HINTS
  if ((await context.store.read(listKeys)).some(key => key.expires_at !== null && key.expires_at <= end))
    await context.store.write(tx => removeExpiredKeys(tx, end))
}
