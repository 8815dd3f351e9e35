/**
 * Over 300 lines on purpose: the strategies of a search are chosen in one place.
 *
 * Lists users when the filters contain a search. `find` takes the first strategy of this table that applies.
 * `base` is the number of users that match the other filters. `all` is the number of users that the search
 * index finds for the term. A term is short when each of its words has one or two characters. For a short
 * term, the index searches all organizations for the longest word of the term. For any other term, the index
 * searches the organization only. The cost is the number of rows read for a page. A list reads up to four
 * ranges of an index (`rangesOf`), each in one or two runs (`runsOf`).
 *
 * | Strategy            | When                                              | Cost of a page                                    |
 * |---------------------|---------------------------------------------------|---------------------------------------------------|
 * | walk                | base <= 1,000                                     | base                                              |
 * | walk                | base <= 10,000 < all                              | at most base                                      |
 * | sortedPage          | all <= 1,000, sort `created_at`                   | all once; then 0 until users change               |
 * | numbered            | all <= 1,000, sort `last_login`                   | all once from the search index; then all by their |
 * |                     |                                                   | number (`seq`), sorted for each page              |
 * | inOrderOfCreation   | sort `created_at`, term not short                 | matches up to the last match of the page          |
 * | sortedPage          | all <= 10,000, sort `username` or `email`         | all once; then 0 until users change               |
 * | collect             | all <= 10,000, any other sort                     | all, sorted for each page                         |
 * | beginning           | sort `username` or `email`, one word of three     | a page of one run of the index; all other         |
 * |   + sortedPage      | characters or more, no @; at most 10,000 matches  | matches once; then 0 until users change           |
 * |                     | do not begin with the term                        |                                                   |
 * | walk                | short term                                        | rows up to the last row of the page               |
 * | meet                | the first 4,000 rows of each range fill a page,   | 4,000 for each run of a range                     |
 * |                     | or are the whole range                            |                                                   |
 * | beginning + collect | sort `username` or `email`, one word of three     | all matches that do not begin with the term,      |
 * |                     | characters or more, no @                          | sorted for each page                              |
 * | collect             | all other cases                                   | all matches, sorted for each page: the most       |
 * |                     |                                                   | expensive case, for many matches that are far     |
 * |                     |                                                   | apart in the order                                |
 *
 * A term of several words finds the users that have each word in at least one field. The search index answers
 * all words of three or more characters at once. Each row that the index finds is then compared with the
 * words of one or two characters, so the cost of a page includes rows that do not match these short words.
 *
 * On SQLite a statement compares at most 5,000 rows, and other requests run between two statements
 * (`match-store.ts`). For a short term, one statement searches the index and compares at most 10,000 rows.
 *
 * The counts for `base` and `all` stop at 10,001 and are cached until users change. `test/bench/lists.ts`
 * measures each strategy.
 *
 * Four searches cost more than twice as much at 1,000,000 users as at 1,000:
 *
 * - `collect` takes 13 ms for 10,000 matches in the order of the last login. This order is not cached,
 *   because each login changes it.
 * - `meet` takes 1 to 3 ms. It reads up to eight runs of an index, each by a statement of its own. A search
 *   among 1,000 users does not use `meet` and needs one statement. More than 1,000,000 users do not increase
 *   the cost.
 * - With 1,000 times as many users, a search that matched one user may fill a page. A page of 20 rows takes
 *   0.3 ms more than a page of one row.
 * - The first search by a short word and a long one, such as `example ~`, compares each user that matches the
 *   long word, which takes 0.8 ms for a thousand users. The result is then cached until users change.
 */
import { and, eq, gte, lt, or, type SQL } from 'drizzle-orm'
import type { OrganizationId } from '#src/lib/ids.ts'
import { fold } from '#src/lib/text.ts'
import { othersRun } from '#src/lib/turn.ts'
import { cached } from '#src/storage/cache.ts'
import { COUNT_LIMIT } from '#src/storage/counts.ts'
import { containsTerm, isIndexedTerm } from '#src/storage/search.ts'
import type { Queries, Store } from '#src/storage/store.ts'
import {
  countList,
  type Facets,
  fetchUsers,
  hasPurges,
  listed,
  type Numbers,
  type PageQuery,
  rangesOf,
  readList,
  readRun,
  runsOf,
} from './list-store.ts'
import {
  collect,
  contains,
  countEntries,
  countFound,
  countWalked,
  inOrderOfCreation,
  numbered,
  sortedMatches,
  type UserSearch,
  walk,
} from './match-store.ts'
import type { UserRow } from './store.ts'

/** Filters of the list. An absent filter matches all users. */
export interface UserFilter {
  organization_id?: OrganizationId | undefined
  enabled?: boolean | undefined
  email_verified?: boolean | undefined
  role?: string | undefined
  search?: string | undefined
}

