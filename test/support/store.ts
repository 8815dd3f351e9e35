import { afterAll } from 'bun:test'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '#src/storage/sqlite.ts'
import type { Store } from '#src/storage/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

let template: Promise<string> | undefined
let copies = 0

const makeTemplate = async (): Promise<string> => {
  const path = join(folder, 'template.db')
  await (await openSqlite({ path })).close()
  return path
}

/** The path of a new, migrated database: a copy of one that is made once per process. */
export const temporaryDatabase = async (): Promise<string> => {
  template ??= makeTemplate()
  const path = join(folder, `${++copies}.db`)
  copyFileSync(await template, path)
  return path
}

/** A store on a database of its own, closed when the test, or the file, that asked for it is over. */
export const freshStore = async (): Promise<Store & { path: string }> => {
  const path = await temporaryDatabase()
  const store = await openSqlite({ path })
  afterAll(() => store.close())
  return { ...store, path }
}
