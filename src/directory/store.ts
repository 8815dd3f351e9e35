import { and, asc, type Column, desc, eq, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Core } from '#src/context.ts'
import { valueTaken } from '#src/lib/app-error.ts'
import type { Keyset } from '#src/lib/cursor.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import { isUniqueViolation } from '#src/storage/errors.ts'
import { type Deletion, hasRemains } from '#src/storage/remains.ts'
import { inSlices } from '#src/storage/slices.ts'
import { prepared, type Queries, type Store } from '#src/storage/store.ts'

const { placeholder } = sql

const selectOrganization = prepared((q, { organizations }) =>
  q
    .select({ id: organizations.id, slug: organizations.slug })
    .from(organizations)
    .where(eq(organizations.id, placeholder('id'))),
)

/** Returns the id and slug of an organization. Returns undefined when it does not exist. */
export const findIdentity = async (
  q: Queries,
  id: OrganizationId,
): Promise<{ id: OrganizationId; slug: string } | undefined> => (await selectOrganization(q, { id }))[0]

/**
 * Condition of a prepared statement: the row belongs to the organization in the parameter `within`. Callers
 * that may act on every organization pass null, which matches all rows (`within` in http/tenant.ts).
 * `test/isolation/matrix.test.ts` calls each route as another tenant, and thus tests this condition.
 */
export const isWithin = (organization_id: Column): SQL =>
  sql`${organization_id} = coalesce(${placeholder('within')}, ${organization_id})`

/**
 * Returns the id that was chosen for a new object, if any. A seed file can name the id of a deleted object
 * again. While rows of the deleted object remain, the new object would get them: a new role would get the
 * users of the deleted role. The purge would also remove the rows of the new object.
 *
 * @throws AppError 409 while rows of a deleted object with this id remain
 */
export const chosenId = async <Id extends string>(
  q: Queries,
  kind: Deletion,
  id: Id | undefined,
): Promise<Id | undefined> => {
  if (id && (await hasRemains(q, kind, id)))
    throw valueTaken(
      'id',
      'An object with this id was deleted, and rows of it remain. Try again in a minute. If this file deletes the organization of the object, apply the deletion alone first.',
    )
  return id
}

/**
 * Does the follow-up work of a change in separate writes. The work runs at once. The work of a seed's entry
 * runs after the commit of the seed's transaction.
 *
 * @param isRepeated true if the server repeats the work after an interruption. After a seed, such work runs
 * after all other work.
 */
export const afterChange = async (
  context: Core,
  work: (context: Core) => Promise<unknown>,
  isRepeated = false,
): Promise<void> => {
  if (context.postpone) context.postpone(work, isRepeated)
  else await work(context)
}

export type Order = 'asc' | 'desc'

/** A page of a list. The list is sorted by the time of creation, and by id within a millisecond. */
export interface Range {
  order: Order
  after: Keyset | undefined
  limit: number
}

/**
 * Order terms of a list: the time of creation, then the id. The id keeps the order of objects that were
 * created in the same millisecond.
 */
export const byCreation = (order: Order, created_at: Column, id: Column): SQL[] =>
  [created_at, id].map(order === 'asc' ? asc : desc)

/** Condition: in the order of `byCreation` the row comes after the row whose keyset is `after`. */
export const beyond = (
  { order, after }: Omit<Range, 'limit'>,
  created_at: Column,
  id: Column,
): SQL | undefined =>
  after && sql`(${created_at}, ${id}) ${sql.raw(order === 'asc' ? '>' : '<')} (${after[0]}, ${after[1]})`

/**
 * Maximum number of rows that one statement compares with the filter of a list. A read on SQLite blocks the
 * event loop, and comparing a row with a search term can take 15 µs.
 */
const COMPARED = 1_000

/**
 * Returns the columns by which a list is sorted, and its filter in two parts: an index finds the rows that
 * match `found`, and each of these rows is compared with `matching`.
 */
type Compared = (
  q: Queries,
) => Record<'created_at' | 'id', SQLiteColumn> & Record<'found' | 'matching', SQL | undefined>

/**
 * Calls `read` for one slice of a list after another, until `read` returns true or no row is left. `where`
 * matches the rows of the slice that fit the filter, and `sorted` has the order terms of the list. Other
 * requests run between two slices. On PostgreSQL there is one slice.
 */
const readSlices = (
  store: Store,
  list: Compared,
  { order, after }: Omit<Range, 'limit'>,
  read: (q: Queries, where: SQL | undefined, sorted: SQL[]) => Promise<boolean>,
): Promise<void> =>
  inSlices<Keyset>(after, from =>
    store.read(async q => {
      const { created_at, id, found, matching } = list(q)
      const rest = and(found, beyond({ order, after: from }, created_at, id))
      const sorted = byCreation(order, created_at, id)
      const rows = q.select({ created_at, id }).from(created_at.table).where(rest)
      const ends = rows.orderBy(...sorted).limit(1)
      const [end] = q.engine === 'sqlite' ? await ends.offset(COMPARED - 1) : []
      const last = end && ([end.created_at, end.id] as Keyset)
      const upTo =
        last && sql`(${created_at}, ${id}) ${sql.raw(order === 'asc' ? '<=' : '>=')} (${last[0]}, ${last[1]})`
      return (await read(q, and(rest, upTo, matching), sorted)) ? undefined : last
    }),
  )

/**
 * Returns a page of a list whose filter is compared with each row. `select` returns the rows of a slice.
 */
export const comparedPage = async <Row>(
  store: Store,
  list: Compared,
  range: Range,
  select: (q: Queries, where: SQL | undefined, order: SQL[], limit: number) => Promise<Row[]>,
): Promise<Row[]> => {
  const page: Row[] = []
  await readSlices(store, list, range, async (q, where, sorted) => {
    page.push(...(await select(q, where, sorted, range.limit - page.length)))
    return page.length === range.limit
  })
  return page
}

/**
 * Counts a list whose filter is compared with each row. The result 10,001 means more than 10,000. `select`
 * returns the query for the rows of a slice.
 */
export const comparedCount = async (
  store: Store,
  list: Compared,
  select: (q: Queries, where: SQL | undefined) => { limit(most: number): SQLWrapper },
): Promise<number> => {
  let total = 0
  await readSlices(store, list, { order: 'asc', after: undefined }, async (q, where) => {
    total += await countUpTo(q, select(q, where), COUNT_LIMIT + 1 - total)
    return total > COUNT_LIMIT
  })
  return total
}

/**
 * Handler for `.catch` of a write that can violate only the unique index of `field`. Turns the violation into
 * 409. The index decides, because two simultaneous writes could each find the value free.
 */
export const whenTaken =
  (field: string, message: string) =>
  (error: unknown): never => {
    throw isUniqueViolation(error) ? valueTaken(field, message) : error
  }
