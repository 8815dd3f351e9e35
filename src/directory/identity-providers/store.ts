import { and, eq, exists, inArray, or, sql } from 'drizzle-orm'
import { beyond, byCreation, isWithin, type Range } from '#src/directory/store.ts'
import type { IdentityProviderId, OrganizationId, RoleId } from '#src/lib/ids.ts'
import { byName } from '#src/lib/text.ts'
import { cached } from '#src/storage/cache.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import { beginPurge } from '#src/storage/purges.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import type { IdentityProvider, ProviderWithRoles, ShownProvider } from './types.ts'

const { placeholder } = sql

const select = prepared((q, { identity_providers: t }) =>
  q
    .select()
    .from(t)
    .where(
      and(or(eq(t.id, placeholder('ref')), eq(t.alias, placeholder('ref'))), isWithin(t.organization_id)),
    ),
)

/**
 * Reads a provider by id or alias. With `within`, the provider must belong to that organization. An alias has
 * no underscore, so it never equals an id.
 */
export const readProvider = async (
  q: Queries,
  ref: string,
  within?: OrganizationId,
): Promise<IdentityProvider | undefined> =>
  (await select(q, { ref, within: within ?? null }))[0] as IdentityProvider | undefined

/**
 * Returns a provider by id or alias, even if it is disabled. Cached until a commit changes identity
 * providers.
 */
export const findProvider = cached('identity_providers', (q, ref) => readProvider(q, ref))

/** Returns the columns of `ShownProvider`. */
export const shownColumns = ({ engine, tables: { identity_providers: t } }: Queries) => ({
  id: t.id,
  alias: t.alias,
  name: t.name,
  type: t.type,
  settings: (engine === 'postgres'
    ? sql`(${t.settings}::jsonb - 'certificates')::text`
    : sql`json_remove(${t.settings}, '$.certificates')`
  ).mapWith(value => t.settings.mapFromDriverValue(value) as object),
})

const selectEnabled = prepared((q, { identity_providers: t }) =>
  q
    .select(shownColumns(q))
    .from(t)
    .where(and(eq(t.organization_id, placeholder('organization_id')), eq(t.enabled, true)))
    .orderBy(t.name, t.id),
)

/**
 * Returns the providers through which users of the organization may sign in, sorted by name. Providers of
 * other organizations are not read, because many or large providers would delay the login page.
 */
export const findEnabledProviders = cached(
  'identity_providers',
  (q, organization_id): Promise<ShownProvider[]> => selectEnabled(q, { organization_id }),
)

/** Adds to each provider its default roles. Ids of deleted roles are ignored. */
export const withRoles = async (q: Queries, providers: IdentityProvider[]): Promise<ProviderWithRoles[]> => {
  const { roles } = q.tables
  const ids = [...new Set(providers.flatMap(provider => provider.default_role_ids))]
  const found =
    ids.length > 0
      ? await q
          .select({ id: roles.id, name: roles.name, permissions: roles.permissions })
          .from(roles)
          .where(inArray(roles.id, ids))
      : []
  return providers.map(provider => ({
    ...provider,
    roles: found.filter(({ id }) => provider.default_role_ids.includes(id)).sort(byName),
  }))
}

/** Stores a new provider. Rejects with a unique violation when the alias is taken. */
export const insertProvider = async (tx: Transaction, provider: IdentityProvider): Promise<void> => {
  await tx.insert(tx.tables.identity_providers).values(provider)
  tx.changed('identity_providers')
}

/** Stores the columns of a provider. Rejects with a unique violation when the alias is taken. */
export const saveProvider = async (tx: Transaction, { id, ...columns }: IdentityProvider): Promise<void> => {
  const { identity_providers: t } = tx.tables
  await tx.update(t).set(columns).where(eq(t.id, id))
  tx.changed('identity_providers')
}

/** Removes a provider. Its linked accounts are removed later, in batches. */
export const removeProvider = async (tx: Transaction, id: IdentityProviderId, now: number): Promise<void> => {
  const { identity_providers: t } = tx.tables
  await tx.delete(t).where(eq(t.id, id))
  await beginPurge(tx, 'identity_provider', id, now)
  tx.changed('identity_providers')
}

/** Maximum number of roles in one statement. PostgreSQL allows 65,535 parameters. */
const ROLES = 1_000

/**
 * Returns the roles in `role_ids` that users with an account at the provider have, directly or through
 * groups.
 */
export const rolesReached = async (
  q: Queries,
  id: IdentityProviderId,
  role_ids: RoleId[],
): Promise<RoleId[]> => {
  const { external_accounts: t, group_members, group_roles, roles, user_roles } = q.tables
  // SQLite reads the tables of a CROSS JOIN in the given order. With an INNER JOIN, SQLite would first read
  // all accounts of the provider, although few of these users have permissions that the caller lacks.
  const direct = q
    .select({ one: sql`1` })
    .from(user_roles)
    .crossJoin(t)
    .where(and(eq(user_roles.role_id, roles.id), eq(t.user_id, user_roles.user_id), eq(t.provider_id, id)))
  const inherited = q
    .select({ one: sql`1` })
    .from(group_roles)
    .crossJoin(group_members)
    .crossJoin(t)
    .where(
      and(
        eq(group_roles.role_id, roles.id),
        eq(group_members.group_id, group_roles.group_id),
        eq(t.user_id, group_members.user_id),
        eq(t.provider_id, id),
      ),
    )
  const reached: RoleId[] = []
  for (let start = 0; start < role_ids.length; start += ROLES) {
    const some = inArray(roles.id, role_ids.slice(start, start + ROLES))
    const rows = await q
      .select({ id: roles.id })
      .from(roles)
      .where(and(some, or(exists(direct), exists(inherited))))
    reached.push(...rows.map(row => row.id))
  }
  return reached
}

/** Returns the roles of an organization. */
export const rolesOf = (q: Queries, organization_id: OrganizationId) => {
  const { roles } = q.tables
  return q
    .select({ id: roles.id, permissions: roles.permissions })
    .from(roles)
    .where(eq(roles.organization_id, organization_id))
}

/** Filters of the list. An absent filter matches all providers. */
export interface ProviderFilter {
  organization_id: OrganizationId | undefined
  type?: IdentityProvider['type'] | undefined
}

const matching = ({ identity_providers: t }: Tables, { organization_id, type }: ProviderFilter) =>
  and(organization_id && eq(t.organization_id, organization_id), type && eq(t.type, type))

/** Returns a page of identity providers, in the order of creation. */
export const listProviders = async (
  q: Queries,
  filter: ProviderFilter,
  range: Range,
): Promise<ProviderWithRoles[]> => {
  const { identity_providers: t } = q.tables
  const rows = await q
    .select()
    .from(t)
    .where(and(matching(q.tables, filter), beyond(range, t.created_at, t.id)))
    .orderBy(...byCreation(range.order, t.created_at, t.id))
    .limit(range.limit)
  return withRoles(q, rows as IdentityProvider[])
}

/** Counts the identity providers of the list. The result 10,001 means more than 10,000. */
export const countProviders = (q: Queries, filter: ProviderFilter): Promise<number> => {
  const { identity_providers: t } = q.tables
  const found = q.select({ id: t.id }).from(t).where(matching(q.tables, filter))
  return countUpTo(q, found, COUNT_LIMIT + 1)
}
