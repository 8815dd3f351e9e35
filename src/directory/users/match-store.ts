import { and, asc, desc, inArray, or, type SQL, sql } from 'drizzle-orm'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import {
  containsTerm,
  entriesOf,
  type IndexPart,
  indexRows,
  isComparedTerm,
  isIndexedTerm,
  longestWord,
  matchesOf,
  matchSeq,
  type Search,
} from '#src/storage/search.ts'
import { inSlices, SLICE } from '#src/storage/slices.ts'
import type { Queries } from '#src/storage/store.ts'
import {
  type Facets,
  filtersByRole,
  fits,
  type Numbers,
  nullsLast,
  type PageQuery,
  rangesOf,
  readSlices,
  runsOf,
  sorting,
} from './list-store.ts'

/** A search for a term among the users of a list. */
export interface UserSearch {
  facets: Facets
  search: string
  /** Excludes users whose field of this name begins with the term. */
  unless?: Search['unless']
}

const termOf = ({ facets: { organization_id }, search, unless }: UserSearch): Search => ({
  term: search,
  organization_id,
  unless,
})

/** Condition: the user of a row of `listed` matches the search term. */
export const contains = (q: Queries, wanted: UserSearch): SQL => {
  const { user_roles, users } = q.tables
  const condition = containsTerm(q, termOf(wanted))
  return filtersByRole(wanted.facets)
    ? sql`EXISTS (SELECT 1 FROM ${users} WHERE ${users.seq} = ${user_roles.seq} AND ${condition})`
    : condition
}

/** Returns a query for the matches that fit the filters, in a part of the search index. */
export const found = (
  q: Queries,
  wanted: UserSearch,
  span: IndexPart,
  condition?: SQL,
  value = sql<string>`''`,
) => {
  const { users } = q.tables
  return q
    .select({ value, seq: users.seq })
    .from(matchesOf(q, termOf(wanted), span))
    .crossJoin(users)
    .where(and(sql`${users.seq} = ${matchSeq}`, fits(q, wanted.facets), condition))
}

/**
 * True when some matches in the index may not be results of the search: if the term has a word of fewer than
 * three characters, if the list has a filter other than the organization, or if a purge is unfinished.
 */
const isCompared = ({ search, facets: { organization_id: _, purging, ...facets } }: UserSearch): boolean =>
  purging || isComparedTerm(search) || Object.values(facets).some(value => value !== undefined)

/**
 * Returns the last `seq` of the next part of the search index. The part has `SLICE` matches. Returns
 * undefined when fewer than `SLICE` matches remain.
 */
const endOf = async (q: Queries, wanted: UserSearch, order: 'asc' | 'desc', span: IndexPart) => {
  const rows = sql`(${indexRows(termOf(wanted), span)} ORDER BY rowid ${sql.raw(order)} LIMIT 1 OFFSET ${SLICE - 1})`
  const [end] = await q.select({ seq: matchSeq }).from(sql`${rows} AS matches`)
  return end?.seq
}

/**
 * Calls `read` with parts of the search index in the order of `seq`, until `read` returns true or no part is
 * left. Each part has at most `SLICE` matches of the words of three or more characters. Other requests run
 * between two parts. There is only one part in each of these cases:
 *
 * - `isMany` is not set and `isCompared` is false. Each match is then a result, and `read` reads at most
 *   10,001 results.
 * - The term has no word of three or more characters. Callers search the index for such a term only if it has
 *   at most 10,000 matches.
 * - The engine is PostgreSQL, because a statement does not block the event loop there.
 */
const readMatches = async (
  q: Queries,
  wanted: UserSearch,
  { order, isMany, ...start }: IndexPart & { order: 'asc' | 'desc'; isMany?: boolean },
  read: (span: IndexPart) => Promise<boolean>,
): Promise<void> => {
  const isSliced = q.engine === 'sqlite' && isIndexedTerm(wanted.search) && (isMany || isCompared(wanted))
  await inSlices<IndexPart>(start, async (rest = {}) => {
    const end = isSliced ? await endOf(q, wanted, order, rest) : undefined
    const [part, next] =
      end === undefined
        ? [rest]
        : order === 'asc'
          ? [
              { ...rest, upTo: end },
              { ...rest, after: end },
            ]
          : [
              { ...rest, after: end - 1 },
              { ...rest, upTo: end - 1 },
            ]
    return (await read(part)) ? undefined : next
  })
}

/** Counts the users whom the search index finds and who fit the filters. The result is at most 10,001. */
export const countFound = async (q: Queries, wanted: UserSearch): Promise<number> => {
  let total = 0
  await readMatches(q, wanted, { order: 'asc' }, async span => {
    total += await countUpTo(q, found(q, wanted, span), COUNT_LIMIT + 1 - total)
    return total > COUNT_LIMIT
  })
  return total
}

/** Maximum number of entries in SQLite's search index that `countEntries` reads. Users may have several. */
const ENTRIES = 3 * COUNT_LIMIT

/**
 * Counts the users of all organizations who match the longest word of a term. Returns 10,001 when more than
 * 10,000 users match, or when their entries in the search index reach `ENTRIES`.
 */
export const countEntries = async (
  q: Queries,
  { facets: { purging }, search }: UserSearch,
): Promise<number> => {
  const term = longestWord(search)
  if (q.engine === 'postgres') return countFound(q, { facets: { purging }, search: term })
  const [row] = await q
    .select({ entries: sql<number>`count(*)`, users: sql<number>`count(DISTINCT part.seq)` })
    .from(sql`(${entriesOf(term)} LIMIT ${ENTRIES}) AS part`)
  if (!row || row.entries === ENTRIES) return COUNT_LIMIT + 1
  return Math.min(row.users, COUNT_LIMIT + 1)
}

