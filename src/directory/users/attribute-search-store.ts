import { and, eq, or, type SQL } from 'drizzle-orm'
import { hasValue, isValue, requireIndex } from '#src/directory/organizations/attribute-store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { searchableNames } from '#src/directory/organizations/user-attributes.ts'
import { countUpTo } from '#src/directory/store.ts'
import { COUNT_LIMIT } from '#src/http/count-limit.ts'
import { invalid } from '#src/lib/app-error.ts'
import { cached } from '#src/storage/cache.ts'
import { containsTerm } from '#src/storage/search.ts'
import type { Queries, Store } from '#src/storage/store.ts'
import {
  fetchUsers,
  filtersByRole,
  fits,
  nullsLast,
  type PageQuery,
  readList,
  runsOf,
  sorting,
} from './list-store.ts'
import { contains, type Plan, planOf, type UserFilter } from './search-store.ts'
import type { UserRow } from './store.ts'

/** Filters by attributes: name and value as text. */
type Values = [name: string, value: string][]

/**
 * A list of users filtered by attributes. As JSON, the plan is the key of the cached number of matching users
 * (`counted`).
 */
interface AttributePlan extends Plan {
  values: Values
}

/**
 * Returns a query for the users who match. The query looks up the first of the values in the index of
 * attributes, and checks the other filters for each user that it finds.
 */
const holders = (q: Queries, plan: AttributePlan, condition?: SQL) => {
  const { user_attributes: t, users } = q.tables
  const { organization_id } = plan.facets
  const [first, ...values] = plan.values
  return q
    .select({ seq: users.seq })
    .from(t)
    .innerJoin(users, eq(users.id, t.user_id))
    .where(
      and(
        first && isValue(q, first),
        organization_id && eq(t.organization_id, organization_id),
        fits(q, plan.facets),
        ...values.map(value => hasValue(q, users.id, value)),
        plan.search === undefined ? undefined : containsTerm(q, { term: plan.search, organization_id }),
        condition,
      ),
    )
}

const walk = (q: Queries, plan: AttributePlan, page: PageQuery) => {
  const { user_roles, users } = q.tables
  const user_id = filtersByRole(plan.facets) ? user_roles.user_id : users.id
  const { facets, search, values } = plan
  const condition = and(
    ...values.map(value => hasValue(q, user_id, value)),
    search === undefined ? undefined : contains(q, { facets, search }),
  )
  return readList(q, facets, page, condition)
}

const collect = (q: Queries, plan: AttributePlan, page: PageQuery) => {
  const { users } = q.tables
  return [
    holders(q, plan, or(...runsOf(users, page)))
      .orderBy(...nullsLast(users, page), ...sorting(users, page))
      .limit(page.limit),
  ]
}

const counted = cached('users', (q, plan) => countUpTo(q, holders(q, JSON.parse(plan)), COUNT_LIMIT + 1))

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
 * Refuses an attribute that the organization does not index, because such a search would read every user. A
 * search in all organizations is not checked, because each organization has its own list of indexed
 * attributes.
 *
 * @throws AppError 422
 */
const requireSearchable = async (store: Store, { organization_id }: UserFilter, values: Values) => {
  const organization = organization_id && (await findOrganization(store, organization_id))
  if (!organization) return
  const known = searchableNames(settingsOf(organization).user_attributes)
  const [first, ...others] = values.flatMap(([name]) =>
    known.includes(name)
      ? []
      : { field: `attribute.${name}`, code: 'not_searchable', message: 'This attribute is not searchable.' },
  )
  if (first) throw invalid(first, ...others)
}

/**
 * Returns a page of the users that match the filter and have these values. Up to 10,000 matches are read from
 * the index of attributes and sorted. When more users match, users are read in the order of the list and
 * compared with the values, because a few rows then fill a page.
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
  return store.read(q => fetchUsers(q, page, (isMany ? walk : collect)(q, plan, page)))
}

/**
 * Returns the number of matching users, exact up to 10,000; 10,001 means more. Throws like
 * {@link listByAttributes}.
 */
export const countByAttributes = async (
  store: Store,
  filter: UserFilter,
  values: Values,
): Promise<number> => {
  const plan = await planFor(store, filter, values)
  return plan ? counted(store, JSON.stringify(plan)) : 0
}
