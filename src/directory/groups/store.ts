import { and, asc, desc, eq, gt, inArray, lt, type SQL, sql } from 'drizzle-orm'
import { beyond, byCreation, isWithin, type Range } from '#src/directory/store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { GroupId, OrganizationId, RoleId, UserId } from '#src/lib/ids.ts'
import { byName } from '#src/lib/text.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import { beginPurge } from '#src/storage/purges.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Group = Tables['groups']['$inferSelect']
/** A group with the roles that its members inherit. The roles are sorted by name. */
export type GroupWithRoles = Group & { roles: { name: string; permissions: string[] }[] }

/** A group with the names of its roles. */
export type ListedGroup = Group & { roles: { name: string }[] }

const { placeholder } = sql

const select = prepared((q, { groups }) =>
  q
    .select()
    .from(groups)
    .where(and(eq(groups.id, placeholder('id')), isWithin(groups.organization_id))),
)

/** Returns a group by id. With `within`, the group must belong to that organization. */
export const findGroup = async (
  q: Queries,
  id: string,
  within?: OrganizationId,
): Promise<GroupWithRoles | undefined> =>
  (await withRoles(q, await select(q, { id, within: within ?? null })))[0]

const withRoles = async (q: Queries, rows: Group[]): Promise<GroupWithRoles[]> => {
  const { group_roles, roles } = q.tables
  const ids = rows.map(({ id }) => id)
  const held = await q
    .select({ group_id: group_roles.group_id, name: roles.name, permissions: roles.permissions })
    .from(group_roles)
    .innerJoin(roles, eq(roles.id, group_roles.role_id))
    .where(inArray(group_roles.group_id, ids))
  const byGroup = Map.groupBy(held.sort(byName), ({ group_id }) => group_id)
  return rows.map(row => ({ ...row, roles: byGroup.get(row.id) ?? [] }))
}

/**
 * Adds to each group the names of its roles. A page of 100 groups may have 10,000 roles, so the permissions
 * are not read.
 */
const withRoleNames = async (q: Queries, rows: Group[]): Promise<ListedGroup[]> => {
  const { group_roles, roles } = q.tables
  const ids = rows.map(({ id }) => id)
  const held = await q
    .select({ group_id: group_roles.group_id, name: roles.name })
    .from(group_roles)
    .innerJoin(roles, eq(roles.id, group_roles.role_id))
    .where(inArray(group_roles.group_id, ids))
  const byGroup = Map.groupBy(held.sort(byName), ({ group_id }) => group_id)
  return rows.map(row => ({ ...row, roles: byGroup.get(row.id) ?? [] }))
}

/**
 * Stores a new group with roles. Rejects with a unique violation when the organization has a group of this
 * name.
 */
export const insertGroup = async (
  tx: Transaction,
  group: Omit<Group, 'member_count'>,
  role_ids: RoleId[],
): Promise<void> => {
  await tx.insert(tx.tables.groups).values(group)
  await addRoles(tx, group.id, role_ids)
}

const addRoles = async (tx: Transaction, group_id: GroupId, role_ids: RoleId[]): Promise<void> => {
  if (role_ids.length > 0)
    await tx.insert(tx.tables.group_roles).values(role_ids.map(role_id => ({ group_id, role_id })))
}

/**
 * Stores the name, the description and `updated_at` of a group. Rejects with a unique violation when the
 * organization has another group of this name.
 */
export const saveGroup = async (
  tx: Transaction,
  { id, name, description, updated_at }: Pick<Group, 'id' | 'name' | 'description' | 'updated_at'>,
): Promise<void> => {
  const { groups } = tx.tables
  await tx.update(groups).set({ name, description, updated_at }).where(eq(groups.id, id))
}

/** Replaces the roles that members of a group inherit. */
export const replaceGroupRoles = async (
  tx: Transaction,
  group_id: GroupId,
  role_ids: RoleId[],
): Promise<void> => {
  const { group_roles } = tx.tables
  await tx.delete(group_roles).where(eq(group_roles.group_id, group_id))
  await addRoles(tx, group_id, role_ids)
}

