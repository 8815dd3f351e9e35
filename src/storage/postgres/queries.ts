import type { Query, SQL } from 'drizzle-orm'
import { PgDatabase, PgDialect, type PgSession } from 'drizzle-orm/pg-core'
import { AppError } from '#src/lib/app-error.ts'
import {
  binder,
  type Decode,
  decoderOf,
  type Field,
  type Row,
  rowMapper,
  type Values,
} from '#src/storage/statements.ts'
import type { Queries } from '#src/storage/store.ts'
import { postgresTables } from './tables.ts'

/** What a connection answers: rows as arrays, and what the server said of their columns. */
export type Answer = unknown[][] & { columns: { type: number }[] | null }
/** Runs one statement; Bun prepares it once a connection and keeps it by its text. */
export type Run = (text: string, values: unknown[]) => Promise<Answer>

/** int8 and numeric, which Bun answers as text. Ours are counts, times and sums below 2^53. */
const NUMBERS: ReadonlySet<number> = new Set([20, 1700])

/** PostgreSQL stores every character but this one. */
const checked = (values: unknown[]): unknown[] => {
  for (const value of values)
    if (typeof value === 'string' && value.includes('\0'))
      throw new AppError('invalid_request', 'The character U+0000 is not allowed in any text.')
  return values
}

/** Drizzle's builder over one connection, or over any of a pool, under the type that SQLite's has. */
export const postgresQueries = (run: Run): Queries => {
  const dialect = new PgDialect()
  const prepareQuery = (query: Query, fields: Field[] | undefined) => {
    const bind = binder(query.params)
    let read: ((answer: Answer) => Row[]) | undefined
    const self = {
      /** Set by drizzle on queries with joins after they are prepared. */
      joinsNotNullableMap: undefined as Record<string, boolean> | undefined,
      setToken: () => self,
      execute: async (values?: Values): Promise<Row[]> => {
        const answer = await run(query.sql, checked(bind(values)))
        if (!fields) return []
        read ??= reader(fields, answer, self.joinsNotNullableMap)
        return read(answer)
      },
    }
    return self
  }
  const session = {
    prepareQuery,
    count: async (query: SQL) => {
      const { sql, params } = dialect.sqlToQuery(query)
      const [row] = await run(sql, checked(binder(params)()))
      return Number(row?.[0])
    },
  }
  const builder = new PgDatabase(dialect, session as unknown as PgSession, undefined)
  return Object.assign(builder as unknown as Queries, { tables: postgresTables, engine: 'postgres' as const })
}

const reader = (fields: Field[], { columns }: Answer, notNullable: Record<string, boolean> | undefined) => {
  const decoders = fields.map((field, i): Decode | undefined => {
    const decode = decoderOf(field)
    if (!NUMBERS.has(columns?.[i]?.type ?? 0)) return decode
    return decode ? value => decode(Number(value)) : Number
  })
  const mapRow = rowMapper(fields, decoders, notNullable)
  return (answer: Answer): Row[] => answer.map(mapRow)
}
