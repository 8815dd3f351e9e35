import { and, eq, gt, sql } from 'drizzle-orm'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type InitialAccessTokenRow = Tables['initial_access_tokens']['$inferSelect']

/** Stores a new token. */
export const insertInitialAccessToken = async (
  tx: Transaction,
  row: InitialAccessTokenRow,
): Promise<void> => {
  await tx.insert(tx.tables.initial_access_tokens).values(row)
}

/**
 * Takes one of the uses that a token has left, and returns the token; undefined when it is unknown, used up
 * or expired. The limited number of uses bounds what a leaked token can register.
 */
export const useInitialAccessToken = async (
  tx: Transaction,
  token_hash: SecretHash,
  now: number,
): Promise<InitialAccessTokenRow | undefined> => {
  const { initial_access_tokens: t } = tx.tables
  const [used] = await tx
    .update(t)
    .set({ uses_left: sql`${t.uses_left} - 1` })
    .where(and(eq(t.token_hash, token_hash), gt(t.uses_left, 0), gt(t.expires_at, now)))
    .returning()
  return used
}
