import { and, eq, gt, sql } from 'drizzle-orm'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type InitialAccessTokenRow = Tables['initial_access_tokens']['$inferSelect']

/** Stores a new token. */
export const insertInitialAccessToken = async (
  tx: Transaction,
  row: InitialAccessTokenRow,
): Promise<void> => {
  await tx.insert(tx.tables.initial_access_tokens).values(row)
}

const usable = (
  { initial_access_tokens: t }: Queries['tables'],
  { token_hash, now }: { token_hash: SecretHash; now: number },
) => and(eq(t.token_hash, token_hash), gt(t.uses_left, 0), gt(t.expires_at, now))

/** Returns the organization of a token. Returns undefined when the token is unknown, used up or expired. */
export const findTokenOrganization = async (
  q: Queries,
  key: { token_hash: SecretHash; now: number },
): Promise<OrganizationId | undefined> => {
  const { initial_access_tokens: t } = q.tables
  const [row] = await q.select({ id: t.organization_id }).from(t).where(usable(q.tables, key))
  return row?.id
}

/**
 * Decreases the number of uses that remain for a token, and returns the token. Returns undefined when the
 * token is unknown, used up or expired. The number of uses limits how many clients a leaked token can
 * register.
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
    .where(usable(tx.tables, { token_hash, now }))
    .returning()
  return used
}