/** The filters of a list. Their JSON is the key under which `counted` caches the number of matching users. */
export interface Plan {
  facets: Facets
  search?: string | undefined
  unless?: Name | undefined
}
type Name = 'username' | 'email'

/** Up to this number of users, all of them are read for each page. 1,000 rows take a few milliseconds. */
const FEW = 1000
/** Number of rows that `meet` reads from each run before it gives up. */
const WALK = 4000

const isShort = (term: string): boolean => !isIndexedTerm(term)

/** Returns the part of a search that the search index answers: the term and the organization. */
const everywhere = ({ facets: { organization_id, purging }, search }: UserSearch): UserSearch => ({
  facets: { purging, organization_id },
  search,
})

/**
 * Returns the plan of a list. Returns undefined when the organization has no role with the name in the
 * filter, because no user can match.
 */
export const planOf = async (
  q: Queries,
  { role, search: typed, ...filter }: UserFilter,
): Promise<Plan | undefined> => {
  const search = typed?.trim()
  const facets = { ...filter, purging: await hasPurges(q) }
  const plan = { facets, ...(search && { search }) }
  if (role === undefined) return plan
  if (!filter.organization_id) return { ...plan, facets: { ...facets, role_name: role } }
  const { roles } = q.tables
  const [found] = await q
    .select({ id: roles.id })
    .from(roles)
    .where(and(eq(roles.organization_id, filter.organization_id), eq(roles.name, role)))
  return found && { ...plan, facets: { ...facets, role_id: found.id } }
}

const termOf = ({ search: term, unless }: UserSearch) => ({ term, unless })

/**
 * Number of users that the search index finds for the term. For a short term the number is an upper bound.
 */
const indexed = cached('users', (q, key) => {
  const wanted: UserSearch = JSON.parse(key)
  return isShort(wanted.search) ? countEntries(q, wanted) : countFound(q, wanted)
})
const allOf = (store: Store, wanted: UserSearch): Promise<number> => {
  const { facets, search } = everywhere(wanted)
  const { purging } = facets
  return indexed(store, JSON.stringify({ facets: isShort(search) ? { purging } : facets, search }))
}

const count = async (store: Store, q: Queries, { facets, search: term, unless }: Plan): Promise<number> => {
  if (term === undefined) return countList(q, facets)
  const wanted = { facets, search: term, unless }
  const walks =
    (await totalOf(store, { facets })) <= COUNT_LIMIT ||
    (isShort(term) && (await allOf(store, wanted)) > COUNT_LIMIT)
  return walks ? countWalked(q, facets, containsTerm(q, termOf(wanted))) : countFound(q, wanted)
}

const counted = cached('users', (q, plan, store) => count(store, q, JSON.parse(plan)))
/**
 * Returns the number of matching users. The value 10,001 means more than 10,000. The number is cached until
 * users change.
 */
const totalOf = (store: Store, plan: Plan): Promise<number> => counted(store, JSON.stringify(plan))

/**
 * Walks the list and returns the matches of a page. Returns undefined when the matches are too sparse. This
 * is the case when a range has more than `WALK` rows, and the first `WALK` rows of its first run (`runsOf`)
 * contain fewer matches than a page.
 */
const meet = async (store: Store, search: UserSearch, page: PageQuery): Promise<number[] | undefined> => {
  const met: number[] = []
  for (const range of rangesOf(search.facets)) {
    const isWhole = (await totalOf(store, { facets: range })) <= WALK
    const rows = await store.read(async q => {
      const { users } = q.tables
      const seen: number[] = []
      for (const run of runsOf(listed(q, range), page)) {
        if (seen.length >= page.limit) break
        const rows = readRun(q, range, run, { ...page, limit: WALK }).as('rows')
        const fitting = await q
          .select({ seq: users.seq })
          .from(rows)
          .crossJoin(users)
          .where(and(eq(users.seq, rows.seq), containsTerm(q, termOf(search))))
          .limit(page.limit)
        seen.push(...fitting.map(({ seq }) => seq))
        await othersRun()
        if (seen.length < page.limit && !isWhole) return undefined
      }
      return seen
    })
    if (!rows) return undefined
    met.push(...rows)
  }
  return met
}

/**
 * All matches of a search, sorted by the user name or address (`name`), or in the order of creation. The
 * latest 16 searches are cached until users change. No more searches are kept, because each search has up to
 * 10,000 matches in memory.
 */
const sorted = cached(
  'users',
  (q, key) => {
    const { name, search }: { name?: Name; search: UserSearch } = JSON.parse(key)
    return sortedMatches(q, search, name)
  },
  16,
)

