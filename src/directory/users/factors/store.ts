import { and, asc, eq, lt, sql } from 'drizzle-orm'
import type { FactorId, UserId } from '#src/lib/ids.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Factor = Tables['factors']['$inferSelect']

const { placeholder } = sql

const selectFactors = prepared((q, { factors }) =>
  q
    .select()
    .from(factors)
    .where(eq(factors.user_id, placeholder('user_id')))
    .orderBy(asc(factors.id)),
)

/** Returns the factors of a user, the oldest first. */
export const listFactors = (q: Queries, user_id: UserId): Promise<Factor[]> => selectFactors(q, { user_id })

const selectPasskey = prepared((q, { factors }) =>
  q
    .select()
    .from(factors)
    .where(eq(factors.credential_id, placeholder('credential_id'))),
)

/** Returns the passkey with this credential id (base64url). It may belong to any user. */
export const findPasskey = async (q: Queries, credential_id: string): Promise<Factor | undefined> =>
  (await selectPasskey(q, { credential_id }))[0]

/** Stores a factor. Rejects with a unique violation when the passkey is already registered. */
export const insertFactor = async (tx: Transaction, factor: Factor): Promise<void> => {
  await tx.insert(tx.tables.factors).values(factor)
}

/** Renames a factor. Returns false when the user has no such factor. */
export const renameFactor = async (
  tx: Transaction,
  user_id: UserId,
  id: string,
  name: string,
): Promise<boolean> => {
  const { factors } = tx.tables
  const rows = await tx
    .update(factors)
    .set({ name })
    .where(and(eq(factors.id, id as FactorId), eq(factors.user_id, user_id)))
    .returning({ id: factors.id })
  return rows.length > 0
}

/** Deletes a factor and returns it. Only one of several concurrent calls gets the factor. */
export const deleteFactor = async (
  tx: Transaction,
  user_id: UserId,
  id: string,
): Promise<Factor | undefined> => {
  const { factors } = tx.tables
  const [factor] = await tx
    .delete(factors)
    .where(and(eq(factors.id, id as FactorId), eq(factors.user_id, user_id)))
    .returning()
  return factor
}

/**
 * Marks the time step of a code as used. Returns false when this step or a later step is already used. A code
 * works only once (RFC 6238 section 5.2), so that an observer cannot use the code again.
 */
export const consumeStep = async (
  tx: Transaction,
  { id, step, now }: { id: FactorId; step: number; now: number },
): Promise<boolean> => {
  const { factors } = tx.tables
  const rows = await tx
    .update(factors)
    .set({ last_step: step, last_used_at: now })
    .where(and(eq(factors.id, id), lt(factors.last_step, step)))
    .returning({ id: factors.id })
  return rows.length > 0
}

/**
 * Stores the counter of a passkey. Returns `copied` when the counter has not increased. Returns `gone` when
 * the passkey was deleted. Passkeys without a counter always send 0, and this 0 is accepted. With `alone`,
 * also stores that a login has begun with only the passkey.
 * https://www.w3.org/TR/webauthn-3/#sctn-sign-counter
 */
export const usePasskey = async (
  tx: Transaction,
  { id, sign_count, now, alone }: { id: FactorId; sign_count: number; now: number; alone?: true },
): Promise<'used' | 'copied' | 'gone'> => {
  const { factors } = tx.tables
  const hasRisen = sign_count === 0 ? eq(factors.sign_count, 0) : lt(factors.sign_count, sign_count)
  const rows = await tx
    .update(factors)
    .set({ sign_count, last_used_at: now, ...(alone && { alone }) })
    .where(and(eq(factors.id, id), hasRisen))
    .returning({ id: factors.id })
  if (rows.length > 0) return 'used'
  return (await tx.$count(factors, eq(factors.id, id))) > 0 ? 'copied' : 'gone'
}

/** Counts the unused recovery codes of a user. */
export const countRecoveryCodes = (q: Queries, user_id: UserId): Promise<number> =>
  q.$count(q.tables.recovery_codes, eq(q.tables.recovery_codes.user_id, user_id))

/** Replaces all recovery codes of a user. */
export const replaceRecoveryCodes = async (
  tx: Transaction,
  user_id: UserId,
  hashes: readonly string[],
): Promise<void> => {
  const { recovery_codes } = tx.tables
  await tx.delete(recovery_codes).where(eq(recovery_codes.user_id, user_id))
  if (hashes.length > 0)
    await tx.insert(recovery_codes).values(hashes.map(code_hash => ({ user_id, code_hash })))
}

/** True while the code is unused. */
export const hasRecoveryCode = async (q: Queries, user_id: UserId, code_hash: string): Promise<boolean> => {
  const { recovery_codes: t } = q.tables
  return (await q.$count(t, and(eq(t.user_id, user_id), eq(t.code_hash, code_hash)))) > 0
}

/** Deletes a recovery code. Only one of several concurrent calls returns true. */
export const consumeRecoveryCode = async (
  tx: Transaction,
  user_id: UserId,
  code_hash: string,
): Promise<boolean> => {
  const { recovery_codes } = tx.tables
  const rows = await tx
    .delete(recovery_codes)
    .where(and(eq(recovery_codes.user_id, user_id), eq(recovery_codes.code_hash, code_hash)))
    .returning({ code_hash: recovery_codes.code_hash })
  return rows.length > 0
}
