import { and, eq, sql } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import { prepared, type Queries } from '#src/storage/store.ts'

const selectConsent = prepared((q, { consents: t }) =>
  q
    .select({ scopes: t.scopes })
    .from(t)
    .where(and(eq(t.user_id, sql.placeholder('user_id')), eq(t.client_id, sql.placeholder('client_id')))),
)

/** Returns the scopes to which the user consented. Returns undefined when the user was never asked. */
export const findConsented = async (
  q: Queries,
  key: { user_id: UserId; client_id: string },
): Promise<readonly string[] | undefined> => (await selectConsent(q, key))[0]?.scopes
