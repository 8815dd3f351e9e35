import { and, eq, sql } from 'drizzle-orm'
import type { IdentityProviderId, UserId } from '#src/lib/ids.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import { shownColumns } from './store.ts'
import type { ShownProvider } from './types.ts'

export type ExternalAccount = Tables['external_accounts']['$inferSelect']

const bySubject = prepared((q, { external_accounts: t }) =>
  q
    .select()
    .from(t)
    .where(and(eq(t.provider_id, sql.placeholder('provider_id')), eq(t.subject, sql.placeholder('subject')))),
)

/** Returns the linked account with this subject at the provider. */
export const findAccount = async (
  q: Queries,
  key: { provider_id: IdentityProviderId; subject: string },
): Promise<ExternalAccount | undefined> => (await bySubject(q, key))[0]

/**
 * Links an account. Rejects with a unique violation when the subject is linked already, because a login with
 * this subject must lead to one user.
 */
export const insertAccount = async (tx: Transaction, account: ExternalAccount): Promise<void> => {
  await tx.insert(tx.tables.external_accounts).values(account)
}

const byUser = prepared((q, { external_accounts: t, identity_providers: p }) =>
  q
    .select({ account: t, provider: shownColumns(q) })
    .from(t)
    .innerJoin(p, eq(p.id, t.provider_id))
    .where(eq(t.user_id, sql.placeholder('user_id')))
    .orderBy(p.name, t.created_at),
)

/**
 * Returns a user's linked accounts, sorted by the name of the provider. Accounts at deleted providers are
 * left out.
 */
export const listAccounts = (
  q: Queries,
  user_id: UserId,
): Promise<{ account: ExternalAccount; provider: ShownProvider }[]> => byUser(q, { user_id })

/** Removes a linked account. Returns false when the account does not exist. */
export const removeAccount = async (
  tx: Transaction,
  { provider_id, subject, user_id }: Pick<ExternalAccount, 'provider_id' | 'subject' | 'user_id'>,
): Promise<boolean> => {
  const { external_accounts: t } = tx.tables
  const rows = await tx
    .delete(t)
    .where(and(eq(t.provider_id, provider_id), eq(t.subject, subject), eq(t.user_id, user_id)))
    .returning({ subject: t.subject })
  return rows.length > 0
}
