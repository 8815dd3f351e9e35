import type { Context } from '#src/context.ts'
import { purgeClient } from '#src/directory/clients/service.ts'
import { rebuildIndex } from '#src/directory/organizations/attribute-store.ts'
import { listUserIds, removeUsers } from '#src/directory/users/store.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import { releaseSessions } from '#src/sessions/service.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import { endPurge, listPurges } from '#src/storage/purges.ts'
import { removeRemains } from '#src/storage/remains.ts'
import type { Transaction } from '#src/storage/store.ts'

/**
 * Users per batch. A user takes many times the work of another row: it is in the search index and in eleven
 * other tables.
 */
const USERS = 10

/**
 * Removes one batch of rows of a deleted organization. Users go first with all rows that refer to them; the
 * remaining rows have an index by organization, or expire within minutes. Returns the number of rows.
 */
const removeOrganizationRows = async (
  context: Context,
  tx: Transaction,
  id: OrganizationId,
): Promise<number> => {
  const users = await listUserIds(tx, id, USERS)
  if (users.length === 0) return removeRemains(tx, 'organization', [id])
  let ended = 0
  for (const user_id of users) ended += (await releaseSessions(context, tx, { user_id }, DELETE_BATCH)).length
  if (ended > 0) return ended
  const removed = await removeRemains(tx, 'user', users)
  if (removed === DELETE_BATCH) return removed
  await removeUsers(tx, users)
  return removed + users.length
}

const removeRows = async (
  context: Context,
  tx: Transaction,
  kind: Parameters<typeof removeRemains>[1],
  id: string,
): Promise<number> => {
  const ended =
    kind === 'user' ? await releaseSessions(context, tx, { user_id: id as UserId }, DELETE_BATCH) : []
  return ended.length > 0 ? ended.length : removeRemains(tx, kind, [id])
}

/**
 * Removes the rows that deleted users, organizations, roles, groups, clients and identity providers left
 * behind, and finishes indexes of attributes. Each batch is its own write of a few milliseconds, so that
 * other writes run in between. Returns the number of rows.
 */
export const purge = async (context: Context): Promise<number> => {
  let total = 0
  for (const { id, kind } of await context.store.read(listPurges)) {
    if (kind === 'client') {
      await purgeClient(context, id)
      continue
    }
    if (kind === 'attribute_index') {
      await rebuildIndex(context, id)
      continue
    }
    for (let removed = -1; removed !== 0; ) {
      await context.store.drained()
      removed = await context.store.write(async tx => {
        const count =
          kind === 'organization'
            ? await removeOrganizationRows(context, tx, id as OrganizationId)
            : await removeRows(context, tx, kind, id)
        if (count === 0) await endPurge(tx, id)
        return count
      })
      total += removed
    }
  }
  return total
}
