// Writes the SQL of the statements that a start executes (`preparedForStart`) to
// src/storage/sqlite/made-statements.json. With --check the script changes nothing; it compares the SQL with
// the file.

import { join } from 'node:path'
import { Glob } from 'bun'
import { Column, is, noopDecoder, Param, Placeholder, type Query, SQL } from 'drizzle-orm'
import {
  BaseSQLiteDatabase,
  SQLiteBlobBuffer,
  SQLiteBoolean,
  SQLiteCustomColumn,
  type SQLiteSession,
} from 'drizzle-orm/sqlite-core'
import type { Form, MadeStatement } from '#src/storage/sqlite/made-statements.ts'
import { sqliteDialect } from '#src/storage/sqlite/queries.ts'
import { sqliteTables } from '#src/storage/sqlite/tables.ts'
import type { SelectedField } from '#src/storage/statements.ts'
import { type Queries, startStatements } from '#src/storage/store.ts'

const SOURCE = join(import.meta.dir, '../src')
const FILE = join(SOURCE, 'storage/sqlite/made-statements.json')

interface Built {
  query: Query
  fields: SelectedField[] | undefined
  joinsNotNullableMap?: Record<string, boolean>
}

const builder = new BaseSQLiteDatabase(
  'async',
  sqliteDialect(),
  {
    prepareQuery: (query: Query, fields: Built['fields']): Built => ({ query, fields }),
  } as unknown as SQLiteSession<'async', unknown, Record<string, never>, Record<string, never>>,
  undefined,
)
const queries: Queries = Object.assign(builder, { tables: sqliteTables, engine: 'sqlite' as const })

/** Returns how the values of a column are converted. Returns undefined when they are stored unchanged. */
const formOf = (column: Column, own: 'mapToDriverValue' | 'mapFromDriverValue'): Form | undefined => {
  if (column[own] === Column.prototype[own]) return undefined
  if (is(column, SQLiteBoolean)) return 'boolean'
  if (is(column, SQLiteCustomColumn)) return 'json'
  if (is(column, SQLiteBlobBuffer)) return 'bytes'
  throw new Error(`no conversion is known for the values of the column ${column.name}`)
}

const parameterOf = (param: unknown): MadeStatement['parameters'][number] => {
  const placeholder = is(param, Param) ? param.value : param
  if (!is(placeholder, Placeholder)) return { value: param }
  const form = is(param, Param) && is(param.encoder, Column) && formOf(param.encoder, 'mapToDriverValue')
  return form ? `${placeholder.name}:${form}` : placeholder.name
}

const fieldOf = ({ path, field }: SelectedField): string => {
  const decoder = is(field, Column) ? field : Reflect.get(is(field, SQL) ? field : field.sql, 'decoder')
  if (!is(decoder, Column) && decoder !== noopDecoder)
    throw new Error(`no conversion is known for the values of the field ${path}`)
  const form = is(decoder, Column) && formOf(decoder, 'mapFromDriverValue')
  return form ? `${path.join('.')}:${form}` : path.join('.')
}

/** Returns the content of the generated file: the statements that a start executes, by name. */
export const madeStatements = async (): Promise<Record<string, MadeStatement>> => {
  for await (const file of new Glob('**/*.ts').scan(SOURCE)) {
    const path = join(SOURCE, file)
    if ((await Bun.file(path).text()).includes('preparedForStart(')) await import(path)
  }
  return Object.fromEntries(
    [...startStatements]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, build]) => {
        const { query, fields, joinsNotNullableMap } = build(
          queries,
          queries.tables,
        ).prepare() as unknown as Built
        if (joinsNotNullableMap && Object.values(joinsNotNullableMap).includes(false))
          throw new Error(`${name}: a left join is not supported`)
        const parameters = query.params.map(parameterOf)
        return [
          name,
          { sql: query.sql, parameters, ...(fields && { fields: fields.map(fieldOf).join(' ') }) },
        ]
      }),
  )
}

if (import.meta.main) {
  const made = await madeStatements()
  if (!process.argv.includes('--check')) await Bun.write(FILE, JSON.stringify(made))
  else if (!Bun.deepEquals(made, await Bun.file(FILE).json())) {
    console.error(`${FILE} is out of date: run \`bun run statements:generate\`.`)
    process.exit(1)
  }
}
