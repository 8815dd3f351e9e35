import { eq, inArray, sql } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import { prepared, preparedForStart, type Queries } from '#src/storage/store.ts'

const { placeholder } = sql

const selectRoles = preparedForStart(
  'effective roles',
  (q, { group_members, group_roles, roles, user_roles }) => {
    const direct = q
      .select({ role_id: user_roles.role_id })
      .from(user_roles)
      .where(eq(user_roles.user_id, placeholder('user_id')))
    const inherited = q
      .select({ role_id: group_roles.role_id })
      .from(group_roles)
      .innerJoin(group_members, eq(group_members.group_id, group_roles.group_id))
      .where(eq(group_members.user_id, placeholder('user_id')))
    return q
      .select({ id: roles.id, name: roles.name, permissions: roles.permissions })
      .from(roles)
      .where(inArray(roles.id, direct.union(inherited)))
      .orderBy(roles.name)
  },
)

/** Returns the roles that a user holds directly or inherits from groups, sorted by name. */
export const effectiveRoles = (q: Queries, user_id: UserId) => selectRoles(q, { user_id })

const selectGroups = prepared((q, { group_members, groups }) =>
  q
    .select({ name: groups.name })
    .from(group_members)
    .innerJoin(groups, eq(groups.id, group_members.group_id))
    .where(eq(group_members.user_id, placeholder('user_id')))
    .orderBy(groups.name),
)

/** Returns the names of the groups of a user, sorted. */
export const groupNames = async (q: Queries, user_id: UserId): Promise<string[]> =>
  (await selectGroups(q, { user_id })).map(({ name }) => name)
