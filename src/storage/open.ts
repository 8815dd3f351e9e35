import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { makeDataDir, requireNoLog, touch } from './data-dir.ts'
import type { Store } from './store.ts'

export const DATABASE_FILE = 'gatehouse.db'

/** The engine that the settings name: SQLite in the data directory unless a URL names another. */
export const openStore = async (
  config: { database_url?: string | undefined; data_dir: string },
  options: { migrate?: boolean; durable?: boolean } = {},
): Promise<Store> => {
  if (config.database_url) {
    // Only an instance that has one pays for its driver.
    const { openPostgres } = await import('#src/storage/postgres/store.ts')
    return openPostgres({ url: config.database_url, ...options })
  }
  makeDataDir(config.data_dir)
  const path = join(config.data_dir, DATABASE_FILE)
  if (!existsSync(path)) requireNoLog(path)
  // SQLite gives its log the mode of the database.
  touch(path)
  return openSqlite({ path, ...options })
}
