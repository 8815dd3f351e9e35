import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { followed, makeDataDir, requireNoLog, touch } from './data-dir.ts'
import type { BeforeUpgrade, Store } from './store.ts'

export const DATABASE_FILE = 'gatehouse.db'

/**
 * Opens the configured store. This is PostgreSQL when `database_url` is set, otherwise SQLite in the data
 * directory.
 */
export const openStore = async (
  config: { database_url?: string | undefined; data_dir: string },
  options: {
    migrate?: boolean
    beforeUpgrade?: BeforeUpgrade
    durable?: boolean
    image?: string | undefined
  } = {},
): Promise<Store> => {
  if (config.database_url) {
    // The import is dynamic, so that instances with SQLite do not load the PostgreSQL driver.
    const { openPostgres } = await import('#src/storage/postgres/store.ts')
    return openPostgres({ url: config.database_url, ...options })
  }
  makeDataDir(config.data_dir)
  const path = join(config.data_dir, DATABASE_FILE)
  if (!existsSync(path)) requireNoLog(followed(path))
  // The file gets its mode (0600) before SQLite opens it, because SQLite creates its log with the same mode.
  touch(path)
  return openSqlite({ path, ...options })
}
