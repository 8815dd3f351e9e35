import { and, eq, like, or } from 'drizzle-orm'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'

/**
 * Returns up to `limit` enabled users of the organization who hold a role with one of the permissions,
 * directly or through a group.
 */
export const usersWith = async (
  q: Queries,
  organization_id: OrganizationId,
  permissions: string[],
  limit: number,
): Promise<{ id: UserId; email: string }[]> => {
  const { group_members, group_roles, roles, user_roles, users } = q.tables
  // The permissions are stored as JSON text.
  const isHeld = and(
    eq(roles.organization_id, organization_id),
    or(...permissions.map(each => like(roles.permissions, `%${JSON.stringify(each)}%`))),
  )
  const isEnabled = and(eq(users.organization_id, organization_id), eq(users.enabled, true))
  const direct = q
    .selectDistinct({ id: users.id, email: users.email })
    .from(roles)
    .innerJoin(user_roles, eq(user_roles.role_id, roles.id))
    .innerJoin(users, eq(users.id, user_roles.user_id))
    .where(and(isHeld, isEnabled))
    .limit(limit)
  const inherited = q
    .selectDistinct({ id: users.id, email: users.email })
    .from(roles)
    .innerJoin(group_roles, eq(group_roles.role_id, roles.id))
    .innerJoin(group_members, eq(group_members.group_id, group_roles.group_id))
    .innerJoin(users, eq(users.id, group_members.user_id))
    .where(and(isHeld, isEnabled))
    .limit(limit)
  const found = [...(await direct), ...(await inherited)]
  return [...new Map(found.map(user => [user.id, user])).values()].slice(0, limit)
}
