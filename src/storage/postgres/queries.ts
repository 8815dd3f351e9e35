import type { Query, SQL } from 'drizzle-orm'
import { PgDatabase, PgDialect, type PgSession } from 'drizzle-orm/pg-core'
import { AppError } from '#src/lib/app-error.ts'
import {
  binder,
  type Decode,
  decoderOf,
  optionalObjects,
  parameterOf,
  type Row,
  rowMapper,
  type SelectedField,
  type Values,
} from '#src/storage/statements.ts'
import type { Queries } from '#src/storage/store.ts'
import { postgresTables } from './tables.ts'

/** Result of a statement: rows as arrays, the type of each column, and the number of rows. */
export type QueryResult = unknown[][] & { columns: { type: number }[] | null; count: number }
/** Runs one statement. Bun prepares each text once per connection. */
export type Run = (text: string, values: unknown[]) => Promise<QueryResult>

/**
 * The types int8 and numeric, whose values Bun returns as text. All values in this database are below 2^53.
 */
const NUMBERS: ReadonlySet<number> = new Set([20, 1700])

/** Refuses U+0000, the only character that PostgreSQL cannot store. */
const checked = (values: unknown[]): unknown[] => {
  for (const value of values)
    if (typeof value === 'string' && value.includes('\0'))
      throw new AppError('invalid_request', 'The character U+0000 is not allowed in any text.')
  return values
}

/** Returns drizzle's builder for a connection or pool, typed as the SQLite builder. */
export const postgresQueries = (run: Run): Queries => {
  const dialect = new PgDialect()
  const prepareQuery = (query: Query, fields: SelectedField[] | undefined) => {
    const bind = binder(query.params.map(parameterOf))
    let read: ((answer: QueryResult) => Row[]) | undefined
    const self = {
      /** Drizzle sets this member after it has prepared a query with joins. */
      joinsNotNullableMap: undefined as Record<string, boolean> | undefined,
      setToken: () => self,
      execute: async (values?: Values): Promise<Row[] | number> => {
        const answer = await run(query.sql, checked(bind(values)))
        if (!fields) return answer.count
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
      const [row] = await run(sql, checked(binder(params.map(parameterOf))()))
      return Number(row?.[0])
    },
  }
  const builder = new PgDatabase(dialect, session as unknown as PgSession, undefined)
  return Object.assign(builder as unknown as Queries, { tables: postgresTables, engine: 'postgres' as const })
}

const reader = (
  fields: SelectedField[],
  { columns }: QueryResult,
  notNullable: Record<string, boolean> | undefined,
) => {
  const decoders = fields.map((field, i): Decode | undefined => {
    const decode = decoderOf(field)
    if (!NUMBERS.has(columns?.[i]?.type ?? 0)) return decode
    return decode ? value => decode(Number(value)) : Number
  })
  const mapRow = rowMapper(fields, decoders, optionalObjects(fields, notNullable))
  return (answer: QueryResult): Row[] => answer.map(mapRow)
}
