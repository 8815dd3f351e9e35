import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { makeDataDir } from './data-dir.ts'
import { StorageError } from './errors.ts'
import { openSqlite } from './sqlite.ts'
import type { Store } from './store.ts'

export const DATABASE_FILE = 'gatehouse.db'

/** The engine that the settings name: SQLite in the data directory unless a URL names another. */
export const openStore = async (
  config: { database_url?: string | undefined; data_dir: string },
  options: { migrate?: boolean; durable?: boolean } = {},
): Promise<Store> => {
  if (/^postgres(ql)?:/.test(config.database_url ?? ''))
    throw new StorageError(
      'GATEHOUSE_DATABASE_URL: PostgreSQL is not supported yet. Leave it out to use SQLite.',
    )
  if (config.database_url)
    throw new StorageError(
      'GATEHOUSE_DATABASE_URL: only postgres:// URLs name a database. Leave it out to use SQLite.',
    )
  makeDataDir(config.data_dir)
  const path = join(config.data_dir, DATABASE_FILE)
  // SQLite gives its log the mode of the database.
  closeSync(openSync(path, 'a', 0o600))
  return openSqlite({ path, ...options })
}
