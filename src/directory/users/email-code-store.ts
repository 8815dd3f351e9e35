import { and, eq, gt, lt, sql } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/**
 * Number of wrong tries after which a code becomes invalid. With five guesses at each code, an attacker finds
 * one code in 200,000 on average.
 */
const MAX_TRIES = 5

/**
 * Stores the code of a user, and removes an earlier code. A user has only one valid code, so that an attacker
 * gets few guesses.
 */
export const replaceEmailCode = async (
  tx: Transaction,
  { user_id, ...code }: Omit<Tables['email_codes']['$inferSelect'], 'tries'>,
): Promise<void> => {
  const { email_codes: t } = tx.tables
  const set = { ...code, tries: 0 }
  await tx
    .insert(t)
    .values({ user_id, ...set })
    .onConflictDoUpdate({ target: t.user_id, set })
}

/** True when the user has a code that was requested after `time` (ms). */
export const hasNewerCode = async (tx: Transaction, user_id: UserId, time: number): Promise<boolean> => {
  const { email_codes: t } = tx.tables
  const isNewer = and(eq(t.user_id, user_id), gt(t.requested_at, time))
  return (await tx.select({ user_id: t.user_id }).from(t).where(isNewer)).length > 0
}

interface Typed {
  user_id: UserId
  request_hash: SecretHash
  code_hash: string
  now: number
}

/**
 * Checks a typed code. If `code_hash` is the hash of the user's valid code for this request, deletes the code
 * and returns true. Otherwise counts a wrong try and returns false. If several calls have the right code,
 * only one returns true. The same statements run for a user without a code, so the time does not reveal
 * whether a user has a code.
 */
export const consumeEmailCode = async (
  tx: Transaction,
  { user_id, request_hash, code_hash, now }: Typed,
): Promise<boolean> => {
  const { email_codes: t } = tx.tables
  const alive = and(
    eq(t.user_id, user_id),
    eq(t.request_hash, request_hash),
    lt(t.tries, MAX_TRIES),
    gt(t.expires_at, now),
  )
  const used = await tx
    .delete(t)
    .where(and(alive, eq(t.code_hash, code_hash)))
    .returning()
  if (used.length > 0) return true
  await tx
    .update(t)
    .set({ tries: sql`${t.tries} + 1` })
    .where(alive)
  return false
}

/** Deletes the code of a user. Returns the number of deleted codes, 0 or 1. */
export const removeEmailCode = async (tx: Transaction, user_id: UserId): Promise<number> => {
  const { email_codes: t } = tx.tables
  return (await tx.delete(t).where(eq(t.user_id, user_id)).returning({ id: t.user_id })).length
}
