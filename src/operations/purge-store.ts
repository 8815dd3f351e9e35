import { asc, eq } from 'drizzle-orm'
import { removeRemains } from '#src/directory/users/remains-store.ts'
import { removeUsers } from '#src/directory/users/store.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { BATCH, removeSome } from '#src/storage/batches.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'

const selectPurges = prepared((q, { purges }) => q.select().from(purges).orderBy(asc(purges.created_at)))

/** What was deleted and has rows left, oldest first. */
export const listPurges = (q: Queries) => selectPurges(q, {})

export const endPurge = async (tx: Transaction, id: string): Promise<void> => {
  await tx.delete(tx.tables.purges).where(eq(tx.tables.purges.id, id))
}

/** A user takes many times what another row does: its text leaves the search index, and it stands in eleven others. */
const USERS = 10

/**
 * Removes rows of a deleted organization, one batch, and says how many. Users go first, with all that refers to them: what is
 * left then has an index by organization, or runs out by itself within minutes.
 */
export const removeOrganizationRows = async (tx: Transaction, id: OrganizationId): Promise<number> => {
  const { events, sessions, users } = tx.tables
  const some = await tx.select({ id: users.id }).from(users).where(eq(users.organization_id, id)).limit(USERS)
  if (some.length > 0) {
    const ids = some.map(user => user.id)
    const remains = await removeRemains(tx, ids)
    if (remains === BATCH) return remains
    await removeUsers(tx, ids)
    return remains + ids.length
  }
  tx.changed('events')
  const ended = await removeSome(tx, sessions, sessions.id, eq(sessions.organization_id, id), BATCH)
  return ended || removeSome(tx, events, events.seq, eq(events.organization_id, id), BATCH)
}
