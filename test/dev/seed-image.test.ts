import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { defaultSeed } from '#src/dev/default-seed.ts'
import { type StartOptions, start } from '#src/testing/start.ts'
import { FILE, seedRows } from '../../.ci/seed-rows.ts'

type Row = Record<string, unknown>

/** Columns whose values differ at each start. */
const FRESH = /(?:_at|^timestamp|^hour|^mac|^private_key|^public_jwk)$/

const isFresh = (table: string, column: string, row: Row): boolean =>
  FRESH.test(column) ||
  (column === 'id' && ['events', 'signing_keys'].includes(table)) ||
  (column === 'value' && row.name === 'instance_key')

/** Returns the rows of each table, without the internal tables of the search index. */
const contentOf = (db: Database): [name: string, rows: Row[]][] =>
  (db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").values().flat() as string[])
    .filter(name => !/^users_search_(?:data|idx|docsize|config)$/.test(name))
    .map(name => [name, db.query(`SELECT * FROM "${name}"`).all() as Row[]])

const withoutFresh = (content: [string, Row[]][]) =>
  content.map(([table, rows]) => [
    table,
    rows
      .map(row => Object.fromEntries(Object.entries(row).filter(([name]) => !isFresh(table, name, row))))
      .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
  ])

const startedWith = async <T>(options: StartOptions, look: (db: Database) => T): Promise<T> => {
  const server = await start(options)
  using db = new Database(join(server.data_dir, 'gatehouse.db'), { readonly: true })
  const found = look(db)
  await server.stop()
  return found
}

test('the prepared rows are those that the default seed writes', async () => {
  expect(await seedRows()).toEqual(await Bun.file(FILE).json())
})

test('a server with the prepared database has the same contents as a server that applies the seed', async () => {
  // A server without the option `seed` uses the prepared rows. A server with the option applies the seed
  // through the services of the admin API, even if the seed equals the default seed.
  const applied = await startedWith({ seed: { ...defaultSeed } }, contentOf)
  const prepared = await startedWith({}, contentOf)
  expect(withoutFresh(prepared)).toEqual(withoutFresh(applied))
})

test('the prepared objects are as old as the server, in the order of the seed', async () => {
  const before = Date.now()
  const [names, times] = await startedWith({}, db => {
    const made = 'SELECT username, created_at FROM users UNION SELECT client_id, created_at FROM clients'
    const changed = 'SELECT updated_at FROM organizations UNION SELECT updated_at FROM settings'
    return [
      db.query(`${made} ORDER BY created_at`).values() as [string, number][],
      db.query(`${changed} UNION SELECT timestamp FROM events`).values().flat() as number[],
    ] as const
  })
  expect(names.map(([name]) => name)).toEqual(['gatehouse-admin', 'alice', 'admin', 'dev-web', 'dev-service'])
  for (const time of [...names.map(([, time]) => time), ...times]) {
    expect(time).toBeGreaterThan(before - 1_000)
    expect(time).toBeLessThanOrEqual(Date.now())
  }
})

test('no key of a prepared database is that of another', async () => {
  const keysOf = () =>
    startedWith({}, db => [
      ...db.query("SELECT value FROM settings WHERE name = 'instance_key'").values().flat(),
      ...db.query('SELECT public_jwk FROM signing_keys').values().flat(),
      ...db.query('SELECT mac FROM events').values().flat(),
    ])
  const keys = [...(await keysOf()), ...(await keysOf())]
  expect(keys).toHaveLength(12)
  expect(new Set(keys).size).toBe(12)
})
