import { and, asc, eq, like, or, sql } from 'drizzle-orm'
import type { Config } from '#src/config.ts'
import { beyond, byCreation, type Range } from '#src/directory/store.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import { fold } from '#src/lib/text.ts'
import { cached } from '#src/storage/cache.ts'
import { COUNT_LIMIT, countAll, countUpTo } from '#src/storage/counts.ts'
import { removeOrganizationParts } from '#src/storage/remains.ts'
import { prepared, preparedForStart, type Queries, type Store, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import { settingsOf } from './settings.ts'

export type Organization = Tables['organizations']['$inferSelect']

const { placeholder } = sql

const selectById = prepared((q, { organizations }) =>
  q
    .select()
    .from(organizations)
    .where(eq(organizations.id, placeholder('id'))),
)
const selectBySlug = preparedForStart('organization by slug', (q, { organizations }) =>
  q
    .select()
    .from(organizations)
    .where(eq(organizations.slug, placeholder('slug'))),
)

/** Reads an organization from the database, not from the cache. */
export const readOrganization = async (q: Queries, id: string): Promise<Organization | undefined> =>
  (await selectById(q, { id }))[0]
/** Reads an organization by slug from the database, not from the cache. */
export const readOrganizationBySlug = async (q: Queries, slug: string): Promise<Organization | undefined> =>
  (await selectBySlug(q, { slug }))[0]

/** Returns an organization, cached until a commit changes organizations. Its `user_count` may be outdated. */
export const findOrganization = cached('organizations', readOrganization)
/** Returns an organization by slug, cached until a commit changes organizations. */
export const findOrganizationBySlug = cached('organizations', readOrganizationBySlug)

const selectByDomain = prepared((q, { organizations, login_domains: t }) =>
  q
    .select({ organization: organizations })
    .from(t)
    .innerJoin(organizations, eq(organizations.id, t.organization_id))
    .where(eq(t.domain, placeholder('domain'))),
)

/** Returns the organization that has this login domain. The domain is in canonical form. */
export const findOrganizationByDomain = cached(
  'organizations',
  async (q, domain) => (await selectByDomain(q, { domain }))[0]?.organization,
)

const anyTenant = cached('organizations', async q => (await countAll(q, 'organizations')) > 1)

/** True when an organization other than the default organization exists. */
export const hasTenants = (store: Store): Promise<boolean> => anyTenant(store, '')

/** Maximum number of organizations that a warning names. */
const NAMED = 10
/** Maximum number of values that `readPolicy` compares. */
const MAX_VALUES = 3
const selectPolicy = Array.from({ length: MAX_VALUES }, (_, last) =>
  preparedForStart(`organization with one of ${last + 1} values`, (q, { organizations: t }) => {
    const patterns = Array.from({ length: last + 1 }, (_, i) => like(t.settings, placeholder(`value_${i}`)))
    return q
      .select({ id: t.id })
      .from(t)
      .where(or(...patterns))
      .limit(1)
  }),
)

/**
 * True when a setting has one of the given values in at least one organization. `key` consists of the name of
 * the setting and the values, separated by spaces.
 */
const readPolicy = async (q: Queries, key: string): Promise<boolean> => {
  const [name, ...values] = key.split(' ')
  const patterns = values.map((value, i) => [`value_${i}`, `%"${name}":"${value}"%`])
  const select = selectPolicy[values.length - 1]
  if (!select) throw new Error(`${key}: more than ${MAX_VALUES} values`)
  return (await select(q, Object.fromEntries(patterns))).length > 0
}
const anyPolicy = cached('organizations', readPolicy)

const REGISTRATION = 'client_registration'

/**
 * True when at least one organization allows clients that register themselves. With `policy`, true when at
 * least one organization has this policy.
 */
export const acceptsRegistrations = (store: Store, policy?: 'open'): Promise<boolean> =>
  anyPolicy(store, `${REGISTRATION} ${policy ?? 'open initial_access_token'}`)

/**
 * The kinds of dynamic clients that at least one organization allows. `registers`: clients that register
 * themselves. `documents`: clients with a metadata document.
 */
export interface AcceptedClients {
  registers: boolean
  documents: boolean
}

/**
 * Returns the kinds of dynamic clients that at least one organization allows. Callers pass '' as the cache
 * key.
 */
export const acceptedClients = cached(
  'organizations',
  async (q): Promise<AcceptedClients> => ({
    registers: await readPolicy(q, `${REGISTRATION} open initial_access_token`),
    documents: await readPolicy(q, 'client_metadata_documents allowlist any'),
  }),
)

/** True when at least one organization lets people register themselves. */
export const offersRegistration = (store: Store): Promise<boolean> =>
  anyPolicy(store, 'registration open domains approval')

/** True when at least one organization lets people sign in with a code by mail. */
export const offersEmailCodes = (store: Store): Promise<boolean> => anyPolicy(store, 'email_code users all')

/** Returns the themes that organizations have chosen, sorted. */
export const usedThemes = async (q: Queries): Promise<string[]> => {
  const { settings } = q.tables.organizations
  const rows = await q.select({ settings }).from(q.tables.organizations)
  return [...new Set(rows.flatMap(row => settingsOf(row).theme ?? []))].sort()
}

/**
 * Returns a warning that names organizations whose users cannot sign in: they require passkeys, but browsers
 * offer none at the URL of the server. The URL has changed since the organizations made the setting.
 */
export const lockedOut = async (config: Pick<Config, 'url'>, store: Store): Promise<string | undefined> => {
  if (offersPasskeys(config)) return undefined
  const rows = await store.read(async q => {
    const { settings, slug } = q.tables.organizations
    return q.select({ settings, slug }).from(q.tables.organizations).orderBy(asc(slug))
  })
  const slugs = rows.flatMap(row => {
    const { passkey_required, console_acr } = settingsOf(row)
    return passkey_required ? [row.slug] : console_acr === 'phr' ? [`${row.slug} (console)`] : []
  })
  return slugs.length === 0
    ? undefined
    : `nobody can sign in to ${slugs.slice(0, NAMED).join(', ')}: passkeys are required, and browsers offer none at ${config.url}: set url to an https address with a host name, or end passkey_required and console_acr by the admin API`
}

/** Adds `search_text`, the column that searches compare. */
const searchable = <T extends Pick<Organization, 'name' | 'slug' | 'display_name'>>(organization: T) => ({
  ...organization,
  search_text: fold([organization.name, organization.slug, organization.display_name].join('\n')),
})

export type NewOrganization = Omit<Organization, 'user_count' | 'search_text'>

/** Stores a new organization. Rejects with a unique violation when the slug is taken. */
export const insertOrganization = async (tx: Transaction, organization: NewOrganization): Promise<void> => {
  await tx.insert(tx.tables.organizations).values(searchable(organization))
  tx.changed('organizations')
}

/** Stores the columns of an organization. Rejects with a unique violation when the slug is taken. */
export const saveOrganization = async (tx: Transaction, organization: Organization): Promise<void> => {
  const { organizations } = tx.tables
  const { id, user_count: _, ...columns } = searchable(organization)
  await tx.update(organizations).set(columns).where(eq(organizations.id, id))
  tx.changed('organizations')
}

/**
 * Replaces the login domains of an organization. Rejects with a unique violation when a domain belongs to
 * another organization.
 */
export const replaceLoginDomains = async (
  tx: Transaction,
  organization_id: OrganizationId,
  domains: readonly string[],
): Promise<void> => {
  const { login_domains: t } = tx.tables
  await tx.delete(t).where(eq(t.organization_id, organization_id))
  if (domains.length > 0) await tx.insert(t).values(domains.map(domain => ({ domain, organization_id })))
  tx.changed('organizations')
}

/**
 * Removes an organization and its rows in small tables. Rows in large tables are removed later, in batches.
 */
export const removeOrganization = async (
  tx: Transaction,
  organization: Pick<Organization, 'id' | 'slug'>,
  now: number,
): Promise<void> => {
  const { organizations } = tx.tables
  await tx.delete(organizations).where(eq(organizations.id, organization.id))
  tx.changed('organizations')
  await removeOrganizationParts(tx, organization, now)
}

const contains = ({ organizations }: Tables, search: string | undefined) =>
  search
    ? sql`${organizations.search_text} LIKE ${`%${fold(search).replace(/[%_\\]/g, '\\$&')}%`} ESCAPE '\\'`
    : undefined

/**
 * Returns a page of organizations whose name, slug or display name contains `search`, in the order of
 * creation.
 */
export const listOrganizations = (q: Queries, search: string | undefined, range: Range) => {
  const { organizations } = q.tables
  const { created_at, id } = organizations
  return q
    .select()
    .from(organizations)
    .where(and(contains(q.tables, search), beyond(range, created_at, id)))
    .orderBy(...byCreation(range.order, created_at, id))
    .limit(range.limit)
}

/** Counts the organizations that match `search`. The result 10,001 means more than 10,000. */
export const countOrganizations = (q: Queries, search: string): Promise<number> => {
  const { organizations } = q.tables
  const found = q.select({ id: organizations.id }).from(organizations).where(contains(q.tables, search))
  return countUpTo(q, found, COUNT_LIMIT + 1)
}
