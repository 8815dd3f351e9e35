import { and, asc, eq, sql } from 'drizzle-orm'
import type { Api } from '#src/directory/apis/store.ts'
import type { Client } from '#src/directory/clients/store.ts'
import { findGroup, type Group, type GroupWithRoles } from '#src/directory/groups/store.ts'
import { withRoles } from '#src/directory/identity-providers/store.ts'
import type { IdentityProvider, ProviderWithRoles } from '#src/directory/identity-providers/types.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import type { Role } from '#src/directory/roles/store.ts'
import { roleNamesOf, type UserWithRoles } from '#src/directory/users/store.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import type { GroupId, OrganizationId } from '#src/lib/ids.ts'
import { notPurged } from '#src/storage/purges.ts'
import { prepared, type Queries } from '#src/storage/store.ts'
import type { Webhook } from '#src/webhooks/store.ts'

const { placeholder } = sql

const roleNamed = prepared((q, { roles: t }) =>
  q
    .select()
    .from(t)
    .where(and(eq(t.organization_id, placeholder('organization_id')), eq(t.name, placeholder('name')))),
)

/** Returns the role with this name in the organization. */
export const findRoleNamed = async (
  q: Queries,
  organization_id: OrganizationId,
  name: string,
): Promise<Role | undefined> => (await roleNamed(q, { organization_id, name }))[0]

const userNamed = prepared((q, { users: t }) =>
  q
    .select()
    .from(t)
    .where(
      and(eq(t.organization_id, placeholder('organization_id')), eq(t.username_fold, placeholder('name'))),
    ),
)

/** Returns the user with this name in the organization. */
export const findUserNamed = async (q: Queries, organization_id: OrganizationId, username: string) =>
  (await userNamed(q, { organization_id, name: foldIdentifier(username) }))[0]

/** Returns the group with this name in the organization. */
export const findGroupNamed = async (
  q: Queries,
  organization_id: OrganizationId,
  name: string,
): Promise<GroupWithRoles | undefined> => {
  const { groups: t } = q.tables
  const [row] = await q
    .select({ id: t.id })
    .from(t)
    .where(and(eq(t.organization_id, organization_id), eq(t.name, name)))
  return row && findGroup(q, row.id)
}

/** Lists the members of a group in the order of their names. */
export const membersOf = (q: Queries, group_id: GroupId) => {
  const { group_members: m, users: u } = q.tables
  return q
    .select({ id: u.id, username: u.username })
    .from(m)
    .innerJoin(u, eq(u.id, m.user_id))
    .where(eq(m.group_id, group_id))
    .orderBy(asc(u.username_fold))
}

/** Returns all organizations in the order of their creation. */
export const allOrganizations = (q: Queries): Promise<Organization[]> => {
  const { organizations: t } = q.tables
  return q.select().from(t).orderBy(t.created_at, t.id)
}

/**
 * Lists all roles except the built-in roles. Every organization has the built-in roles, and they never
 * change. An export therefore does not name them, and `--prune` must not delete them.
 */
export const allRoles = (q: Queries): Promise<Role[]> => {
  const { roles: t } = q.tables
  return q.select().from(t).where(eq(t.built_in, false)).orderBy(t.created_at, t.id)
}

/**
 * Returns all users with the names of their roles, in the order of their creation. No statement has a list of
 * user ids, because a statement of PostgreSQL has at most 65,535 parameters.
 */
export const allUsers = async (q: Queries): Promise<UserWithRoles[]> => {
  const { users: t } = q.tables
  const users = await q.select().from(t).where(notPurged(q, t.organization_id)).orderBy(t.seq)
  return roleNamesOf(q, users, true)
}

/** Returns all groups in the order of their creation. */
export const allGroups = (q: Queries): Promise<Group[]> => {
  const { groups: t } = q.tables
  return q.select().from(t).orderBy(t.created_at, t.id)
}

/** Lists the names of the roles of all groups. */
export const rolesOfGroups = (q: Queries) => {
  const { group_roles: g, roles: r } = q.tables
  return q
    .select({ group_id: g.group_id, name: r.name })
    .from(g)
    .innerJoin(r, eq(r.id, g.role_id))
    .orderBy(r.name)
}

/** Returns all clients except dynamic clients, in the order of their ids, which each instance has. */
export const allClients = (q: Queries): Promise<Client[]> => {
  const { clients: t } = q.tables
  return q.select().from(t).orderBy(t.client_id)
}

/** Returns all identity providers with their default roles, in the order of their creation. */
export const allProviders = async (q: Queries): Promise<ProviderWithRoles[]> => {
  const { identity_providers: t } = q.tables
  return withRoles(q, (await q.select().from(t).orderBy(t.created_at, t.id)) as IdentityProvider[])
}

/** Returns all APIs in the order of their creation. */
export const allApis = (q: Queries): Promise<Api[]> => {
  const { apis: t } = q.tables
  return q.select().from(t).orderBy(t.created_at, t.id)
}

/** Returns all webhooks in the order of their creation. */
export const allWebhooks = (q: Queries): Promise<Webhook[]> => {
  const { webhooks: t } = q.tables
  return q.select().from(t).orderBy(t.created_at, t.id)
}
