import { and, asc, eq, or, type SQL, sql } from 'drizzle-orm'
import { hasValue, isValue, requireIndex } from '#src/directory/organizations/attribute-store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { findOrganization, hasTenants } from '#src/directory/organizations/store.ts'
import { searchableNames } from '#src/directory/organizations/user-attributes.ts'
import { throwProblems } from '#src/lib/app-error.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { cached } from '#src/storage/cache.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import { containsTerm } from '#src/storage/search.ts'
import { inSlices, SLICE } from '#src/storage/slices.ts'
import type { Queries, Store } from '#src/storage/store.ts'
import { fetchUsers, fits, type PageQuery, runsOf } from './list-store.ts'
import { better, numbered, walk } from './match-store.ts'
import { type Plan, planOf, type UserFilter } from './search-store.ts'
import type { UserRow } from './store.ts'

/** Filters by attributes: name and value as text. */
type Values = [name: string, value: string][]

/**
 * A list of users filtered by attributes. `counted` caches the number of matching users under the JSON of
 * this object.
 */
interface AttributePlan extends Plan {
  values: Values
}

/** Returns the condition on `users` for all values and the search term. */
const valuesAnd = (q: Queries, { values, search }: AttributePlan): SQL | undefined =>
  and(
    ...values.map(value => hasValue(q, q.tables.users.id, value)),
    search === undefined ? undefined : containsTerm(q, { term: search }),
  )

/**
 * Returns the condition on `users` for all values except the first, the search term, and the other filters.
 */
const others = (q: Queries, plan: AttributePlan): SQL | undefined => {
  const { users } = q.tables
  const { facets, search } = plan
  return and(
    fits(q, facets),
    ...plan.values.slice(1).map(value => hasValue(q, users.id, value)),
    search === undefined ? undefined : containsTerm(q, { term: search }),
  )
}

/**
 * Reads the rows of the attribute index that have the first value of the plan. Calls `read` with each part of
 * these rows in turn, until `read` returns true or no part is left. A part has at most `SLICE` users. Other
 * requests run between two parts.
 */
const readHolders = async (
  q: Queries,
  { facets: { organization_id }, values: [first] }: AttributePlan,
  read: (part: SQL | undefined) => Promise<boolean>,
): Promise<void> => {
  const { user_attributes: t } = q.tables
  const own = and(first && isValue(q, first), organization_id && eq(t.organization_id, organization_id))
  const place = organization_id ? [t.user_id] : [t.organization_id, t.user_id]
  const columns = sql.join(place, sql`, `)
  await inSlices<SQL>(undefined, async after => {
    const [end] = await q
      .select({ organization_id: t.organization_id, user_id: t.user_id })
      .from(t)
      .where(and(own, after))
      .orderBy(...place.map(column => asc(column)))
      .limit(1)
      .offset(SLICE - 1)
    const last =
      end &&
      sql.join(
        place.map(column => sql`${column === t.user_id ? end.user_id : end.organization_id}`),
        sql`, `,
      )
    const isDone = await read(and(own, after, last && sql`(${columns}) <= (${last})`))
    return isDone ? undefined : last && sql`(${columns}) > (${last})`
  })
}

/** Returns a query for the matching users in a part of the attribute index. */
const holders = (q: Queries, plan: AttributePlan, part: SQL | undefined, condition?: SQL) => {
  const { user_attributes: t, users } = q.tables
  return q
    .select({ seq: users.seq })
    .from(t)
    .innerJoin(users, eq(users.id, t.user_id))
    .where(and(part, others(q, plan), condition))
}

const collect = async (q: Queries, plan: AttributePlan, page: PageQuery): Promise<number[]> => {
  const { users } = q.tables
  let best: number[] = []
  await readHolders(q, plan, async part => {
    best = await better(q, page, best, holders(q, plan, part, or(...runsOf(users, page))))
    return false
  })
  return best
}

const counted = cached('users', async (q, key) => {
  const plan: AttributePlan = JSON.parse(key)
  let total = 0
  await readHolders(q, plan, async part => {
    total += await countUpTo(q, holders(q, plan, part), COUNT_LIMIT + 1 - total)
    return total > COUNT_LIMIT
  })
  return total
})

const planFor = async (
  store: Store,
  filter: UserFilter,
  values: Values,
): Promise<AttributePlan | undefined> => {
  await requireSearchable(store, filter, values)
  return store.read(async q => {
    await requireIndex(q, filter.organization_id)
    const plan = await planOf(q, filter)
    return plan && { ...plan, values }
  })
}

/**
 * Refuses an attribute that the organization does not index, because a search for it would have to read every
 * user. A search in several organizations is not checked, because each organization has its own list of
 * indexed attributes.
 *
 * @throws AppError 422
 */
const requireSearchable = async (store: Store, { organization_id }: UserFilter, values: Values) => {
  const only = (await hasTenants(store)) ? undefined : DEFAULT_ORGANIZATION
  const id = organization_id ?? only
  const organization = id && (await findOrganization(store, id))
  if (!organization) return
  const known = searchableNames(settingsOf(organization).user_attributes)
  const unknown = values.filter(([name]) => !known.includes(name))
  throwProblems(
    unknown.map(([name]) => ({
      field: `attribute.${name}`,
      code: 'not_searchable',
      message: 'This attribute is not searchable.',
    })),
  )
}

/**
 * Returns a page of the users that match the filter and have these values. Up to 10,000 matches are read from
 * the attribute index and sorted. If there are more matches, users are read in the order of the list and
 * compared with the values. Because many users match, a small part of the list usually fills a page.
 *
 * @throws AppError 422 for an attribute that is not searchable, 503 while the index is being built
 */
export const listByAttributes = async (
  store: Store,
  filter: UserFilter,
  values: Values,
  page: PageQuery,
): Promise<UserRow[]> => {
  const plan = await planFor(store, filter, values)
  if (!plan) return []
  const isMany = (await counted(store, JSON.stringify(plan))) > COUNT_LIMIT
  return store.read(async q => {
    const numbers = isMany
      ? await walk(q, plan.facets, page, valuesAnd(q, plan))
      : await collect(q, plan, page)
    return numbers.length > 0 ? fetchUsers(q, page, numbered(q, numbers)) : []
  })
}

/**
 * Returns the number of matching users. The result 10,001 means more than 10,000. Throws the errors of
 * `listByAttributes`.
 */
export const countByAttributes = async (
  store: Store,
  filter: UserFilter,
  values: Values,
): Promise<number> => {
  const plan = await planFor(store, filter, values)
  return plan ? counted(store, JSON.stringify(plan)) : 0
}
