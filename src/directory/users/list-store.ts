/**
 * Pages of users. A list is read in its order from an index, never sorted: one range for each pair of `enabled` and
 * `email_verified` that fits, merged. So a page costs the same whatever the filter, the sort and the number of users. What
 * no index has in order (a search; a role by its name in more than a few organizations) is fetched and sorted while few fit,
 * and met by walking the list when many do.
 */
import { and, asc, desc, eq, gt, gte, inArray, isNull, lt, type SQL, sql } from 'drizzle-orm'
import { COUNT_LIMIT } from '#src/http/list.ts'
import type { Keyset } from '#src/lib/cursor.ts'
import type { OrganizationId, RoleId } from '#src/lib/ids.ts'
import { cached } from '#src/storage/cache.ts'
import { notPurged } from '#src/storage/purges.ts'
import { containsTerm, foundBySearch, foundInOrder, isIndexedTerm } from '#src/storage/search.ts'
import type { Queries, Store } from '#src/storage/store.ts'
import type { UserRow } from './store.ts'

export interface UserFilter {
  organization_id?: OrganizationId | undefined
  enabled?: boolean | undefined
  email_verified?: boolean | undefined
  role?: string | undefined
  search?: string | undefined
}

export interface UserOrder {
  sort: 'created_at' | 'username' | 'email' | 'last_login'
  order: 'asc' | 'desc'
}

/** What the indexes have in order. */
interface Facets {
  organization_id?: OrganizationId | undefined
  enabled?: boolean | undefined
  email_verified?: boolean | undefined
  /** Holders of one of these roles, all of one name. */
  role_ids?: RoleId[] | undefined
}

/** So many ranges can be merged cheaply, and so many rows looked through. */
const FEW_ROLES = 8
const FEW_USERS = 1000

const tableOf = ({ tables }: Queries, facets: Facets) => (facets.role_ids ? tables.user_roles : tables.users)
type Listed = ReturnType<typeof tableOf>

/** The keyset of a row: users are numbered in the order of their creation. */
export const keysetOf =
  ({ sort }: UserOrder) =>
  (user: UserRow): Keyset =>
    sort === 'created_at' ? [user.seq] : [user[columns[sort]], user.seq]

const columns = { username: 'username_fold', email: 'email_fold', last_login: 'last_login' } as const

const sorting = (table: Listed, { sort, order }: UserOrder): SQL[] => {
  const direction = order === 'asc' ? asc : desc
  return sort === 'created_at'
    ? [direction(table.seq)]
    : [direction(table[columns[sort]]), direction(table.seq)]
}

/** What comes after the keyset, as one or two ranges of an index: users who never logged in come last in either order. */
const sections = (
  table: Listed,
  { sort, order }: UserOrder,
  after: Keyset | undefined,
): (SQL | undefined)[] => {
  const beyond = order === 'asc' ? gt : lt
  const [first, second] = after ?? []
  if (sort === 'created_at') return [after && beyond(table.seq, first as number)]
  const column = table[columns[sort]]
  const next = after && beyond(sql`(${column}, ${table.seq})`, sql`(${first}, ${second})`)
  if (sort !== 'last_login') return [next]
  const never = isNull(column)
  return first === null
    ? [and(never, beyond(table.seq, second as number))]
    : [and(gte(column, 0), next), never]
}

const either = (value: boolean | undefined): boolean[] => (value === undefined ? [true, false] : [value])

/** The ranges of an index that hold the users with these facets. */
const ranges = (q: Queries, facets: Facets): (SQL | undefined)[] => {
  const table = tableOf(q, facets)
  const { user_roles, users } = q.tables
  const owners = facets.role_ids?.map(id => eq(user_roles.role_id, id)) ?? [
    and(
      facets.organization_id && eq(users.organization_id, facets.organization_id),
      notPurged(q, users.organization_id),
    ),
  ]
  return owners.flatMap(owner =>
    either(facets.enabled).flatMap(enabled =>
      either(facets.email_verified).map(verified =>
        and(owner, eq(table.enabled, enabled), eq(table.email_verified, verified)),
      ),
    ),
  )
}

