import type { SQLQueryBindings, Statement } from 'bun:sqlite'
import type { Query, SQL } from 'drizzle-orm'
import { BaseSQLiteDatabase, SQLiteAsyncDialect, type SQLiteSession } from 'drizzle-orm/sqlite-core'
import {
  binder,
  decoderOf,
  type Row,
  rowMapper,
  type SelectedField,
  type Values,
} from '#src/storage/statements.ts'
import type { Queries } from '#src/storage/store.ts'
import { sqliteTables } from './tables.ts'

/**
 * Maximum number of compiled statements that a connection keeps for the next query with the same text. The
 * limit bounds the memory of queries with many shapes.
 */
const MAX_STATEMENTS = 500

/** A compiled statement, as far as queries use it. */
export type Prepared = Pick<
  Statement<unknown, SQLQueryBindings[]>,
  'all' | 'values' | 'run' | 'columnNames' | 'finalize'
>

/** A connection, or several that behave as one (reads.ts). */
interface Connection {
  prepare(text: string): Prepared
}

/**
 * Returns drizzle's builder over one connection. Drizzle's session for bun:sqlite spends 2 to 4 µs per
 * statement on placeholders and rows; here each statement prepares its binding and decoding once. `guard`
 * runs before each statement and throws when the connection must not be used.
 */
export const sqliteQueries = (db: Connection, guard: () => void): Queries & { finalize(): void } => {
  const statements = new Map<string, Prepared>()
  const statementOf = (text: string): Prepared => {
    const known = statements.get(text)
    const statement = known ?? db.prepare(text)
    if (known) statements.delete(text)
    else if (statements.size >= MAX_STATEMENTS) statements.delete(statements.keys().next().value ?? '')
    statements.set(text, statement)
    return statement
  }

  const dialect = new SQLiteAsyncDialect()
  // Binding a parameter that a join compares with a column makes SQLite plan the join again, in 5 to 20 µs.
  // The unary plus hides the parameter from the planner and has no effect on its value.
  dialect.escapeParam = () => '+?'
  const prepareQuery = (query: Query, fields: SelectedField[] | undefined, method: 'run' | 'all') => {
    const statement = statementOf(query.sql)
    const bind = binder(query.params) as (values?: Values) => SQLQueryBindings[]
    let read: ((params: SQLQueryBindings[]) => Row[]) | undefined
    const self = {
      /** Drizzle sets this member after preparing a query with joins. */
      joinsNotNullableMap: undefined as Record<string, boolean> | undefined,
      run: async (values?: Values) => {
        guard()
        statement.run(...bind(values))
      },
      all: async (values?: Values) => {
        guard()
        read ??= reader(statement, fields ?? [], self.joinsNotNullableMap)
        return read(bind(values))
      },
      execute: (values?: Values) => self[method](values),
    }
    return self
  }
  const session = {
    prepareQuery,
    prepareOneTimeQuery: prepareQuery,
    count: async (query: SQL) => {
      guard()
      const { sql, params } = dialect.sqlToQuery(query)
      return Number(statementOf(sql).values(...(binder(params)(undefined) as SQLQueryBindings[]))[0]?.[0])
    },
  }
  const builder = new BaseSQLiteDatabase(
    'async',
    dialect,
    session as unknown as SQLiteSession<'async', unknown, Record<string, never>, Record<string, never>>,
    undefined,
  )
  const rows: Queries['rows'] = async (text, ...values) => {
    guard()
    return statementOf(text).values(...values)
  }
  const finalize = () => {
    for (const statement of statements.values()) statement.finalize()
    statements.clear()
  }
  return Object.assign(builder, { rows, tables: sqliteTables, engine: 'sqlite' as const, finalize })
}

const reader = (
  statement: Prepared,
  fields: SelectedField[],
  notNullable: Record<string, boolean> | undefined,
) => {
  const decoders = fields.map(decoderOf)
  const keys = fields.map(({ path }) => path.join('.'))
  const names = statement.columnNames
  if (fields.every(({ path }, i) => path.length === 1 && path[0] === names[i])) {
    // For flat rows whose keys are the column names, bun:sqlite creates the objects.
    const decoded = decoders.flatMap((decode, i) => (decode ? [[keys[i] ?? '', decode] as const] : []))
    return (params: SQLQueryBindings[]): Row[] => {
      const rows = statement.all(...params) as Row[]
      for (const row of rows)
        for (const [key, decode] of decoded) if (row[key] !== null) row[key] = decode(row[key])
      return rows
    }
  }
  const mapRow = rowMapper(fields, decoders, notNullable)
  return (params: SQLQueryBindings[]): Row[] => statement.values(...params).map(mapRow)
}