/** Removes a group. Its memberships are removed later, in batches. */
export const removeGroup = async (tx: Transaction, id: GroupId, now: number): Promise<void> => {
  const { groups } = tx.tables
  await tx.delete(groups).where(eq(groups.id, id))
  await beginPurge(tx, 'group', id, now)
}

/** Adds a member. Returns false when the user is a member already. */
export const addMember = async (tx: Transaction, group_id: GroupId, user_id: UserId): Promise<boolean> => {
  const { group_members } = tx.tables
  const added = await tx
    .insert(group_members)
    .values({ group_id, user_id })
    .onConflictDoNothing()
    .returning({ user_id: group_members.user_id })
  return added.length > 0
}

/** Removes a member. Returns false when the user is not a member. */
export const removeMember = async (tx: Transaction, group_id: GroupId, user_id: UserId): Promise<boolean> => {
  const { group_members } = tx.tables
  const removed = await tx
    .delete(group_members)
    .where(and(eq(group_members.group_id, group_id), eq(group_members.user_id, user_id)))
    .returning({ user_id: group_members.user_id })
  return removed.length > 0
}

/** True when the user is a member of the group. */
export const isMember = async (q: Queries, group_id: GroupId, user_id: UserId): Promise<boolean> => {
  const { group_members: t } = q.tables
  const rows = await q
    .select({ user_id: t.user_id })
    .from(t)
    .where(and(eq(t.group_id, group_id), eq(t.user_id, user_id)))
  return rows.length > 0
}

/**
 * Returns a page of the members of a group, in the order of their ids. The order of generated ids is the
 * order of creation. The keyset of a page is the id of its last member.
 */
export const listMembers = async (
  q: Queries,
  group_id: GroupId,
  { order, after, limit }: Range,
): Promise<UserRow[]> => {
  const { group_members, users } = q.tables
  const { user_id } = group_members
  const rows = await q
    .select({ user: users })
    .from(group_members)
    .innerJoin(users, eq(users.id, user_id))
    .where(
      and(
        eq(group_members.group_id, group_id),
        after && (order === 'asc' ? gt : lt)(user_id, String(after[0]) as UserId),
      ),
    )
    .orderBy((order === 'asc' ? asc : desc)(user_id))
    .limit(limit)
  return rows.map(({ user }) => user)
}

/** Filters of a list of groups. `role` is the name of a role that the groups grant. */
export interface GroupFilter {
  organization_id?: OrganizationId | undefined
  user_id?: string | undefined
  role?: string | undefined
}

const matching = (q: Queries, { organization_id, user_id, role }: GroupFilter): SQL | undefined => {
  const { group_members, group_roles, groups, roles } = q.tables
  const ofUser = () =>
    q
      .select({ id: group_members.group_id })
      .from(group_members)
      .where(eq(group_members.user_id, user_id as UserId))
  const withRole = () =>
    q
      .select({ id: group_roles.group_id })
      .from(group_roles)
      .innerJoin(roles, eq(roles.id, group_roles.role_id))
      .where(and(eq(roles.name, role ?? ''), organization_id && eq(roles.organization_id, organization_id)))
  return and(
    organization_id && eq(groups.organization_id, organization_id),
    user_id === undefined ? undefined : inArray(groups.id, ofUser()),
    role === undefined ? undefined : inArray(groups.id, withRole()),
  )
}

/** Returns the number of matching groups. The result 10,001 means more than 10,000. */
export const countGroups = (q: Queries, filter: GroupFilter): Promise<number> => {
  const { groups } = q.tables
  const found = q.select({ id: groups.id }).from(groups).where(matching(q, filter))
  return countUpTo(q, found, COUNT_LIMIT + 1)
}

/** Returns a page of groups, in the order of creation. */
export const listGroups = async (q: Queries, filter: GroupFilter, range: Range): Promise<ListedGroup[]> => {
  const { groups } = q.tables
  const rows = await q
    .select()
    .from(groups)
    .where(and(matching(q, filter), beyond(range, groups.created_at, groups.id)))
    .orderBy(...byCreation(range.order, groups.created_at, groups.id))
    .limit(range.limit)
  return withRoleNames(q, rows)
}
