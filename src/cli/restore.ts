import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '#src/config.ts'
import { restore as restoreFile } from '#src/storage/backup.ts'
import { StorageError } from '#src/storage/errors.ts'
import { lockInstance } from '#src/storage/lock.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { openSqlite } from '#src/storage/sqlite.ts'
import { requireDatabase, requireMasterKey } from './instance.ts'
import { size, stage, sum } from './progress.ts'

/** Puts a backup in the place of the database; no server may run. An older one is brought up to this version. */
export const restore = async (file: string, options: { config?: string; force?: boolean }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  if (!existsSync(file)) throw new StorageError(`${file}: there is no such file.`, 1)
  if (config.database_url) requireDatabase(config)
  const unlock = lockInstance(config.data_dir)
  try {
    const database = join(config.data_dir, DATABASE_FILE)
    if (existsSync(database) && !options.force)
      throw new StorageError(`${database} exists: --force replaces it.`, 1)
    stage(`verifying ${size(statSync(file).size)}`)
    const { bytes, rows } = await restoreFile(file, database, async path => {
      const store = await openSqlite({ path, migrate: false })
      try {
        await requireMasterKey(config, store)
      } finally {
        await store.close()
      }
    })
    console.log(`${database}: ${sum(rows)} rows, ${size(bytes)}, restored from ${file}.`)
  } finally {
    unlock()
  }
}
