import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { migrate } from '#src/storage/sqlite/migrate.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { startApp } from '#test/support/app.ts'
import { addUser } from '#test/support/people.ts'
import { temporaryDatabase } from '#test/support/store.ts'
import { migrationsThatTake } from './upgrade-migrations.ts'

const users = (db: Database) => db.query('SELECT username FROM users ORDER BY id').values().flat()
const hasColumn = (db: Database) =>
  db.query("SELECT 1 FROM pragma_table_info('users') WHERE name = 'next'").values().length > 0

test('R-09 an upgrade that is killed leaves the old schema with its data, and the next start completes it', async () => {
  const path = await temporaryDatabase()
  const app = await startApp({}, { store: await openSqlite({ path }) })
  const names: string[] = []
  for (let i = 0; i < 20; i++) names.push((await addUser(app, `user-${i}`)).username)
  await app.context.store.close()

  for (let kills = 0; kills < 3; kills++) {
    const child = Bun.spawn(['bun', join(import.meta.dir, 'upgrader.ts'), path], { stdout: 'pipe' })
    for await (const _ of child.stdout) child.kill('SIGKILL')
    await child.exited
    expect(child.signalCode).toBe('SIGKILL')
    using db = new Database(path)
    expect(db.query('PRAGMA integrity_check').values()).toEqual([['ok']])
    expect(hasColumn(db)).toBe(false)
    expect(users(db)).toEqual(expect.arrayContaining(names))
  }

  using db = new Database(path)
  migrate(db, migrationsThatTake(10))
  expect(hasColumn(db)).toBe(true)
  expect(db.query('SELECT DISTINCT next FROM users').values()).toEqual([[10]])
  expect(users(db)).toEqual(expect.arrayContaining(names))
  // The version before the upgrade refuses the file.
  await expect(openSqlite({ path })).rejects.toThrow('was upgraded by a newer version (9999_next.sql)')
})
