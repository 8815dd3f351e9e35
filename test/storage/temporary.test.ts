import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emptyImage } from '#src/storage/sqlite/empty-image.ts'
import { appliedIn, migrate, sqliteMigrations } from '#src/storage/sqlite/migrate.ts'
import { schemaFindings } from '#src/storage/sqlite/schema-check.ts'
import { prepareTemporary } from '#src/storage/sqlite/temporary.ts'

const fresh = () => join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'gatehouse.db')

test('the prepared database has the schema and the contents that the migrations make', () => {
  const path = fresh()
  prepareTemporary(path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  using prepared = new Database(path)
  using migrated = new Database(':memory:')
  migrate(migrated)
  expect(appliedIn(prepared)).toEqual(Object.keys(sqliteMigrations).sort())
  expect(schemaFindings(prepared)).toEqual([])
  const names = prepared.query("SELECT name FROM sqlite_schema WHERE type = 'table'").values().flat()
  expect(names).toContain('users')
  const rows = (db: Database) => names.map(name => [name, db.query(`SELECT * FROM "${name}"`).values()])
  expect(rows(prepared)).toEqual(rows(migrated))
  expect(prepared.query('PRAGMA integrity_check').values()).toEqual([['ok']])
})

test('a file with content is kept', () => {
  const path = fresh()
  writeFileSync(path, 'something')
  prepareTemporary(path)
  expect(readFileSync(path, 'utf8')).toBe('something')
})

test('two builds embed the same bytes', () => {
  expect(emptyImage()).toBe(emptyImage())
})
