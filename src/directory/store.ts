import { and, asc, type Column, desc, eq, inArray, type SQL, sql } from 'drizzle-orm'
import { COUNT_LIMIT } from '#src/http/count-limit.ts'
import { valueTaken } from '#src/lib/app-error.ts'
import type { Keyset } from '#src/lib/cursor.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import { isUniqueViolation } from '#src/storage/errors.ts'
import { prepared, type Queries } from '#src/storage/store.ts'

const { placeholder } = sql

const selectRoles = prepared((q, { group_members, group_roles, roles, user_roles }) => {
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
})

/** Returns the roles that a user holds directly or inherits from groups, by name. */
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

/**
 * A user needs one of these roles or groups to use the client. If both lists are empty, every user may use
 * it.
 */
interface Admission {
  allowed_roles: readonly string[]
  allowed_groups: readonly string[]
}

const admitsAll = ({ allowed_roles, allowed_groups }: Admission): boolean =>
  allowed_roles.length === 0 && allowed_groups.length === 0

/** True when the client admits the user. It reads nothing for a client that admits everyone. */
export const isAdmitted = async (q: Queries, client: Admission, user_id: UserId): Promise<boolean> =>
  (await admitting(q, [client], user_id)).length > 0

/** Returns the clients that admit the user. */
export const admitting = async <Client extends Admission>(
  q: Queries,
  clients: readonly Client[],
  user_id: UserId,
): Promise<readonly Client[]> => {
  if (clients.every(admitsAll)) return clients
  const roles = (await effectiveRoles(q, user_id)).map(({ name }) => name)
  const groups = await groupNames(q, user_id)
  return clients.filter(
    client =>
      admitsAll(client) ||
      client.allowed_roles.some(name => roles.includes(name)) ||
      client.allowed_groups.some(name => groups.includes(name)),
  )
}

const selectOrganization = prepared((q, { organizations }) =>
  q
    .select({ id: organizations.id, slug: organizations.slug })
    .from(organizations)
    .where(eq(organizations.id, placeholder('id'))),
)

/** Returns id and slug of an organization, if it exists. */
export const findIdentity = async (
  q: Queries,
  id: OrganizationId,
): Promise<{ id: OrganizationId; slug: string } | undefined> => (await selectOrganization(q, { id }))[0]

/**
 * Condition of a prepared statement: the row belongs to the organization in the parameter `within`; null
 * allows any.
 */
export const isWithin = (organization_id: Column): SQL =>
  sql`${organization_id} = coalesce(${placeholder('within')}, ${organization_id})`

export type Order = 'asc' | 'desc'

/** A page of a list, ordered by creation, then by id. */
export interface Range {
  order: Order
  after: Keyset | undefined
  limit: number
}

/** Order terms of a list: by creation, then by id. */
export const byCreation = (order: Order, created_at: Column, id: Column): SQL[] =>
  [created_at, id].map(order === 'asc' ? asc : desc)

/** Condition: the row comes after the keyset of `byCreation`. */
export const beyond = ({ order, after }: Range, created_at: Column, id: Column): SQL | undefined =>
  after && sql`(${created_at}, ${id}) ${sql.raw(order === 'asc' ? '>' : '<')} (${after[0]}, ${after[1]})`

type Counted = 'organizations' | 'roles' | 'groups' | 'clients'

/**
 * Returns the number of rows of a kind, in one organization or in all, from counters. With `filtered` it is
 * exact up to 10,000, like every filtered total.
 */
export const countAll = async (
  q: Queries,
  kind: Counted,
  organization_id?: OrganizationId,
  filtered = false,
): Promise<number> => {
  const { counters } = q.tables
  const [row] = await q
    .select({ total: sql<number>`coalesce(sum(${counters.total}), 0)` })
    .from(counters)
    .where(and(eq(counters.kind, kind), organization_id && eq(counters.organization_id, organization_id)))
  const total = Number(row?.total)
  return filtered ? Math.min(total, COUNT_LIMIT + 1) : total
}

/** Handler for `.catch` of a write: turns a unique violation of the field into 409. */
export const whenTaken =
  (field: string, message: string) =>
  (error: unknown): never => {
    throw isUniqueViolation(error) ? valueTaken(field, message) : error
  }
