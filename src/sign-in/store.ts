import { and, eq, gte, inArray, lt, or, sql } from 'drizzle-orm'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/**
 * A count of failures. It is stored in the database, so that an attacker gets no new attempts after a restart
 * or from another copy of the server.
 */
export type Throttle = Tables['throttles']['$inferSelect']

const byKey = prepared((q, { throttles }) =>
  q
    .select()
    .from(throttles)
    .where(eq(throttles.key, sql.placeholder('key'))),
)

/**
 * Returns the stored count of failures of a key, even if it has expired. Returns undefined when no count is
 * stored.
 */
export const findThrottle = async (q: Queries, key: string): Promise<Throttle | undefined> =>
  (await byKey(q, { key }))[0]

/** Stores the state of a throttle key. */
export const upsertThrottle = async (tx: Transaction, { key, ...row }: Throttle): Promise<void> => {
  const { throttles } = tx.tables
  tx.changed('throttles')
  await tx
    .insert(throttles)
    .values({ key, ...row })
    .onConflictDoUpdate({ target: throttles.key, set: row })
}

/** Deletes the count of a key. This ends the wait of the key. */
export const removeThrottle = async (tx: Transaction, key: string): Promise<void> => {
  const { throttles } = tx.tables
  tx.changed('throttles')
  await tx.delete(throttles).where(eq(throttles.key, key))
}

/** The throttles that have one of the keys, or a key that begins with one of the prefixes. */
export interface ThrottleSet {
  keys: string[]
  prefixes: string[]
}

/** Deletes all throttles of a set. Returns their number. */
export const removeThrottles = async (tx: Transaction, { keys, prefixes }: ThrottleSet): Promise<number> => {
  const { key } = tx.tables.throttles
  tx.changed('throttles')
  const ranges = prefixes.map(prefix => and(gte(key, prefix), lt(key, `${prefix}\uffff`)))
  const removed = await tx
    .delete(tx.tables.throttles)
    .where(or(inArray(key, keys), ...ranges))
    .returning({ key })
  return removed.length
}
