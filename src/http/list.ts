import { z } from 'zod'
import type { Context } from '#src/context.ts'
import { type Keyset, openCursor, sealCursor } from '#src/lib/cursor.ts'
import { isPlain } from '#src/lib/text.ts'

/** Decimal digits and nothing else: `Number` would read `0x10`, `1e1` and blanks too. */
export const digits = (text: unknown): unknown =>
  typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : text

/** An id that a list is filtered by. An empty one is a slip, and must not pass for none. */
export const idFilter = z
  .string()
  .min(1, 'An id.')
  .max(256, 'At most 256 characters.')
  .refine(isPlain, 'Control characters are not allowed.')

const LIMIT = 'A whole number from 1 to 100.'

/** limit, cursor and order: what every list takes. */
export const listQuery = <S extends z.ZodRawShape>(shape: S) =>
  z.strictObject({
    limit: z.preprocess(digits, z.int(LIMIT).min(1, LIMIT).max(100, LIMIT).meta({ default: 20 })).default(20),
    cursor: z.string().optional(),
    order: z.enum(['asc', 'desc']).default('desc'),
    ...shape,
  })

/** The pagination envelope around `item`. */
export const listOf = (item: z.ZodType) =>
  z.object({
    data: z.array(item),
    pagination: z.object({
      total: z.int(),
      limit: z.int(),
      has_more: z.boolean(),
      next_cursor: z.string().optional(),
    }),
  })

/** A filtered total is exact up to here; one more means "more than that". */
export const COUNT_LIMIT = 10_000

interface ListQuery {
  limit: number
  cursor?: string | undefined
}

/**
 * One page by keyset. `fetch` gets the keyset after which to start and how many rows to bring (limit + 1); `keyset`
 * names the sort values of a row. The cursor is bound to `name`, to every filter and to the caller's scope, so it opens
 * no other query.
 */
export const page = async <Row, Item>(
  context: Context,
  list: {
    name: string
    query: ListQuery & Record<string, unknown>
    /** What restricts the caller: part of the cursor's binding. */
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
