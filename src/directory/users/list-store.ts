import { and, asc, type Column, desc, eq, gt, gte, isNull, lt, type SQL, sql } from 'drizzle-orm'
import type { Keyset } from '#src/lib/cursor.ts'
import type { OrganizationId, RoleId } from '#src/lib/ids.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import { notPurged } from '#src/storage/purges.ts'
import { inSlices, SLICE } from '#src/storage/slices.ts'
import { prepared, type Queries } from '#src/storage/store.ts'
import type { UserRow } from './store.ts'

/**
 * Filters of a list except the search term. A list is read in the order of an index that begins with the
 * columns of the filters. Each pair of `enabled` and `email_verified` that the filters allow is one range of
 * the index. Only the first rows of each range are merged and sorted. The cost of a page therefore does not
 * depend on the filter, the order or the number of users.
 */
export interface Facets {
  organization_id?: OrganizationId | undefined
  enabled?: boolean | undefined
  email_verified?: boolean | undefined
  /** A role of one organization. Lists of all organizations filter by `role_name` instead. */
  role_id?: RoleId | undefined
  role_name?: string | undefined
  /**
   * True while a purge is unfinished. In this case lists and counts exclude the rows of deleted resources.
   */
  purging: boolean
}

/** Order, start and size of a page of users. */
export interface PageQuery {
  sort: 'created_at' | 'username' | 'email' | 'last_login'
  order: 'asc' | 'desc'
  after: Keyset | undefined
  limit: number
}

/** A query for the `seq` of users. */
export interface Numbers {
  getSQL(): SQL
}

const columns = { username: 'username_fold', email: 'email_fold', last_login: 'last_login' } as const

/** Returns the keyset of a row. `seq` numbers users in the order of their creation. */
export const keysetOf =
  (sort: PageQuery['sort']) =>
  (user: UserRow): Keyset =>
    sort === 'created_at' ? [user.seq] : [user[columns[sort]], user.seq]

const selectPurges = prepared((q, { purges }) => q.select({ id: purges.id }).from(purges).limit(1))

/**
 * True while a purge is unfinished: rows of a deleted resource may remain. Also true while an attribute index
 * is being rebuilt.
 */
export const hasPurges = async (q: Queries): Promise<boolean> => (await selectPurges(q, {})).length > 0

/** True when the list is read from user_roles instead of users. */
export const filtersByRole = ({ role_id, role_name }: Facets): boolean =>
  role_id !== undefined || role_name !== undefined

/** Returns the table that the list reads. */
export const listed = ({ tables }: Queries, facets: Facets) =>
  filtersByRole(facets) ? tables.user_roles : tables.users
type Listed = ReturnType<typeof listed>

const either = (value: boolean | undefined): boolean[] => (value === undefined ? [true, false] : [value])

/** Splits the filter into ranges. The rows of a range are adjacent in an index. */
export const rangesOf = (facets: Facets): Facets[] =>
  either(facets.enabled).flatMap(enabled =>
    either(facets.email_verified).map(email_verified => ({ ...facets, enabled, email_verified })),
  )

const equal = <T>(column: Column, value: T | undefined): SQL | undefined =>
  value === undefined ? undefined : eq(column, value)

/** Returns the condition of the filters for a row of the table `listed`, in a form that an index supports. */
const within = (q: Queries, facets: Facets): SQL | undefined => {
  const { user_roles, users } = q.tables
  const table = listed(q, facets)
  const gone = filtersByRole(facets)
    ? notPurged(q, user_roles.organization_id, user_roles.role_id)
    : notPurged(q, users.organization_id)
  return and(
    filtersByRole(facets) ? undefined : equal(users.organization_id, facets.organization_id),
    equal(user_roles.role_id, facets.role_id),
    equal(user_roles.role_name, facets.role_name),
    equal(table.enabled, facets.enabled),
    equal(table.email_verified, facets.email_verified),
    facets.purging ? gone : undefined,
  )
}

/**
 * Returns the same condition as `within`, for a query that finds users with another index: the search index
 * or the attribute index. `coalesce` keeps the query planner from choosing an index on these columns.
 */
