import { z } from 'zod'
import type { Context } from '#src/context.ts'
import { type Keyset, openCursor, sealCursor } from '#src/lib/cursor.ts'
import { isPlain } from '#src/lib/text.ts'
import { COUNT_LIMIT } from '#src/storage/counts.ts'

/** Converts decimal digits to a number. `Number` would also accept `0x10`, `1e1` and spaces. */
export const digits = (text: unknown): unknown =>
  typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : text

/**
 * Schema of an id filter. An empty filter is refused, because it is probably a mistake and would match
 * everything.
 */
export const idFilter = z
  .string()
  .min(1, 'An id.')
  .max(512, 'At most 512 characters.')
  .refine(isPlain, 'Control characters are not allowed.')

export const ofOrganization = idFilter
  .optional()
  .describe('Id of an organization. The list then has only objects of this organization.')

const LIMIT = 'A whole number from 1 to 100.'

/**
 * Returns the query schema of a list: limit, cursor, order and the list's own filters. The newest items come
 * first, because administrators look for them most. The default of 20 items fills a screen. The maximum is
 * 100, because encoding more items would block the event loop for too long.
 */
export const listQuery = <S extends z.ZodRawShape>(shape: S) =>
  z.strictObject({
    limit: z
      .preprocess(digits, z.int(LIMIT).min(1, LIMIT).max(100, LIMIT).meta({ default: 20 }))
      .default(20)
      .describe('Maximum number of items on a page.'),
    cursor: z
      .string()
      .optional()
      .describe('`next_cursor` of the previous page. It is valid only with the same filters and order.'),
    order: z
      .enum(['asc', 'desc'])
      .default('desc')
      .describe('`desc`: newest first; with `sort`, the highest value first.'),
    ...shape,
  })

const Pagination = z
  .object({
    total: z
      .int()
      .describe(
        `Number of items on all pages. Without a filter, lists of users, organizations, roles, groups, members of a group, clients, sessions and events are counted in full. In every other list, a total of ${COUNT_LIMIT + 1} means more than ${COUNT_LIMIT}.`,
      ),
    limit: z.int().describe('Maximum number of items on a page.'),
    has_more: z.boolean().describe('Whether another page follows.'),
    next_cursor: z.string().optional().describe('`cursor` of the next page; absent on the last page.'),
  })
  .meta({
    id: 'Pagination',
    description: 'Position of a page in its list.',
    example: { total: 1, limit: 20, has_more: false },
  })

/** Returns the answer schema of a list: items of `item` and the pagination. */
export const listOf = (id: string, item: z.ZodType) =>
  z
    .object({ data: z.array(item).describe('Items of this page.'), pagination: Pagination })
    .meta({ id, description: 'A page of a list.' })

interface ListQuery {
  limit: number
  cursor?: string | undefined
}

/**
 * Returns one page of a list, by keyset pagination. `fetch` gets the keyset after which the page starts, and
 * the number of rows to load, which is `limit + 1`. `keyset` returns the sort values of a row. The cursor is
 * bound to `name`, all filters and the caller's scope, because with another query the cursor would skip rows.
 */
export const answerPage = async <Row, Item>(
  context: Context,
  list: {
    name: string
    query: ListQuery & Record<string, unknown>
    /** The organization to which the caller is restricted. */
    scope: string
    fetch(after: Keyset | undefined, limit: number): Promise<Row[]>
    total(): Promise<number>
    keyset(row: Row): Keyset
    item(row: Row): Item
  },
) => {
  const { limit, cursor, ...filters } = list.query
  const binding = JSON.stringify([list.name, list.scope, filters])
  const key = context.master.derive('cursor')
  const after = cursor === undefined ? undefined : openCursor(key, cursor, binding)
  const [rows, total] = await Promise.all([list.fetch(after, limit + 1), list.total()])
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const has_more = rows.length > limit
  return {
    data: shown.map(list.item),
    pagination: {
      total,
      limit,
      has_more,
      ...(has_more && last && { next_cursor: sealCursor(key, list.keyset(last), binding) }),
    },
  }
}

/**
 * Returns a page of rows that are in the order of their ids. The id is the keyset. Paging in memory suffices,
 * because a user has at most 20 of these rows.
 */
export const pageOf = <Row extends { id: string }>(
  rows: readonly Row[],
  order: 'asc' | 'desc',
  after: Keyset | undefined,
  limit: number,
): Row[] => {
  const id = String(after?.[0] ?? '')
  const isBeyond = (row: Row) => after === undefined || (order === 'asc' ? row.id > id : row.id < id)
  return (order === 'asc' ? rows : rows.toReversed()).filter(isBeyond).slice(0, limit)
}
