import type { Core } from '#src/context.ts'
import { purgeOne } from '#src/directory/purge.ts'
import { listPurges } from '#src/storage/purges.ts'

/**
 * Removes the rows that deleted users, organizations, roles, groups, clients and identity providers left
 * behind. Also rebuilds indexes of attributes. Each write has a bounded size. Returns the number of removed
 * rows and ended sessions. Rows of clients and of indexes are not counted.
 */
export const purge = async (context: Core): Promise<number> => {
  let total = 0
  for (const row of await context.store.read(listPurges)) total += await purgeOne(context, row)
  return total
}
