import { and, asc, type Column, desc, eq, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { Core } from '#src/context.ts'
import { COUNT_LIMIT } from '#src/http/count-limit.ts'
import { valueTaken } from '#src/lib/app-error.ts'
import type { Keyset } from '#src/lib/cursor.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { isUniqueViolation } from '#src/storage/errors.ts'
import { type Deletion, hasRemains } from '#src/storage/remains.ts'
import { prepared, type Queries } from '#src/storage/store.ts'

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
    throw valueTaken('id', 'An object with this id is still being deleted. Try again in a minute.')
  return id
}

/**
 * Does the follow-up work of a change in separate writes. Runs at once, or after the commit of a seed's
 * transaction.
 *
 * @param isRepeated true if the server repeats the work after an interruption. After a seed, this work comes
 * last.
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
export const beyond = ({ order, after }: Range, created_at: Column, id: Column): SQL | undefined =>
  after && sql`(${created_at}, ${id}) ${sql.raw(order === 'asc' ? '>' : '<')} (${after[0]}, ${after[1]})`

type Counted = 'organizations' | 'roles' | 'groups' | 'clients'

/**
 * Returns the number of rows of a kind, in one organization or in all organizations. Each page of a list has
 * this total. The total comes from counters, because counting would read all rows. With `filtered`, the
 * result is at most 10,001, as in filtered lists.
 */
export const countAll = async (
  q: Queries,
  kind: Counted,
  organization_id?: OrganizationId,
  filtered = false,
): Promise<number> => {
  const { counters } = q.tables
  const [row] = await q
    .select({ total: sql<number>`coalesce(sum(${counters.total}), 0)` })
    .from(counters)
    .where(and(eq(counters.kind, kind), organization_id && eq(counters.organization_id, organization_id)))
  const total = Number(row?.total)
  return filtered ? Math.min(total, COUNT_LIMIT + 1) : total
}

/** Counts the rows of a query, up to `most`. */
export const countUpTo = (
  q: Queries,
  rows: { limit(most: number): SQLWrapper },
  most: number,
): Promise<number> => q.$count(sql`${rows.limit(most)} AS part`)

/**
 * Handler for `.catch` of a write that can violate only the unique index of `field`. Turns the violation into
 * 409. The index decides, because two simultaneous writes could each find the value free.
 */
export const whenTaken =
  (field: string, message: string) =>
  (error: unknown): never => {
    throw isUniqueViolation(error) ? valueTaken(field, message) : error
  }
