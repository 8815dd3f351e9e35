import type { SQLQueryBindings, Statement } from 'bun:sqlite'
import type { Query, SQL } from 'drizzle-orm'
import { BaseSQLiteDatabase, SQLiteAsyncDialect, type SQLiteSession } from 'drizzle-orm/sqlite-core'
import {
  binder,
  type Decode,
  decoderOf,
  optionalObjects,
  type Parameter,
  parameterOf,
  type Row,
  rowMapper,
  type SelectedField,
  type Values,
} from '#src/storage/statements.ts'
import type { Queries } from '#src/storage/store.ts'
import { madeStatement } from './made-statements.ts'
import { sqliteTables } from './tables.ts'

/**
 * Maximum number of compiled statements that a connection keeps for the next query with the same text. It
 * limits the memory for queries whose text varies.
 */
const MAX_STATEMENTS = 500

/** The members of a compiled statement that queries use. */
export type Prepared = Pick<
  Statement<unknown, SQLQueryBindings[]>,
  'all' | 'values' | 'run' | 'columnNames' | 'finalize'
>

/** A connection, or several connections that behave like one (reads.ts). */
interface Connection {
  prepare(text: string): Prepared
}

/** The selected fields, and the names of objects that are null when a left join finds no row. */
interface Result {
  fields: { path: string[]; decode: Decode | undefined }[]
  optional: ReadonlySet<string>
}

/**
 * Makes a function return its result as a promise. An async function would allocate more objects per call.
 */
const settled =
  <A, R>(call: (argument?: A) => R) =>
  (argument?: A): Promise<R> => {
    try {
      return Promise.resolve(call(argument))
    } catch (error) {
      return Promise.reject(error)
    }
  }

/**
 * Returns drizzle's builder over one connection. Drizzle's own session for bun:sqlite spends 2 to 4 µs per
 * statement on placeholders and rows. This session prepares the binding and decoding of each statement once.
 * `guard` runs before each statement and throws when the connection must not be used.
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

  const executable = (sql: string, parameters: Parameter[], result: () => Result) => {
    const statement = statementOf(sql)
    const bind = binder(parameters) as (values?: Values) => SQLQueryBindings[]
    let read: ((params: SQLQueryBindings[]) => Row[]) | undefined
    return {
      run: settled((values?: Values) => {
        guard()
        return statement.run(...bind(values)).changes
      }),
      all: settled((values?: Values) => {
        guard()
        read ??= reader(statement, result())
        return read(bind(values))
      }),
    }
  }
  const prepareQuery = (query: Query, fields: SelectedField[] = [], method: 'run' | 'all') => {
    const { run, all } = executable(query.sql, query.params.map(parameterOf), () => ({
      fields: fields.map(field => ({ path: field.path, decode: decoderOf(field) })),
      optional: optionalObjects(fields, self.joinsNotNullableMap),
    }))
    const self = {
      run,
      all,
      execute: method === 'run' ? run : all,
      /** Drizzle sets this member after it has prepared a query with joins. */
      joinsNotNullableMap: undefined as Record<string, boolean> | undefined,
    }
    return self
  }
  const dialect = sqliteDialect()
  const session = {
    prepareQuery,
    prepareOneTimeQuery: prepareQuery,
    count: async (query: SQL) => {
      guard()
      const { sql, params } = dialect.sqlToQuery(query)
      return Number(
        statementOf(sql).values(
          ...(binder(params.map(parameterOf))(undefined) as SQLQueryBindings[]),
        )[0]?.[0],
      )
    },
  }
  const builder = new BaseSQLiteDatabase(
    'async',
    dialect,
    session as unknown as SQLiteSession<'async', unknown, Record<string, never>, Record<string, never>>,
    undefined,
  )
  const finalize = () => {
    for (const statement of statements.values()) statement.finalize()
    statements.clear()
  }
  /** Returns a statement whose SQL was made at build time. */
  const made = (name: string) => {
    const { sql, parameters, fields } = madeStatement(name)
    const { run, all } = executable(sql, parameters, () => ({ fields: fields ?? [], optional: new Set() }))
    return { execute: fields ? all : run }
  }
  return Object.assign(builder, { tables: sqliteTables, engine: 'sqlite' as const, made, finalize })
}

/** Returns the dialect of all statements. */
export const sqliteDialect = (): SQLiteAsyncDialect => {
  const dialect = new SQLiteAsyncDialect()
  // If a join compares a parameter with a column, each binding of the parameter makes SQLite plan the join
  // again, in 5 to 20 µs. The unary plus hides the parameter from the planner and does not change its value.
  dialect.escapeParam = () => '+?'
  return dialect
}

const reader = (statement: Prepared, { fields, optional }: Result) => {
  const names = statement.columnNames
  if (fields.every(({ path }, i) => path.length === 1 && path[0] === names[i])) {
    // For flat rows whose keys are the column names, bun:sqlite creates the objects.
    const decoded = fields.flatMap(({ path, decode }) => (decode ? [[path[0] ?? '', decode] as const] : []))
    return (params: SQLQueryBindings[]): Row[] => {
      const rows = statement.all(...params) as Row[]
      for (const row of rows)
        for (const [key, decode] of decoded) if (row[key] !== null) row[key] = decode(row[key])
      return rows
    }
  }
  const mapRow = rowMapper(
    fields,
    fields.map(({ decode }) => decode),
    optional,
  )
  return (params: SQLQueryBindings[]): Row[] => statement.values(...params).map(mapRow)
}
