import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, loadConfig } from '#src/config.ts'
import { followed, requireNoLog } from '#src/storage/data-dir.ts'
import { StorageError } from '#src/storage/errors.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { restoreBackup as restoreFile, withBackup } from '#src/storage/sqlite/backup.ts'
import { lockInstance, RESTORE_COPY } from '#src/storage/sqlite/lock.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { toPostgres } from '#src/storage/transfer/migrate-to.ts'
import { requireMasterKey } from './instance.ts'
import { requireServersEngine } from './last-start.ts'
import { print } from './print.ts'
import { size, stage, sum } from './progress.ts'

/** https://www.sqlite.org/fileformat.html#magic_header_string */
const SQLITE = 'SQLite format 3\0'

/**
 * Replaces the SQLite or PostgreSQL database with a backup and migrates the restored data to this version.
 * The operator stops all servers first.
 */
export const restore = async (file: string, options: { config?: string; force?: boolean }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  if (!statSync(file, { throwIfNoEntry: false })?.isFile())
    throw new StorageError(`${file}: no such file.`, 1)
  // Taking the lock creates the data directory. The file is checked before that, so that a wrong file creates
  // nothing.
  const header = await Bun.file(file).slice(0, SQLITE.length).text()
  if (header === '') throw new StorageError(`${file} is empty.`)
  if (header !== SQLITE) throw new StorageError(`${file} is damaged, or it is not an SQLite database.`)
  const unlock = lockInstance(config.data_dir)
  try {
    stage(`copying ${size(statSync(file).size)}`)
    const restoreInto = config.database_url ? intoPostgres : intoFile
    print(await restoreInto(config, file, options.force ?? false))
  } finally {
    unlock()
  }
}

const intoFile = async (config: Config, file: string, force: boolean): Promise<string> => {
  const database = join(config.data_dir, DATABASE_FILE)
  requireServersEngine(config)
  if (existsSync(database) && !force) throw new StorageError(`${database}: exists; --force replaces it.`, 1)
  const target = followed(database)
  if (!force) requireNoLog(target)
  const { bytes, rows } = await restoreFile(file, target, path => requireKey(config, path), stage)
  return `${database}: ${sum(rows)} rows, ${size(bytes)}, restored from ${file}.`
}

const intoPostgres = (config: Config, file: string, force: boolean): Promise<string> => {
  const partial = join(config.data_dir, RESTORE_COPY)
  const copy = async (): Promise<string> => {
    await requireKey(config, partial)
    const rows = await toPostgres(partial, config.database_url ?? '', { replace: force, onProgress: stage })
    return `PostgreSQL: ${sum(rows)} rows, restored from ${file}.`
  }
  return withBackup(file, partial, copy, stage)
}

/**
 * @throws StorageError when the backup has no instance, or the master key does not open the backup. The key
 * in the data directory is tried only if the settings name no master key.
 */
const requireKey = async (config: Config, path: string): Promise<void> => {
  const store = await openSqlite({ path, migrate: false })
  try {
    await requireMasterKey(config, store)
  } finally {
    await store.close()
  }
}
