import { and, inArray, ne } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import { DELETE_BATCH, deleteBatch } from '#src/storage/batches.ts'
import type { Transaction } from '#src/storage/store.ts'

/**
 * Removes up to `BATCH` rows that refer to deleted users and returns their number. Only the event
 * `user.deleted` stays.
 */
export const removeRemains = async (tx: Transaction, ids: UserId[]): Promise<number> => {
  const { authorization_codes, consents, events, links, logins, sessions } = tx.tables
  const { actor_id, seq, subject_id, target_id, type } = events
  const remains = [
    [sessions, sessions.id, inArray(sessions.user_id, ids)],
    [logins, logins.id, inArray(logins.user_id, ids)],
    [authorization_codes, authorization_codes.code_hash, inArray(authorization_codes.user_id, ids)],
    [consents, consents.client_id, inArray(consents.user_id, ids)],
    [links, links.link_hash, inArray(links.user_id, ids)],
    [events, seq, inArray(subject_id, ids)],
    [events, seq, and(inArray(actor_id, ids), ne(actor_id, target_id))],
    [events, seq, and(inArray(target_id, ids), ne(type, 'user.deleted'))],
  ] as const
  tx.changed('events')
  let removed = 0
  for (const [table, key, where] of remains) {
    if (removed < DELETE_BATCH) removed += await deleteBatch(tx, table, key, where, DELETE_BATCH - removed)
  }
  return removed
}

/** Removes a first batch, and notes the user down for the purge when there may be more. */
export const removeOrPurge = async (tx: Transaction, id: UserId, now: number): Promise<void> => {
  if ((await removeRemains(tx, [id])) === DELETE_BATCH)
    await tx.insert(tx.tables.purges).values({ id, kind: 'user', created_at: now })
}
