import { and, eq, inArray, or, sql } from 'drizzle-orm'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import { byName } from '#src/lib/text.ts'
import { prepared, preparedForStart, type Queries } from '#src/storage/store.ts'

const { placeholder } = sql

/**
 * Maximum number of rows that `selectRoles` returns. If a user has a role directly and from two groups, the
 * role has three rows. The few users who reach the maximum are read with `selectManyRoles`. Without the
 * maximum, a member of 200 groups with 100 roles each would cause 20,000 rows at each request.
 */
const FEW = 200

// Two joins take half the time of `roles.id IN (…)`. UNION and ORDER BY would make temporary tables.
const selectRoles = preparedForStart(
  'effective roles',
  (q, { group_members, group_roles, roles, user_roles }) => {
    const columns = { id: roles.id, name: roles.name, permissions: roles.permissions }
    const direct = q
      .select(columns)
      .from(user_roles)
      .innerJoin(roles, eq(roles.id, user_roles.role_id))
      .where(eq(user_roles.user_id, placeholder('user_id')))
    const inherited = q
      .select(columns)
      .from(group_members)
      .innerJoin(group_roles, eq(group_roles.group_id, group_members.group_id))
      .innerJoin(roles, eq(roles.id, group_roles.role_id))
      .where(eq(group_members.user_id, placeholder('user_id')))
    return direct.unionAll(inherited).limit(FEW)
  },
)

/** Reads each role only once, even if several groups of the user have this role. */
const selectManyRoles = prepared((q, { group_members, group_roles, roles, user_roles }) => {
  const direct = q
    .select({ id: user_roles.role_id })
    .from(user_roles)
    .where(eq(user_roles.user_id, placeholder('user_id')))
  const inherited = q
    .select({ id: group_roles.role_id })
    .from(group_members)
    .innerJoin(group_roles, eq(group_roles.group_id, group_members.group_id))
    .where(eq(group_members.user_id, placeholder('user_id')))
  return q
    .select({ id: roles.id, name: roles.name, permissions: roles.permissions })
    .from(roles)
    .where(or(inArray(roles.id, direct), inArray(roles.id, inherited)))
})

/**
 * Returns the roles that a user holds directly or inherits from groups, without duplicates, sorted by name.
 */
export const effectiveRoles = (q: Queries, user_id: UserId) =>
  selectRoles(q, { user_id }).then(held =>
    held.length < FEW ? distinct(held) : selectManyRoles(q, { user_id }).then(distinct),
  )

const distinct = <R extends { id: string; name: string }>(held: R[]): R[] =>
  held.length < 2 ? held : [...new Map(held.map(role => [role.id, role])).values()].sort(byName)

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

/** Returns the names in `names` that belong to a group of the organization. */
export const groupsNamed = async (
  q: Queries,
  organization_id: OrganizationId,
  names: string[],
): Promise<string[]> => {
  const { groups } = q.tables
  if (names.length === 0) return []
  const rows = await q
    .select({ name: groups.name })
    .from(groups)
    .where(and(eq(groups.organization_id, organization_id), inArray(groups.name, names)))
  return rows.map(({ name }) => name)
}
