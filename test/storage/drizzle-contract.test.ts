/**
 * Tests the parts of drizzle that src/storage uses but drizzle does not document. Any minor version may
 * change these parts. src/storage/{sqlite,postgres}/queries.ts put their own session below drizzle's builder,
 * because drizzle's session spends 2 to 4 µs per statement on placeholders and rows.
 * src/storage/statements.ts prepares the placeholders and rows once for each statement. The title of each
 * test names the tested member, so that a failure after an upgrade shows which member has changed.
 */
import { describe, expect, test } from 'bun:test'
import { Column, eq, getTableName, is, Param, Placeholder, type Query, SQL, sql } from 'drizzle-orm'
import * as pg from 'drizzle-orm/pg-core'
import * as sqlite from 'drizzle-orm/sqlite-core'
import type { SelectedField } from '#src/storage/statements.ts'

const json = {
  dataType: () => 'text',
  toDriver: (value: unknown) => JSON.stringify(value),
  fromDriver: (text: unknown) => JSON.parse(String(text)),
}
const engines = {
  sqlite: {
    a: sqlite.sqliteTable('a', {
      id: sqlite.integer('id'),
      flag: sqlite.integer('flag', { mode: 'boolean' }),
      note: sqlite.customType(json)('note'),
    }),
    b: sqlite.sqliteTable('b', { id: sqlite.integer('id') }),
    dialect: () => new sqlite.SQLiteAsyncDialect(),
    open: (dialect: unknown, session: unknown) =>
      Reflect.construct(sqlite.BaseSQLiteDatabase, ['async', dialect, session, undefined]),
  },
  postgres: {
    a: pg.pgTable('a', {
      id: pg.bigint('id', { mode: 'number' }),
      flag: pg.boolean('flag'),
      note: pg.customType(json)('note'),
    }),
    b: pg.pgTable('b', { id: pg.bigint('id', { mode: 'number' }) }),
    dialect: () => new pg.PgDialect(),
    open: (dialect: unknown, session: unknown) =>
      Reflect.construct(pg.PgDatabase, [dialect, session, undefined]),
  },
}

interface Statement {
  query: Query
  fields: SelectedField[] | undefined
  /** The third argument: `run` or `all` on SQLite, the name of the prepared statement on PostgreSQL. */
  method: unknown
  joinsNotNullableMap?: Record<string, boolean>
  executed: unknown[]
}

/**
 * Returns a query builder and the calls that drizzle makes. The session of the builder has only the members
 * that src/storage implements.
 */
const record = (engine: keyof typeof engines) => {
  const { a, b, dialect, open } = engines[engine]
  const statements: (Statement & { called: string })[] = []
  const prepare =
    (called: string) => (query: Query, fields: SelectedField[] | undefined, method: unknown) => {
      const statement: (typeof statements)[number] = { called, query, fields, method, executed: [] }
      statements.push(statement)
      const execute = async (values?: unknown) => {
        statement.executed.push(values)
        return [{ answered: true }]
      }
      // The builder of SQLite calls `run` or `all`, as `method` says. The caller of a prepared statement
      // executes the statement.
      const methods = engine === 'sqlite' ? { run: execute, all: execute } : { setToken: () => statement }
      return Object.assign(statement, { execute, ...methods })
    }
  const counted: SQL[] = []
  const session = {
    prepareQuery: prepare('prepareQuery'),
    prepareOneTimeQuery: prepare('prepareOneTimeQuery'),
    count: async (query: SQL) => {
      counted.push(query)
      return 7
    },
  }
  // As in src, the builder of PostgreSQL has the type of SQLite's builder.
  const q = open(dialect(), session) as unknown as sqlite.BaseSQLiteDatabase<'async', unknown>
  return {
    q,
    statements,
    counted,
    a: a as unknown as typeof engines.sqlite.a,
    b: b as unknown as typeof engines.sqlite.b,
    dialect,
  }
}

