import { eq } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

type Waiting = Tables['waiting_users']['$inferSelect']

/** Stores that a user waits for approval. */
export const insertWaiting = async (tx: Transaction, waiting: Waiting): Promise<void> => {
  await tx.insert(tx.tables.waiting_users).values(waiting)
}

/** True when the user waits for approval. */
export const isWaiting = async (q: Queries, user_id: UserId): Promise<boolean> =>
  (await q.$count(q.tables.waiting_users, eq(q.tables.waiting_users.user_id, user_id))) > 0

/** Removes a user from the waiting users. Returns false when the user was not waiting. */
export const endWaiting = async (tx: Transaction, user_id: UserId): Promise<boolean> => {
  const { waiting_users: t } = tx.tables
  const ended = await tx.delete(t).where(eq(t.user_id, user_id)).returning({ id: t.user_id })
  return ended.length > 0
}
