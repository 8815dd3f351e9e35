import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { restoreBackup, verify, withReadOnly } from '#src/storage/sqlite/backup.ts'
import { inspect } from '#src/storage/sqlite/inspect.ts'
import { migrate, sqliteMigrations } from '#src/storage/sqlite/migrate.ts'
import { toPostgres } from '#src/storage/transfer/migrate-to.ts'
import { temporaryDatabase } from '#test/support/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Returns a complete database of this version, changed by `sql`. */
const changed = async (sql: string): Promise<string> => {
  const path = await temporaryDatabase()
  using db = new Database(path)
  db.run(sql)
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  db.run('PRAGMA journal_mode = DELETE')
  return path
}

const another =
  'DROP TRIGGER users_delete; CREATE TRIGGER users_delete AFTER DELETE ON users BEGIN SELECT 1; END'
const untyped = 'DROP TABLE settings; CREATE TABLE settings (name, value, updated_at)'

const clientsAsView = 'ALTER TABLE clients RENAME TO theirs; CREATE VIEW clients AS SELECT * FROM theirs'
const migrationsAsView =
  'ALTER TABLE migrations RENAME TO theirs; CREATE VIEW Migrations AS SELECT * FROM theirs'
const evil = `CREATE TRIGGER evil AFTER INSERT ON users BEGIN UPDATE clients SET name = 'theirs'; END`

describe('a file whose schema differs from its migrations', () => {
  test.each([
    ['a table whose name is SQL', 'CREATE TABLE "organizations"" AS a, organizations AS ""b" (x)', 'unknown'],
    ['a trigger dropped', 'DROP TRIGGER events_immutable', '"trigger" "events_immutable" is missing'],
    ['a foreign trigger', evil, '"trigger" "evil" is unknown'],
    ['a trigger that does something else', another, '"trigger" "users_delete" is changed'],
    ['clients as a view', clientsAsView, '"table" "clients" is missing'],
    [
      'migrations as a view',
      migrationsAsView,
      'its table "migrations" is not the one that Gatehouse creates',
    ],
    ['an index dropped', 'DROP INDEX', 'is missing'],
    ['an index more', 'CREATE INDEX more ON users (email)', '"index" "more" is unknown'],
    ['a column more', 'ALTER TABLE users ADD COLUMN more TEXT', '"table" "users" is changed'],
    ['a table more', `CREATE TABLE "a\u001b[2J" (x)`, String.raw`"table" "a\u001b[2J" is unknown`],
    ['a table of another kind', untyped, '"table" "settings" is changed'],
  ])(
    'H-51 %s is refused by check, restore and migrate-to, and nothing is replaced',
    async (_, sql, reason) => {
      const index = /DROP INDEX/.test(sql) ? `DROP INDEX ${await someIndex()}` : sql
      const path = await changed(index)
      const target = join(folder, 'target.db')
      copyFileSync(await temporaryDatabase(), target)
      const before = readFileSync(target)
      const refused = { name: 'StorageError', exit_code: 78, message: expect.stringContaining(reason) }

      expect(() => verify(path)).toThrow(expect.objectContaining(refused))
      await expect(restoreBackup(path, target, async () => {})).rejects.toMatchObject(refused)
      expect(readFileSync(target).equals(before)).toBeTrue()
      // The file is refused before the server is contacted.
      const nowhere = 'postgres://nobody@127.0.0.1:9/none'
      await expect(toPostgres(path, nowhere, { replace: true, onProgress: () => {} })).rejects.toMatchObject(
        refused,
      )
    },
  )

  const someIndex = async (): Promise<string> =>
    withReadOnly(await temporaryDatabase(), db =>
      String(
        db.query("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").values()[0]?.[0],
      ),
    )
})

test('H-51 check names every object that differs, and reads no row of such a file', async () => {
  const path = await changed('DROP TRIGGER events_immutable; DROP TRIGGER users_delete')
  expect(withReadOnly(path, inspect)).toEqual({
    findings: [
      'schema: "trigger" "events_immutable" is missing',
      'schema: "trigger" "users_delete" is missing',
    ],
    rows: {},
  })
})

test('H-51 objects added by ANALYZE, and an older version, are not reported', async () => {
  expect(verify(await changed('ANALYZE')).rows).toMatchObject({ users: 0 })
  const [[name, text] = ['', '']] = Object.entries(sqliteMigrations).sort()
  const older = join(folder, 'older.db')
  {
    using db = new Database(older, { create: true })
    migrate(db, { [name]: text })
  }
  expect(withReadOnly(older, inspect).findings).toEqual([])
})

test('H-51 checking a file runs no function with side effects from its schema', async () => {
  const pragma = (name: string) => (db: Database) => db.query(`PRAGMA ${name}`).values()[0]?.[0]
  const path = await temporaryDatabase()
  expect(['trusted_schema', 'cell_size_check'].map(name => withReadOnly(path, pragma(name)))).toEqual([0, 1])
})
