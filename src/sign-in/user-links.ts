import { permissionsOf } from '#src/directory/access.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import type { UserId } from '#src/lib/ids.ts'
import { exceeding } from '#src/lib/permission.ts'
import { PageError } from '#src/pages/error-page.ts'
import type { Queries } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/**
 * Refuses a link when the user now has permissions that the creator of the link lacked. The link signs its
 * holder in as the user, and an administrator must not grant permissions that the administrator lacks.
 *
 * @throws PageError 410 `link`
 */
export const checkMaker = async (
  q: Queries,
  { permissions }: Pick<Tables['links']['$inferSelect'], 'permissions'>,
  user_id: UserId,
): Promise<void> => {
  if (!permissions) return
  const held = permissionsOf(await effectiveRoles(q, user_id))
  if (exceeding(new Set(permissions), held).length > 0) throw new PageError('link', 410)
}
