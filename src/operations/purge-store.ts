import { asc, eq } from 'drizzle-orm'
import { removeRemains } from '#src/directory/users/remains-store.ts'
import { removeUsers } from '#src/directory/users/store.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { DELETE_BATCH, deleteBatch } from '#src/storage/batches.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'

const selectPurges = prepared((q, { purges }) => q.select().from(purges).orderBy(asc(purges.created_at)))

/** Lists deletions with rows left to remove, oldest first. */
export const listPurges = (q: Queries) => selectPurges(q, {})

export const endPurge = async (tx: Transaction, id: string): Promise<void> => {
  await tx.delete(tx.tables.purges).where(eq(tx.tables.purges.id, id))
}

/**
 * Users per batch. A user takes many times the work of another row: it is in the search index and in eleven
 * other tables.
 */
const USERS = 10

/**
 * Removes one batch of rows of a deleted organization. Users go first with all rows that refer to them; the
 * remaining rows have an index by organization, or expire within minutes. Returns the number of rows.
 */
export const removeOrganizationRows = async (tx: Transaction, id: OrganizationId): Promise<number> => {
  const { events, sessions, users } = tx.tables
  const some = await tx.select({ id: users.id }).from(users).where(eq(users.organization_id, id)).limit(USERS)
  if (some.length > 0) {
    const ids = some.map(user => user.id)
    const remains = await removeRemains(tx, ids)
    if (remains === DELETE_BATCH) return remains
    await removeUsers(tx, ids)
    return remains + ids.length
  }
  tx.changed('events')
  const ended = await deleteBatch(tx, sessions, sessions.id, eq(sessions.organization_id, id), DELETE_BATCH)
  return ended || deleteBatch(tx, events, events.seq, eq(events.organization_id, id), DELETE_BATCH)
}