describe.each(['sqlite', 'postgres'] as const)('%s', engine => {
  test('session.prepareQuery gets the fields of a select as { path, field }; prepared.execute gets the values', async () => {
    const { q, statements, a } = record(engine)
    const prepared = q
      .select({ id: a.id, deep: { flag: a.flag } })
      .from(a)
      .where(eq(a.id, sql.placeholder('id')))
      .prepare()
    expect(await prepared.execute({ id: 1 })).toEqual([{ answered: true }] as never)
    expect(
      statements.map(({ called, fields, executed }) => [called, fields?.map(({ path }) => path), executed]),
    ).toEqual([['prepareQuery', [['id'], ['deep', 'flag']], [{ id: 1 }]]])
    expect(statements[0]?.fields?.every(({ field }) => is(field, Column))).toBe(true)
  })

  test('session.prepareOneTimeQuery of SQLite, prepareQuery of PostgreSQL, run a query that is awaited', async () => {
    const { q, statements, a } = record(engine)
    await q.select().from(a)
    await q.insert(a).values({ id: 1 })
    await q.update(a).set({ id: 2 }).returning()
    await q.delete(a)
    const called = engine === 'sqlite' ? 'prepareOneTimeQuery' : 'prepareQuery'
    expect(statements.map(({ called, fields }) => [called, fields !== undefined])).toEqual([
      [called, true],
      [called, false],
      [called, true],
      [called, false],
    ])
    // `method` shows which of the two methods of a statement drizzle calls.
    if (engine === 'sqlite')
      expect(statements.map(({ method }) => method)).toEqual(['all', 'run', 'all', 'run'])
  })

  test('session.count answers $count', async () => {
    const { q, counted, a, dialect } = record(engine)
    expect(await q.$count(a)).toBe(7)
    expect(counted.map(query => dialect().sqlToQuery(query).sql)).toEqual([
      engine === 'sqlite' ? 'select count(*) from "a"' : 'select count(*) as count from "a";',
    ])
  })

  test('prepared.joinsNotNullableMap says for each table whether a join may leave it null', () => {
    const { q, statements, a, b } = record(engine)
    q.select({ a, b }).from(a).leftJoin(b, eq(a.id, b.id)).prepare()
    expect(statements[0]?.joinsNotNullableMap).toEqual({ a: true, b: false })
    expect(statements[0]?.fields?.map(({ field }) => is(field, Column) && getTableName(field.table))).toEqual(
      ['a', 'a', 'a', 'b'],
    )
  })

  test('Param.value, Param.encoder and Placeholder.name are in the parameters of a query', () => {
    const { q, a } = record(engine)
    const { params } = q
      .update(a)
      .set({ note: sql.placeholder('n') as never, flag: true })
      .where(eq(a.id, sql.placeholder('id')))
      .toSQL() as unknown as { params: unknown[] }
    const [flag, note, id] = params
    expect(flag).toBe(engine === 'sqlite' ? 1 : true)
    expect(is(id, Placeholder) && id.name).toBe('id')
    expect(is(note, Param) && is(note.value, Placeholder) && note.value.name).toBe('n')
    expect(is(note, Param) && note.encoder.mapToDriverValue({ x: 1 })).toBe('{"x":1}')
  })

  test('Column.prototype.mapFromDriverValue and mapToDriverValue are inherited by columns without a mapping', () => {
    const { a, b } = record(engine)
    const { mapFromDriverValue, mapToDriverValue } = Column.prototype
    expect(a.note.mapFromDriverValue).not.toBe(mapFromDriverValue)
    expect(a.note.mapToDriverValue).not.toBe(mapToDriverValue)
    expect(a.note.mapFromDriverValue('{"x":1}')).toEqual({ x: 1 })
    // This column has no decoder, so its values are used as the engine returns them.
    expect([mapFromDriverValue, mapToDriverValue].map(map => map.call(b.id, 5))).toEqual([5, 5])
    if (engine === 'sqlite') expect(b.id.mapFromDriverValue).toBe(mapFromDriverValue)
  })

  test('SQL.decoder and SQL.Aliased.sql determine how an expression is read', () => {
    const { q, statements, a } = record(engine)
    q.select({ bare: sql`1`.mapWith(Number), named: sql`2`.mapWith(String).as('named') })
      .from(a)
      .prepare()
    const [bare, named] = statements[0]?.fields?.map(({ field }) => field) ?? []
    if (!is(bare, SQL) || !is(named, SQL.Aliased)) throw new Error('no SQL, no SQL.Aliased')
    expect(Reflect.get(bare, 'decoder').mapFromDriverValue('5')).toBe(5)
    expect(Reflect.get(named.sql, 'decoder').mapFromDriverValue(5)).toBe('5')
  })
})

test('SQLiteAsyncDialect.escapeParam renders each parameter, and can be replaced', () => {
  const dialect = engines.sqlite.dialect()
  const query = sql`SELECT ${1}, ${2}`
  expect(dialect.sqlToQuery(query).sql).toBe('SELECT ?, ?')
  dialect.escapeParam = () => '+?'
  expect(dialect.sqlToQuery(query).sql).toBe('SELECT +?, +?')
})