/** The same as a condition upon a row of users. */
const fits = (q: Queries, facets: Facets): SQL | undefined => {
  const { user_roles, users } = q.tables
  return and(
    facets.organization_id && eq(users.organization_id, facets.organization_id),
    notPurged(q, users.organization_id),
    facets.enabled === undefined ? undefined : eq(users.enabled, facets.enabled),
    facets.email_verified === undefined ? undefined : eq(users.email_verified, facets.email_verified),
    facets.role_ids &&
      sql`EXISTS (SELECT 1 FROM ${user_roles} WHERE ${user_roles.user_id} = ${users.id} AND ${inArray(user_roles.role_id, facets.role_ids)})`,
  )
}

/** A condition upon users for walking a list, whichever table it is read from. */
const upon = (q: Queries, facets: Facets, condition: SQL | undefined): SQL | undefined => {
  const { user_roles, users } = q.tables
  return condition && facets.role_ids
    ? sql`EXISTS (SELECT 1 FROM ${users} WHERE ${users.seq} = ${user_roles.seq} AND ${condition})`
    : condition
}

type Page = UserOrder & { after: Keyset | undefined; limit: number }
type Numbers = { getSQL(): SQL }

/** Reads lists in order until the page is full; `condition` leaves out rows on the way. */
const walk = (q: Queries, facets: Facets, page: Page, condition?: SQL): Numbers[] => {
  const table = tableOf(q, facets)
  return ranges(q, facets).flatMap(range =>
    sections(table, page, page.after).map(section =>
      q
        .select({ seq: table.seq })
        .from(table)
        .where(and(range, section, upon(q, facets, condition)))
        .orderBy(...sorting(table, page))
        .limit(page.limit),
    ),
  )
}

/** Fetches all that `found` names and sorts them. */
const collect = (q: Queries, facets: Facets, page: Page, found: SQL): Numbers[] => {
  const { users } = q.tables
  return sections(users, page, page.after).map(section =>
    q
      .select({ seq: users.seq })
      .from(users)
      .where(and(found, fits(q, facets), section))
      .orderBy(...sorting(users, page))
      .limit(page.limit),
  )
}

const fetchUsers = (q: Queries, page: Page, found: Numbers[]): Promise<UserRow[]> => {
  const { users } = q.tables
  const numbers = sql.join(
    found.map(numbers => sql`SELECT seq FROM ${numbers}`),
    sql` UNION ALL `,
  )
  const last = page.sort === 'last_login' ? [sql`${users.last_login} IS NULL`] : []
  return q
    .select()
    .from(users)
    .where(sql`${users.seq} IN (${numbers})`)
    .orderBy(...last, ...sorting(users, page))
    .limit(page.limit)
}

/** A filter with its role looked up. What it says is the key under which its total is kept. */
interface Plan {
  facets: Facets
  search?: string | undefined
  /** A role that more organizations have than ranges can be merged. */
  role?: { name: string; holders: number } | undefined
}

/** Undefined: nobody can fit, since no organization has the role. */
const planOf = async (q: Queries, { role, search, ...facets }: UserFilter): Promise<Plan | undefined> => {
  if (role === undefined) return { facets, search: search || undefined }
  const { roles } = q.tables
  const named = await q
    .select({ id: roles.id, user_count: roles.user_count })
    .from(roles)
    .where(
      and(
        eq(roles.name, role),
        facets.organization_id && eq(roles.organization_id, facets.organization_id),
        notPurged(q, roles.organization_id),
      ),
    )
  if (named.length === 0) return undefined
  return named.length <= FEW_ROLES
    ? { facets: { ...facets, role_ids: named.map(({ id }) => id) }, search: search || undefined }
    : {
        facets,
        search: search || undefined,
        role: { name: role, holders: named.reduce((sum, { user_count }) => sum + user_count, 0) },
      }
}

/** A condition that no index has in order: `found` names the users who meet it, `met` looks at one. */
interface Condition {
  found: SQL
  met: SQL
}

const holding = (q: Queries, name: string): Condition => {
  const { roles, user_roles, users } = q.tables
  const ids = q.select({ id: roles.id }).from(roles).where(eq(roles.name, name))
  const holders = sql`FROM ${user_roles} WHERE ${user_roles.role_id} IN ${ids}`
  return {
    found: sql`${users.seq} IN (SELECT ${user_roles.seq} ${holders})`,
    met: sql`EXISTS (SELECT 1 ${holders} AND ${user_roles.user_id} = ${users.id})`,
  }
}

