import { and, desc, eq, sql } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

type Acceptance = Tables['terms_acceptances']['$inferSelect']

const selectAcceptance = prepared((q, { terms_acceptances: t }) =>
  q
    .select({ accepted_at: t.accepted_at })
    .from(t)
    .where(and(eq(t.user_id, sql.placeholder('user_id')), eq(t.version, sql.placeholder('version')))),
)

/** True when the user has accepted this version of the terms. */
export const hasAccepted = async (
  q: Queries,
  key: Pick<Acceptance, 'user_id' | 'version'>,
): Promise<boolean> => (await selectAcceptance(q, key)).length > 0

/** Stores an acceptance. Returns false when the user has already accepted this version. */
export const insertAcceptance = async (tx: Transaction, acceptance: Acceptance): Promise<boolean> => {
  const { terms_acceptances: t } = tx.tables
  const rows = await tx.insert(t).values(acceptance).onConflictDoNothing().returning({ version: t.version })
  return rows.length > 0
}

/** Lists the latest versions that the user has accepted, at most 100. */
export const listAcceptances = (q: Queries, user_id: UserId): Promise<Acceptance[]> => {
  const { terms_acceptances: t } = q.tables
  return q
    .select()
    .from(t)
    .where(eq(t.user_id, user_id))
    .orderBy(desc(t.accepted_at), desc(t.version))
    .limit(100)
}
