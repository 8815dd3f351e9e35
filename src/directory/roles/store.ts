import { and, eq, sql } from 'drizzle-orm'
import { comparedCount, comparedPage, isWithin, type Range } from '#src/directory/store.ts'
import { DEFAULT_ORGANIZATION, newId, type OrganizationId, type RoleId } from '#src/lib/ids.ts'
import { beginPurge } from '#src/storage/purges.ts'
import { containsText } from '#src/storage/search.ts'
import { prepared, preparedForStart, type Queries, type Store, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Role = Tables['roles']['$inferSelect']

const { placeholder } = sql

const select = prepared((q, { roles }) =>
  q
    .select()
    .from(roles)
    .where(and(eq(roles.id, placeholder('id')), isWithin(roles.organization_id))),
)

/** Returns a role by id. With `within`, the role must belong to that organization. */
export const findRole = async (q: Queries, id: string, within?: OrganizationId): Promise<Role | undefined> =>
  (await select(q, { id, within: within ?? null }))[0]

const ADMIN: RoleId = 'role_admin'

const selectAdmins = preparedForStart('administrators', (q, { user_roles }) =>
  q.select({ id: user_roles.user_id }).from(user_roles).where(eq(user_roles.role_id, ADMIN)).limit(2),
)
const selectAdminsOfGroups = preparedForStart(
  'administrators of groups',
  (q, { group_members, group_roles }) =>
    q
      .selectDistinct({ id: group_members.user_id })
      .from(group_roles)
      .innerJoin(group_members, eq(group_members.group_id, group_roles.group_id))
      .where(eq(group_roles.role_id, ADMIN))
      .limit(2),
)

/**
 * Counts the users who hold the role `admin` of the default organization, directly or through a group. The
 * result is at most 2.
 */
export const countAdmins = async (q: Queries): Promise<number> => {
  const [direct, inherited] = await Promise.all([selectAdmins(q, {}), selectAdminsOfGroups(q, {})])
  return Math.min(new Set([...direct, ...inherited].map(({ id }) => id)).size, 2)
}

/**
 * True when an enabled user has the role `admin` of the organization, directly or through a group. A disabled
 * user does not count, because that user cannot sign in.
 */
export const hasAdmin = async (q: Queries, organization_id: OrganizationId): Promise<boolean> => {
  const { group_members, group_roles, roles, user_roles, users } = q.tables
  const isAdmin = and(eq(roles.organization_id, organization_id), eq(roles.name, 'admin'))
  const direct = await q
    .select({ id: user_roles.user_id })
    .from(roles)
    .innerJoin(user_roles, and(eq(user_roles.role_id, roles.id), eq(user_roles.enabled, true)))
    .where(isAdmin)
    .limit(1)
  if (direct.length > 0) return true
  const inherited = await q
    .select({ id: users.id })
    .from(roles)
    .innerJoin(group_roles, eq(group_roles.role_id, roles.id))
    .innerJoin(group_members, eq(group_members.group_id, group_roles.group_id))
    .innerJoin(users, and(eq(users.id, group_members.user_id), eq(users.enabled, true)))
    .where(isAdmin)
    .limit(1)
  return inherited.length > 0
}

/** Stores a new role. Rejects with a unique violation when the organization has a role of this name. */
export const insertRole = async (tx: Transaction, role: Omit<Role, 'user_count'>): Promise<void> => {
  await tx.insert(tx.tables.roles).values(role)
  tx.changed('roles')
}

/** Stores the roles that every organization has. */
export const insertBuiltInRoles = async (
  tx: Transaction,
  organization_id: OrganizationId,
  now: number,
): Promise<void> => {
  const isDefault = organization_id === DEFAULT_ORGANIZATION
  const common = { organization_id, built_in: true, created_at: now, updated_at: now }
  await insertRole(tx, {
    ...common,
    id: isDefault ? 'role_admin' : newId('role', now),
    name: 'admin',
    description: 'Full access.',
    permissions: ['*'],
  })
  await insertRole(tx, {
    ...common,
    id: isDefault ? 'role_user' : newId('role', now),
    name: 'user',
    description: 'Reads and updates their own profile.',
    permissions: ['profile:read', 'profile:update'],
  })
}

/** Stores the description and permissions of a role. */
export const saveRole = async (
  tx: Transaction,
  { id, description, permissions, updated_at }: Role,
): Promise<void> => {
  const { roles } = tx.tables
  await tx.update(roles).set({ description, permissions, updated_at }).where(eq(roles.id, id))
  tx.changed('roles')
}

/**
 * Removes a role and its assignments to groups. Its assignments to users have no effect any more, and are
 * removed later in batches.
 */
export const removeRole = async (tx: Transaction, id: RoleId, now: number): Promise<void> => {
  const { roles } = tx.tables
  await tx.delete(roles).where(eq(roles.id, id))
  await beginPurge(tx, 'role', id, now)
  tx.changed('roles')
  tx.changed('users')
}

/** Filters of the list of roles. */
export interface RoleFilter {
  organization_id: OrganizationId | undefined
  /** Part of the name. */
  search?: string | undefined
}

const compared =
  ({ organization_id, search }: RoleFilter) =>
  (q: Queries) => {
    const { roles: t } = q.tables
    const found = organization_id && eq(t.organization_id, organization_id)
    const matching = search ? containsText(q, t.name, search) : undefined
    return { created_at: t.created_at, id: t.id, found, matching }
  }

/** Returns a page of roles, in the order of creation. */
export const listRoles = (store: Store, filter: RoleFilter, range: Range): Promise<Role[]> =>
  comparedPage(store, compared(filter), range, (q, where, order, limit) =>
    q
      .select()
      .from(q.tables.roles)
      .where(where)
      .orderBy(...order)
      .limit(limit),
  )

/** Counts the roles that match a filter. The result 10,001 means more than 10,000. */
export const countRoles = (store: Store, filter: RoleFilter): Promise<number> =>
  comparedCount(store, compared(filter), (q, where) => {
    const { roles: t } = q.tables
    return q.select({ name: t.name }).from(t).where(where)
  })
