import { afterAll } from 'bun:test'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgres } from '#src/storage/postgres.ts'
import { openSqlite } from '#src/storage/sqlite.ts'
import type { Store } from '#src/storage/store.ts'
import { temporaryPostgres } from './postgres.ts'

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

/** The engine that this run tests: every test that does not name one runs on both (test/run.ts). */
export const isPostgres = process.env.TEST_ENGINE === 'postgres'

/** Few: hundreds of stores may be open at once. */
const CONNECTIONS = 3

/** A store on a database of its own, closed when the test, or the file, that asked for it is over. */
export const freshStore = async (): Promise<Store & { path: string }> => {
  if (isPostgres) {
    const { url, drop } = await temporaryPostgres()
    const store = await openPostgres({ url, connections: CONNECTIONS })
    afterAll(async () => {
      await store.close()
      await drop()
    })
    return { ...store, path: url }
  }
  const path = await temporaryDatabase()
  const store = await openSqlite({ path })
  afterAll(() => store.close())
  return { ...store, path }
}
