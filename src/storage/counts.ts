import { and, eq, type SQLWrapper, sql } from 'drizzle-orm'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { Queries } from './store.ts'

/**
 * Number of rows at which the count of a list stops, because counting a million rows for each page costs too
 * much. A total of `COUNT_LIMIT + 1` means more than `COUNT_LIMIT`. The total of an unfiltered list may come
 * from a counter. Such a total has no limit.
 */
export const COUNT_LIMIT = 10_000

type Counted = 'organizations' | 'roles' | 'groups' | 'clients' | 'users' | 'events'

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