export const fits = (q: Queries, facets: Facets): SQL | undefined => {
  const { user_roles, users } = q.tables
  const is = <T>(column: Column, value: T | undefined) =>
    value === undefined ? undefined : sql`coalesce(${column}, ${column}) = ${sql.param(value, column)}`
  const holds = and(
    eq(user_roles.user_id, users.id),
    is(user_roles.role_id, facets.role_id),
    is(user_roles.role_name, facets.role_name),
    facets.purging ? notPurged(q, user_roles.role_id) : undefined,
  )
  return and(
    is(users.organization_id, facets.organization_id),
    is(users.enabled, facets.enabled),
    is(users.email_verified, facets.email_verified),
    filtersByRole(facets) ? sql`EXISTS (SELECT 1 FROM ${user_roles} WHERE ${holds})` : undefined,
    facets.purging ? notPurged(q, users.organization_id) : undefined,
  )
}

/** Returns the order terms of a page. `seq` makes the order unique. */
export const sorting = (table: Listed, { sort, order }: PageQuery): SQL[] => {
  const direction = order === 'asc' ? asc : desc
  return sort === 'created_at'
    ? [direction(table.seq)]
    : [direction(table[columns[sort]]), direction(table.seq)]
}

/**
 * Returns the sort term that puts users without a login last in both orders. An administrator who sorts by
 * the last login wants to see users who have signed in.
 */
export const nullsLast = (table: Listed, { sort }: PageQuery): SQL[] =>
  sort === 'last_login' ? [sql`${table.last_login} IS NULL`] : []

/**
 * Returns the conditions for the rows after the keyset, one for each run. A run is a part of an index that is
 * read in one direction. A list by last login has two runs, because users who never signed in come last in
 * both orders.
 */
export const runsOf = (table: Listed, { sort, order, after }: PageQuery): (SQL | undefined)[] => {
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

/** Returns the query for a page of one run of an index. */
export const readRun = (
  q: Queries,
  range: Facets,
  run: SQL | undefined,
  page: PageQuery,
  condition?: SQL,
) => {
  const table = listed(q, range)
  return q
    .select({ seq: table.seq })
    .from(table)
    .where(and(within(q, range), run, condition))
    .orderBy(...sorting(table, page))
    .limit(page.limit)
}

/**
 * Calls `read` for slices of a range in the order of the page, until `read` returns true or no slice is left.
 * `read` gets a query that returns the `seq` of each row in the slice. Other requests run between two slices.
 */
export const readSlices = async (
  q: Queries,
  range: Facets,
  page: Pick<PageQuery, 'sort' | 'order' | 'after'>,
  read: (rows: ReturnType<typeof readRun>) => Promise<boolean>,
): Promise<void> => {
  const table = listed(q, range)
  const { sort, order } = page
  await inSlices(page.after, async after => {
    const slice = { sort, order, after, limit: SLICE }
    const [run, ...others] = runsOf(table, slice)
    if (await read(readRun(q, range, run, slice))) return undefined
    const [end] = await q
      .select({ value: sort === 'created_at' ? table.seq : table[columns[sort]], seq: table.seq })
      .from(table)
      .where(and(within(q, range), run))
      .orderBy(...sorting(table, slice))
      .limit(1)
      .offset(SLICE - 1)
    if (end) return sort === 'created_at' ? [end.seq] : [end.value, end.seq]
    return others.length > 0 ? [null, order === 'asc' ? 0 : Number.MAX_SAFE_INTEGER] : undefined
  })
}

/**
 * Returns the queries from which `fetchUsers` makes a page. `condition` filters the rows of the table that
 * `listed` returns.
 */
export const readList = (q: Queries, facets: Facets, page: PageQuery, condition?: SQL): Numbers[] =>
  rangesOf(facets).flatMap(range =>
    runsOf(listed(q, facets), page).map(run => readRun(q, range, run, page, condition)),
  )

/** Merges the `seq` of several queries into a page of users. */
export const fetchUsers = (q: Queries, page: PageQuery, lists: Numbers[]): Promise<UserRow[]> => {
  const { users } = q.tables
  const numbers = sql.join(
    lists.map(list => sql`SELECT seq FROM ${list} AS part`),
    sql` UNION ALL `,
  )
  return q
    .select()
    .from(users)
    .where(sql`${users.seq} IN (${numbers})`)
    .orderBy(...nullsLast(users, page), ...sorting(users, page))
    .limit(page.limit)
}

/** Returns the number of users in the list. The result 10,001 means more than 10,000. */
export const countList = async (q: Queries, facets: Facets): Promise<number> => {
  const table = listed(q, facets)
  let total = 0
  for (const range of rangesOf(facets)) {
    const fitting = q.select({ seq: table.seq }).from(table).where(within(q, range))
    total += await countUpTo(q, fitting, COUNT_LIMIT + 1 - total)
  }
  return total
}
