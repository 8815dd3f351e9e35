import { and, asc, eq, gt, isNull, lte, or, sql } from 'drizzle-orm'
import type { KeyId } from '#src/lib/ids.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { preparedForStart, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/**
 * A key signs from `active_at` until a later key of its algorithm begins to sign. It is published until
 * `expires_at`.
 */
export type KeyRow = Omit<Tables['signing_keys']['$inferSelect'], 'alg'> & { alg: SigningAlg }

/** Returns a predicate that is true for the keys in the key set at the time `now` (ms). */
export const publishedAt =
  (now: number) =>
  ({ expires_at }: Pick<KeyRow, 'expires_at'>): boolean =>
    expires_at === null || expires_at > now

const { placeholder } = sql

const selectKeys = preparedForStart('signing keys', (q, { signing_keys }) =>
  q.select().from(signing_keys).orderBy(asc(signing_keys.active_at), asc(signing_keys.id)),
)

/** Returns all keys in the order in which they begin to sign. */
export const listKeys = async (q: Queries): Promise<KeyRow[]> => (await selectKeys(q, {})) as KeyRow[]

const insert = preparedForStart('insert signing key', (q, { signing_keys }) =>
  q.insert(signing_keys).values({
    id: placeholder('id'),
    alg: placeholder('alg'),
    public_jwk: placeholder('public_jwk'),
    private_key: placeholder('private_key'),
    created_at: placeholder('created_at'),
    active_at: placeholder('active_at'),
    retired_at: placeholder('retired_at'),
    expires_at: placeholder('expires_at'),
  }),
)

/** Stores a signing key. */
export const insertKey = async (tx: Transaction, key: KeyRow): Promise<void> => {
  await insert(tx, key)
  tx.changed('keys')
}

/**
 * Sets when the keys of an algorithm stop signing and when they leave the key set. Keys that stop earlier
 * stay unchanged.
 */
export const retireKeys = async (
  tx: Transaction,
  alg: SigningAlg,
  { retired_at, expires_at }: { retired_at: number; expires_at: number },
): Promise<void> => {
  const { signing_keys } = tx.tables
  await tx
    .update(signing_keys)
    .set({ retired_at, expires_at })
    .where(
      and(
        eq(signing_keys.alg, alg),
        or(isNull(signing_keys.retired_at), gt(signing_keys.retired_at, retired_at)),
      ),
    )
  tx.changed('keys')
}

/**
 * Retires the active keys of an algorithm now, and publishes them until `expires_at`. Skips active keys whose
 * retirement is already planned, and keys that are published but do not sign yet. A planned rotation thus
 * still happens. Only the controls of development mode call this function (`manual-keys.ts`).
 */
export const supersede = async (
  tx: Transaction,
  alg: SigningAlg,
  { now, expires_at }: { now: number; expires_at: number },
): Promise<void> => {
  const { signing_keys: t } = tx.tables
  await tx
    .update(t)
    .set({ retired_at: now, expires_at })
    .where(and(eq(t.alg, alg), lte(t.active_at, now), isNull(t.expires_at)))
  tx.changed('keys')
}

/** Makes a key sign from `active_at` until it is retired again. */
export const reinstateKey = async (tx: Transaction, id: KeyId, active_at: number): Promise<void> => {
  const { signing_keys } = tx.tables
  await tx
    .update(signing_keys)
    .set({ active_at, retired_at: null, expires_at: null })
    .where(eq(signing_keys.id, id))
  tx.changed('keys')
}

/** Makes a key sign from `active_at`. The times at which it is retired and expires stay. */
export const advanceKey = async (tx: Transaction, id: KeyId, active_at: number): Promise<void> => {
  const { signing_keys } = tx.tables
  await tx.update(signing_keys).set({ active_at }).where(eq(signing_keys.id, id))
  tx.changed('keys')
}

/** Deletes a key and returns it. Returns undefined when there is no such key. */
export const removeKey = async (tx: Transaction, id: KeyId): Promise<KeyRow | undefined> => {
  const { signing_keys } = tx.tables
  const [removed] = await tx.delete(signing_keys).where(eq(signing_keys.id, id)).returning()
  tx.changed('keys')
  return removed as KeyRow | undefined
}

/** Removes the keys whose `expires_at` is not after `end` (ms). */
export const removeExpiredKeys = async (tx: Transaction, end: number): Promise<void> => {
  const { signing_keys } = tx.tables
  const removed = await tx
    .delete(signing_keys)
    .where(lte(signing_keys.expires_at, end))
    .returning({ id: signing_keys.id })
  if (removed.length > 0) tx.changed('keys')
}
