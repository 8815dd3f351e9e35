import { afterAll } from 'bun:test'
import { copyFileSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgres } from '#src/storage/postgres/store.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import type { Store } from '#src/storage/store.ts'
import { fill } from '#test/bench/fill.ts'
import { analyze, temporaryPostgres } from './postgres.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))

/** Makes a data directory for an app whose calls begin backups. */
export const newDataDir = (): string => mkdtempSync(join(folder, 'data-'))

let template: Promise<string> | undefined
let copies = 0

const makeTemplate = async (): Promise<string> => {
  const path = join(folder, 'template.db')
  await (await openSqlite({ path })).close()
  return path
}

/** Returns the path of a new, migrated database, copied from a template of the process. */
export const temporaryDatabase = async (): Promise<string> => {
  template ??= makeTemplate()
  const path = join(folder, `${++copies}.db`)
  copyFileSync(await template, path)
  return path
}

/** The engine of this run. Tests that do not choose an engine run on both engines (test/run.ts). */
export const isPostgres = process.env.TEST_ENGINE === 'postgres'

/** Few connections, because hundreds of stores may be open at once. */
const CONNECTIONS = 3

const newStore = async (): Promise<Store & { path: string }> => {
  if (!isPostgres) {
    const path = await temporaryDatabase()
    return { ...(await openSqlite({ path })), path }
  }
  const { url, drop } = await temporaryPostgres()
  const store = await openPostgres({ url, connections: CONNECTIONS })
  return { ...store, path: url, close: () => store.close().then(drop) }
}

/** Opens a store on a new database. Closes the store at the end of the test or of the file that opened it. */
export const freshStore = async (): Promise<Store & { path: string }> => {
  const store = await newStore()
  afterAll(() => store.close())
  return store
}

/** Opens a second store on the same database, as another copy of the server or a restart does. */
export const openBeside = (path: string): Promise<Store> =>
  isPostgres ? openPostgres({ url: path, connections: CONNECTIONS }) : openSqlite({ path })

/** Makes each write of the store conflict once after its body. SQLite has no conflicts. */
export const conflictOnce = (store: Store): void => {
  const { write } = store
  if (!isPostgres) return
  store.write = body => {
    let isFirst = true
    return write(async tx => {
      const value = await body(tx)
      if (!isFirst) return value
      isFirst = false
      throw Object.assign(new Error('a conflict'), { errno: '40001' })
    })
  }
}

/** Opens a store with `users` users and `events` events (test/bench/fill.ts). The caller closes it. */
export const filledStore = async (users: number, events: number): Promise<Store & { path: string }> => {
  const path = await temporaryDatabase()
  fill(path, users, events)
  if (!isPostgres) return { ...(await openSqlite({ path })), path }
  const source = await openSqlite({ path })
  const store = await newStore()
  const { counters: _, ...tables } = await store.read(async q => q.tables)
  for (const name of Object.keys(tables) as (keyof typeof tables)[]) {
    const rows: object[] = await source.read(q => q.select().from(q.tables[name] as typeof q.tables.users))
    for (let start = 0; start < rows.length; start += 1000) {
      // These counters start at zero, because triggers count the inserted rows.
      const some = rows.slice(start, start + 1000).map(row => ({
        ...row,
        ...('user_count' in row && { user_count: 0 }),
        ...('member_count' in row && { member_count: 0 }),
      }))
      await store.write(tx => tx.insert(tx.tables[name] as typeof tx.tables.users).values(some as never))
    }
  }
  await source.close()
  await analyze(store.path)
  return store
}
