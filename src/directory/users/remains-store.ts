import { and, eq, ne } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import { BATCH, removeSome } from '#src/storage/batches.ts'
import type { Transaction } from '#src/storage/store.ts'

/**
 * Removes what refers to a deleted user: `BATCH` rows at most, and says how many. Refresh tokens go with their session.
 * Of the events only `user.deleted` stays.
 */
export const removeRemains = async (tx: Transaction, id: UserId): Promise<number> => {
  const { authorization_codes, consents, events, links, logins, sessions } = tx.tables
  const remains = [
    [sessions, sessions.id, eq(sessions.user_id, id)],
    [logins, logins.id, eq(logins.user_id, id)],
    [authorization_codes, authorization_codes.code_hash, eq(authorization_codes.user_id, id)],
    [consents, consents.client_id, eq(consents.user_id, id)],
    [links, links.link_hash, eq(links.user_id, id)],
    [events, events.seq, eq(events.subject_id, id)],
    [events, events.seq, and(eq(events.actor_id, id), ne(events.target_id, id))],
    [events, events.seq, and(eq(events.target_id, id), ne(events.type, 'user.deleted'))],
  ] as const
  tx.changed('events')
  let removed = 0
  for (const [table, key, where] of remains) {
    if (removed < BATCH) removed += await removeSome(tx, table, key, where, BATCH - removed)
  }
  return removed
}

/** Removes a first batch, and notes the user down for the purge when there may be more. */
export const removeOrPurge = async (tx: Transaction, id: UserId, now: number): Promise<void> => {
  if ((await removeRemains(tx, id)) === BATCH)
    await tx.insert(tx.tables.purges).values({ id, kind: 'user', created_at: now })
}
