import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backUp } from '#src/storage/sqlite/backup.ts'
import { inspect } from '#src/storage/sqlite/inspect.ts'
import { startApp } from '#test/support/app.ts'
import { addUser } from '#test/support/people.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))

/**
 * Makes a backup with two users whose names differ in the last letter. A backup has no old copies of moved
 * rows.
 */
const makeBackup = async (): Promise<string> => {
  const app = await startApp()
  for (const name of ['marker-1', 'marker-2']) await addUser(app, name)
  const path = join(folder, `${crypto.randomUUID()}.db`)
  await backUp(Reflect.get(app.context.store, 'path'), path)
  return path
}

const inspected = (path: string) => {
  using db = new Database(path, { readonly: true })
  const stages: string[] = []
  return { ...inspect(db, text => stages.push(text)), stages }
}

test('a healthy database has no findings, and each stage is named', async () => {
  const { findings, stages } = inspected(await makeBackup())
  expect(findings).toEqual([])
  expect(stages).toEqual(['reading each page', 'reading references and totals'])
})

test('one changed letter of a value is found in the row and in each index that repeats it', async () => {
  const path = await makeBackup()
  const whole = readFileSync(path)
  const places: number[] = []
  for (let at = whole.indexOf('marker-1'); at >= 0; at = whole.indexOf('marker-1', at + 1))
    places.push(at + 7)
  const found = places.map(place => {
    const changed = Buffer.from(whole)
    changed[place] = '2'.charCodeAt(0)
    writeFileSync(`${path}.changed`, changed)
    return inspected(`${path}.changed`).findings
  })
  using db = new Database(path, { readonly: true })
  const indexes = db
    .query("SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'index' AND sql GLOB '*_fold*'")
    .values()
  expect(indexes.length).toBeGreaterThan(8)
  for (const [name, table, sql] of indexes)
    expect(found).toContainEqual([
      `structure: index ${name} differs from its table ${table}`,
      ...(String(sql).includes('UNIQUE')
        ? [`structure: 1 repeated entries in the unique index ${name}`]
        : []),
    ])
})

test('rows that another process writes between the scans of a table and its indexes are no damage', async () => {
  const app = await startApp()
  const path = Reflect.get(app.context.store, 'path')
  using writer = new Database(path)
  using db = new Database(path, { readonly: true })
  const query = db.query.bind(db)
  let written = 0
  Object.assign(db, {
    query: (sql: string) => {
      if (sql.includes(' INDEXED BY "organizations_'))
        written += writer.run(
          "UPDATE organizations SET slug = slug || '-x', created_at = created_at + 1",
        ).changes
      return query(sql)
    },
  })
  expect(inspect(db).findings).toEqual([])
  expect(written).toBeGreaterThan(1)
})
