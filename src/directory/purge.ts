import type { Core } from '#src/context.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import { releaseSessions } from '#src/sessions/service.ts'
import { inBatches } from '#src/storage/batches.ts'
import { endPurge, isPurging, type listPurges } from '#src/storage/purges.ts'
import { removeRemains } from '#src/storage/remains.ts'
import type { Transaction } from '#src/storage/store.ts'
import { purgeClient } from './clients/service.ts'
import { rebuildIndex } from './organizations/attribute-store.ts'
import { listUserIds, removeUsers } from './users/store.ts'

/**
 * A user counts as this number of rows in a batch. Removing a user takes many times as long as removing a row
 * of another table, because the search index and many tables refer to the user.
 */
const USER = 25

/**
 * Removes about `limit` rows of a deleted organization: first the users and the rows that refer to them, then
 * the rows that an index finds by organization. Rows that no such index finds expire by themselves. While
 * users of the organization have active sessions, a batch ends sessions and removes no rows. Returns the
 * number of removed rows or of ended sessions.
 */
const removeOrganizationRows = async (
  context: Core,
  tx: Transaction,
  id: OrganizationId,
  limit: number,
): Promise<number> => {
  const users = await listUserIds(tx, id, Math.ceil(limit / USER))
  if (users.length === 0) return removeRemains(tx, 'organization', [id], limit)
  let ended = 0
  for (const user_id of users)
    if (ended < limit) ended += (await releaseSessions(context, tx, { user_id }, limit - ended)).length
  if (ended > 0) return ended
  const removed = await removeRemains(tx, 'user', users, limit)
  if (removed >= limit) return removed
  await removeUsers(tx, users)
  return removed + users.length
}

const removeRows = async (
  context: Core,
  tx: Transaction,
  kind: Parameters<typeof removeRemains>[1],
  id: string,
  limit: number,
): Promise<number> => {
  if (kind === 'organization') return removeOrganizationRows(context, tx, id as OrganizationId, limit)
  const ended = kind === 'user' ? await releaseSessions(context, tx, { user_id: id as UserId }, limit) : []
  return ended.length > 0 ? ended.length : removeRemains(tx, kind, [id], limit)
}

/**
 * Removes the rows that one deleted object left behind, or rebuilds one index, in writes of bounded size.
 * Returns the number of removed rows and ended sessions. Rows of clients and of indexes are not counted.
 */
export const purgeOne = async (
  context: Core,
  row: Awaited<ReturnType<typeof listPurges>>[number],
): Promise<number> => {
  const { id, kind } = row
  if (kind === 'client') await purgeClient(context, id)
  else if (kind === 'attribute_index') await rebuildIndex(context, row)
  else
    return inBatches(context.store, async (tx, limit) => {
      // A reset in development may have restored the object meanwhile.
      if (!(await isPurging(tx, id))) return 0
      const count = await removeRows(context, tx, kind, id, limit)
      if (count === 0) await endPurge(tx, id)
      return count
    })
  return 0
}
