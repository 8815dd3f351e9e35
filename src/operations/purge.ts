import type { Context } from '#src/context.ts'
import { purgeClient } from '#src/directory/clients/service.ts'
import { removeMembers } from '#src/directory/groups/store.ts'
import { removeAccounts } from '#src/directory/identity-providers/store.ts'
import { removeHolders } from '#src/directory/roles/store.ts'
import { removeRemains } from '#src/directory/users/remains-store.ts'
import type { GroupId, IdentityProviderId, OrganizationId, RoleId, UserId } from '#src/lib/ids.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import type { Transaction } from '#src/storage/store.ts'
import { endPurge, listPurges, removeOrganizationRows } from './purge-store.ts'

/** Each removes one batch and returns the number of rows; 0 when none is left. */
const removals = {
  user: (tx: Transaction, id: string) => removeRemains(tx, [id as UserId]),
  organization: (tx: Transaction, id: string) => removeOrganizationRows(tx, id as OrganizationId),
  role: (tx: Transaction, id: string) => removeHolders(tx, id as RoleId, DELETE_BATCH),
  group: (tx: Transaction, id: string) => removeMembers(tx, id as GroupId, DELETE_BATCH),
  identity_provider: (tx: Transaction, id: string) =>
    removeAccounts(tx, id as IdentityProviderId, DELETE_BATCH),
}

/**
 * Removes the rows that deleted users, organizations, roles, groups, clients and identity providers left
 * behind. Each batch is its own write of a few milliseconds, so that other writes run in between. Returns the
 * number of rows.
 */
export const purge = async (context: Context): Promise<number> => {
  let total = 0
  for (const { id, kind } of await context.store.read(listPurges)) {
    if (kind === 'client') {
      await purgeClient(context, id)
      continue
    }
    for (let removed = -1; removed !== 0; ) {
      await context.store.drained()
      removed = await context.store.write(async tx => {
        const count = await removals[kind](tx, id)
        if (count === 0) await endPurge(tx, id)
        return count
      })
      total += removed
    }
  }
  return total
}