/**
 * Returns a page of the matches, sorted by the field `name`. Without `name` they are in the order of
 * creation.
 */
const sortedPage = async (
  store: Store,
  search: UserSearch,
  name: Name | undefined,
  page: PageQuery,
): Promise<number[]> => {
  const rows = await sorted(store, JSON.stringify({ name, search }))
  const inOrder = page.order === 'asc' ? rows : rows.toReversed()
  const way = page.order === 'asc' ? 1 : -1
  const after =
    page.after &&
    (name ? (page.after as [value: string, seq: number]) : (['', page.after[0] as number] as const))
  const isBeyond = ({ value, seq }: { value: string; seq: number }) =>
    !after || (value === after[0] ? way * (seq - after[1]) > 0 : value > after[0] === way > 0)
  const start = inOrder.findIndex(isBeyond)
  return start < 0 ? [] : inOrder.slice(start, start + page.limit).map(({ seq }) => seq)
}

/**
 * Returns queries for the users whose user name or address begins with the term. These users are adjacent
 * when all users are sorted by the same field.
 */
const beginning = (
  q: Queries,
  { facets, search }: UserSearch,
  page: PageQuery,
  name: 'username' | 'email',
): Numbers[] => {
  const column = listed(q, facets)[`${name}_fold`]
  const [from, to] = [fold(search), `${fold(search)}\u{10ffff}`]
  const last = page.after?.[0] ?? null
  const isAhead = last !== null && (page.order === 'asc' ? last < from : last > to)
  return readList(
    q,
    facets,
    isAhead ? { ...page, after: undefined } : page,
    and(gte(column, from), lt(column, to)),
  )
}

/** Chooses the strategy for a page: see the table above. */
const find = async (
  store: Store,
  search: UserSearch,
  page: PageQuery,
): Promise<(q: Queries) => Numbers[]> => {
  const { facets, search: term } = search
  const these =
    (numbers: number[], condition?: SQL) =>
    (q: Queries): Numbers[] =>
      numbered(q, numbers, condition)
  const walked = () => store.read(q => walk(q, facets, page, containsTerm(q, termOf(search)))).then(these)
  const base = await totalOf(store, { facets })
  if (base <= FEW) return q => readList(q, facets, page, contains(q, search))
  const all = await allOf(store, search)
  if (all > COUNT_LIMIT && (base <= COUNT_LIMIT || isShort(term))) return walked()
  if (all <= FEW && page.sort === 'created_at') return these(await sortedPage(store, search, undefined, page))
  if (page.sort === 'created_at' && !isShort(term))
    return these(await store.read(q => inOrderOfCreation(q, search, page)))
  if (all <= FEW && page.sort === 'last_login') {
    const numbers = (await sorted(store, JSON.stringify({ search }))).map(({ seq }) => seq)
    return q => numbered(q, numbers, or(...runsOf(q.tables.users, page)))
  }
  const name = page.sort === 'username' || page.sort === 'email' ? page.sort : undefined
  if (all <= COUNT_LIMIT)
    return these(
      name
        ? await sortedPage(store, search, name, page)
        : await store.read(q => collect(q, search, page, false)),
    )
  // The search index contains an address as it was entered, and the list is sorted by the canonical form of
  // the address. The two forms agree only before the `@`, so `beginning` cannot serve a term with `@`. It
  // cannot serve a term of several words either, because the words match in any order.
  const others = { ...search, unless: /[@\s]/.test(term) ? undefined : name }
  const begin = (q: Queries) => (others.unless ? beginning(q, search, page, others.unless) : [])
  if (others.unless && (await totalOf(store, others)) <= COUNT_LIMIT) {
    const numbers = await sortedPage(store, others, others.unless, page)
    return q => [...begin(q), ...numbered(q, numbers)]
  }
  const met = await meet(store, search, page)
  if (met) return these(met)
  const collected = await store.read(q => collect(q, others, page, true))
  return q => [...begin(q), ...numbered(q, collected)]
}

/** Returns a page of users that match all filters and the search. */
export const listUsers = async (store: Store, filter: UserFilter, page: PageQuery): Promise<UserRow[]> => {
  const plan = await store.read(q => planOf(q, filter))
  if (!plan) return []
  const { search } = plan
  const lists =
    search === undefined
      ? (q: Queries) => readList(q, plan.facets, page)
      : await find(store, { ...plan, search }, page)
  return store.read(async q => {
    const numbers = lists(q)
    return numbers.length > 0 ? fetchUsers(q, page, numbers) : []
  })
}

/** Returns the number of matching users. The value 10,001 means more than 10,000. */
export const countUsers = async (store: Store, filter: UserFilter): Promise<number> => {
  const plan = await store.read(q => planOf(q, filter))
  return plan ? totalOf(store, plan) : 0
}
