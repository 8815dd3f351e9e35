import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StorageError } from '#src/storage/errors.ts'
import { openStore } from '#src/storage/open.ts'
import { applyMigrations, type Migrations } from '#src/storage/sqlite/apply-migrations.ts'
import { migrate } from '#src/storage/sqlite/migrate.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { temporaryDatabase } from '#test/support/store.ts'
import { postgresChanges, sqliteChanges } from '../../.ci/drizzle.ts'

const first: Migrations = { '0000_a.sql': 'CREATE TABLE a (x) ; INSERT INTO a VALUES (1)' }
const second: Migrations = { ...first, '0001_b.sql': 'CREATE TABLE b (x)' }

const tablesOf = (db: Database) =>
  db.query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").values().flat()

test('the latest migration matches tables.ts: run `bun run db:generate NAME` after changing it', async () => {
  expect((await sqliteChanges()).statements).toEqual([])
  expect((await postgresChanges()).statements).toEqual([])
})

test('R-09 refuses a database from before the first release with one line', () => {
  using db = new Database(':memory:')
  db.run(`PRAGMA application_id = ${0x47617465}`)
  applyMigrations(db, [['0000_tables.sql', 'CREATE TABLE users (x)']])
  expect(() => migrate(db)).toThrow(
    new StorageError(
      ':memory: was made before the first release and cannot be upgraded: export it with the version that made it, and apply the file to a new instance.',
    ),
  )
})

test('applies missing migrations once, in order', () => {
  using db = new Database(':memory:')
  migrate(db, first)
  migrate(db, first)
  expect(tablesOf(db)).toEqual(['a', 'migrations'])
  migrate(db, second)
  expect(tablesOf(db)).toEqual(['a', 'b', 'migrations'])
  expect(db.query('SELECT count(*) FROM a').values()).toEqual([[1]])
})

test('a failed migration changes nothing', () => {
  using db = new Database(':memory:')
  migrate(db, first)
  const broken = { ...second, '0002_c.sql': 'CREATE TABLE c (x); CREATE TABLE c (x)' }
  expect(() => migrate(db, broken)).toThrow('table c already exists')
  expect(tablesOf(db)).toEqual(['a', 'migrations'])
  migrate(db, second)
  expect(tablesOf(db)).toEqual(['a', 'b', 'migrations'])
})

test('refuses a database that a newer version has upgraded', () => {
  using db = new Database(':memory:')
  migrate(db, second)
  expect(() => migrate(db, first)).toThrow(
    new StorageError(
      ':memory: was upgraded by a newer version (0001_b.sql). Use that version, or restore a backup from before the upgrade.',
    ),
  )
})

test('refuses a database made with a different text of a migration', () => {
  using db = new Database(':memory:')
  migrate(db, first)
  const changed = { '0000_a.sql': 'CREATE TABLE a (x)' }
  expect(() => migrate(db, changed)).toThrow(StorageError)
})

test('does not upgrade for a command beside the server', async () => {
  using db = new Database(':memory:')
  migrate(db, first)
  expect(() => migrate(db, second, false)).toThrow(
    new StorageError(':memory: has an older version. Start the server to upgrade it.'),
  )
  using empty = new Database(':memory:')
  expect(() => migrate(empty, first, false)).toThrow(
    new StorageError(':memory: has no instance. Start the server to create it.'),
  )
  expect(tablesOf(empty)).toEqual([])
  const path = await temporaryDatabase()
  await (await openSqlite({ path, migrate: false })).close()
})

test('R-06 refuses foreign, damaged and unreachable files with one line, and leaves them alone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const foreign = join(folder, 'foreign.db')
  using db = new Database(foreign)
  db.run('CREATE TABLE theirs (x)')
  const text = join(folder, 'text.db')
  writeFileSync(
    text,
    'This is no database, only some text that is long enough to be read as a header of a hundred bytes or so.',
  )
  for (const path of [foreign, text, folder, join(folder, 'missing', 'x.db')]) {
    const error = await openSqlite({ path }).catch(error => error)
    expect(error).toBeInstanceOf(StorageError)
    expect(error.message).toStartWith(path)
    expect(error.message).not.toContain('\n')
    expect(error.exit_code).toBe(78)
  }
  expect(tablesOf(db)).toEqual(['theirs'])
  expect(readFileSync(text, 'utf8')).toStartWith('This is no database')
})

test('openStore creates the data directory and a file that only its owner can read', async () => {
  const data_dir = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'new', 'data')
  const store = await openStore({ data_dir })
  await store.write(tx => tx.insert(tx.tables.settings).values({ name: 'n', value: 1, updated_at: 1 }))
  const modeOf = (path: string) => statSync(path).mode & 0o777
  expect(modeOf(data_dir)).toBe(0o700)
  for (const file of ['gatehouse.db', 'gatehouse.db-wal']) expect(modeOf(join(data_dir, file))).toBe(0o600)
  await store.close()
  for (const database_url of ['postgres://localhost', 'mysql://localhost/gatehouse'])
    await expect(openStore({ data_dir, database_url })).rejects.toThrow('GATEHOUSE_DATABASE_URL')
})
