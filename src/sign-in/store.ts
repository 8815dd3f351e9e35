import { and, eq, sql } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Throttle = Tables['throttles']['$inferSelect']

const byKey = prepared((q, { throttles }) =>
  q
    .select()
    .from(throttles)
    .where(eq(throttles.key, sql.placeholder('key'))),
)

export const findThrottle = async (q: Queries, key: string): Promise<Throttle | undefined> =>
  (await byKey(q, { key }))[0]

export const upsertThrottle = async (tx: Transaction, { key, ...row }: Throttle): Promise<void> => {
  const { throttles } = tx.tables
  tx.changed('throttles')
  await tx
    .insert(throttles)
    .values({ key, ...row })
    .onConflictDoUpdate({ target: throttles.key, set: row })
}

export const removeThrottle = async (tx: Transaction, key: string): Promise<void> => {
  const { throttles } = tx.tables
  tx.changed('throttles')
  await tx.delete(throttles).where(eq(throttles.key, key))
}

/** A stronger hash of the same password in the place of `from`, unless the password has changed meanwhile. */
export const replacePasswordHash = async (
  tx: Transaction,
  id: UserId,
  from: string,
  to: string,
): Promise<void> => {
  const { users } = tx.tables
  await tx
    .update(users)
    .set({ password_hash: to })
    .where(and(eq(users.id, id), eq(users.password_hash, from)))
}