const searching = (q: Queries, { facets: { organization_id }, search }: Plan): Condition | undefined =>
  search === undefined
    ? undefined
    : {
        found: foundBySearch(q, { term: search, organization_id }),
        met: containsTerm(q, { term: search }),
      }

const allMet = (q: Queries, plan: Plan): SQL | undefined =>
  and(searching(q, plan)?.met, plan.role && holding(q, plan.role.name).met)

const countFacets = async (q: Queries, facets: Facets, met?: SQL): Promise<number> => {
  const table = tableOf(q, facets)
  let total = 0
  for (const range of ranges(q, facets)) {
    if (total > COUNT_LIMIT) break
    total += await q.$count(
      q
        .select({ seq: table.seq })
        .from(table)
        .where(and(range, upon(q, facets, met)))
        .limit(COUNT_LIMIT + 1 - total),
    )
  }
  return total
}

const count = async (q: Queries, plan: Plan): Promise<number> => {
  const met = allMet(q, plan)
  const base = await countFacets(q, plan.facets)
  if (!met) return base
  if (base <= COUNT_LIMIT) return countFacets(q, plan.facets, met)
  const { users } = q.tables
  const found = searching(q, plan)?.found ?? (plan.role && holding(q, plan.role.name).found)
  return q.$count(
    q
      .select({ seq: users.seq })
      .from(users)
      .where(and(found, met, fits(q, plan.facets)))
      .limit(COUNT_LIMIT + 1),
  )
}

/** Exact to 10,000, then 10,001; kept until users change. */
const counted = cached('users', (q, plan) => count(q, JSON.parse(plan)))
const totalOf = (store: Store, plan: Plan): Promise<number> => counted(store, JSON.stringify(plan))

/** How to find the users of a page: see the head of this file. */
const find = async (store: Store, plan: Plan, page: Page): Promise<(q: Queries) => Numbers[]> => {
  const { facets, search, role } = plan
  const walking = (q: Queries) => walk(q, facets, page, allMet(q, plan))
  if (search === undefined && !role) return walking
  const base = await totalOf(store, { facets })
  if (base <= FEW_USERS) return walking
  const scope = { organization_id: facets.organization_id }
  const found =
    search === undefined ? Number.POSITIVE_INFINITY : await totalOf(store, { facets: scope, search })
  const holders = role?.holders ?? Number.POSITIVE_INFINITY
  if (Math.min(found, holders) <= COUNT_LIMIT)
    return q => {
      const rarest = found <= holders ? searching(q, plan) : role && holding(q, role.name)
      return rarest ? collect(q, facets, page, sql`${rarest.found} AND ${allMet(q, plan)}`) : []
    }
  if (base <= COUNT_LIMIT || search === undefined || !isIndexedTerm(search) || page.sort !== 'created_at')
    return walking
  const [after] = page.after ?? []
  return q => [
    foundInOrder(
      q,
      { term: search, ...scope },
      { order: page.order, after: after as number | undefined },
      and(fits(q, facets), role && holding(q, role.name).met),
      page.limit,
    ),
  ]
}

export const listUsers = async (store: Store, filter: UserFilter, page: Page): Promise<UserRow[]> => {
  const plan = await store.read(q => planOf(q, filter))
  if (!plan) return []
  const found = await find(store, plan, page)
  return store.read(q => fetchUsers(q, page, found(q)))
}

/** Of all users, or of one organization's, kept by triggers. */
export const countAllUsers = async (
  q: Queries,
  organization_id: OrganizationId | undefined,
): Promise<number> => {
  const { counters } = q.tables
  const [row] = await q
    .select({ total: sql<number>`coalesce(sum(${counters.total}), 0)`.mapWith(Number) })
    .from(counters)
    .where(and(eq(counters.kind, 'users'), organization_id && eq(counters.organization_id, organization_id)))
  return row?.total ?? 0
}

/** Exact to 10,000, then 10,001. */
export const countUsers = async (store: Store, filter: UserFilter): Promise<number> => {
  const plan = await store.read(q => planOf(q, filter))
  return plan ? totalOf(store, plan) : 0
}