const among = (q: Queries, rows: ReturnType<typeof sliceOf>, condition: SQL | undefined) => {
  const { users } = q.tables
  return q
    .select({ seq: users.seq })
    .from(rows)
    .crossJoin(users)
    .where(and(sql`${users.seq} = ${rows.seq}`, condition))
}
const sliceOf = (rows: Parameters<Parameters<typeof readSlices>[3]>[0]) => rows.as('rows')

/** Counts the users of a list who match the condition on `users`. The result is at most 10,001. */
export const countWalked = async (q: Queries, facets: Facets, condition: SQL): Promise<number> => {
  let total = 0
  for (const range of rangesOf(facets))
    if (total <= COUNT_LIMIT)
      await readSlices(q, range, { sort: 'created_at', order: 'asc', after: undefined }, async rows => {
        total += await countUpTo(q, among(q, sliceOf(rows), condition), COUNT_LIMIT + 1 - total)
        return total > COUNT_LIMIT
      })
  return total
}

/**
 * Returns the first users of each range who match the condition on `users`. Each range is read in the order
 * of the page.
 */
export const walk = async (
  q: Queries,
  facets: Facets,
  page: PageQuery,
  condition: SQL | undefined,
): Promise<number[]> => {
  const { users } = q.tables
  const numbers: number[] = []
  for (const range of rangesOf(facets)) {
    let missing = page.limit
    await readSlices(q, range, page, async rows => {
      const fitting = among(q, sliceOf(rows), condition)
      // In this join, SQLite keeps the order of `rows`. PostgreSQL may change the order, so the result is
      // sorted.
      const inOrder =
        q.engine === 'sqlite' ? fitting : fitting.orderBy(...nullsLast(users, page), ...sorting(users, page))
      const more = await inOrder.limit(missing)
      numbers.push(...more.map(({ seq }) => seq))
      missing -= more.length
      return missing === 0
    })
  }
  return numbers
}

/** A query for users that is not sorted yet. */
interface Matches {
  orderBy(...order: SQL[]): { limit(most: number): PromiseLike<{ seq: number }[]> }
}

/**
 * Merges `best` with the result of a query. Returns the `seq` of the users that come first in the order of
 * the page.
 */
export const better = async (
  q: Queries,
  page: PageQuery,
  best: number[],
  matches: Matches,
): Promise<number[]> => {
  const { users } = q.tables
  const order = [...nullsLast(users, page), ...sorting(users, page)]
  const more = (await matches.orderBy(...order).limit(page.limit)).map(({ seq }) => seq)
  if (best.length === 0 || more.length === 0) return [...best, ...more]
  const rows = await q
    .select({ seq: users.seq })
    .from(users)
    .where(inArray(users.seq, [...best, ...more]))
    .orderBy(...order)
    .limit(page.limit)
  return rows.map(({ seq }) => seq)
}

/** Returns queries for these users in the form that `fetchUsers` expects. */
export const numbered = (q: Queries, numbers: number[], condition?: SQL): Numbers[] => {
  const { users } = q.tables
  return numbers.length > 0
    ? [
        q
          .select({ seq: users.seq })
          .from(users)
          .where(and(inArray(users.seq, numbers), condition)),
      ]
    : []
}

/** Returns a page of the matches. Each page reads and sorts all matches again. */
export const collect = async (
  q: Queries,
  wanted: UserSearch,
  page: PageQuery,
  isMany: boolean,
): Promise<number[]> => {
  const { users } = q.tables
  let best: number[] = []
  await readMatches(q, wanted, { order: 'asc', isMany }, async span => {
    best = await better(q, page, best, found(q, wanted, span, or(...runsOf(users, page))))
    return false
  })
  return best
}

/** Returns a page of the matches in the order of creation. */
export const inOrderOfCreation = async (
  q: Queries,
  wanted: UserSearch,
  page: PageQuery,
): Promise<number[]> => {
  const { order, after, limit } = page
  const last = after?.[0] as number | undefined
  const start = last === undefined ? {} : order === 'asc' ? { after: last } : { upTo: last - 1 }
  const numbers: number[] = []
  await readMatches(q, wanted, { order, ...start }, async span => {
    const more = await found(q, wanted, span)
      .orderBy((order === 'asc' ? asc : desc)(matchSeq))
      .limit(limit - numbers.length)
    numbers.push(...more.map(({ seq }) => seq))
    return numbers.length === limit
  })
  return numbers
}

/** Returns all matches, sorted by the field `name`, or in the order of creation. */
export const sortedMatches = async (
  q: Queries,
  wanted: UserSearch,
  name: 'username' | 'email' | undefined,
): Promise<{ value: string; seq: number }[]> => {
  const { users } = q.tables
  const value = name ? sql<string>`${users[`${name}_fold`]}` : sql<string>`''`
  const parts: { value: string; seq: number }[][] = []
  await readMatches(q, wanted, { order: 'asc' }, async span => {
    const rows = await found(q, wanted, span, undefined, value).orderBy(
      ...(name ? [asc(value)] : []),
      asc(users.seq),
    )
    if (rows.length > 0) parts.push(rows)
    return false
  })
  if (parts.length === 1 || !name) return parts.flat()
  return parts.flat().sort((a, b) => (a.value === b.value ? a.seq - b.seq : a.value < b.value ? -1 : 1))
}
