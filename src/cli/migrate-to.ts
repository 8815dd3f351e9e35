import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '#src/config.ts'
import { databaseUrl } from '#src/lib/setting-values.ts'
import { StorageError } from '#src/storage/errors.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { requireUnused, verify } from '#src/storage/sqlite/backup.ts'
import { lockInstance } from '#src/storage/sqlite/lock.ts'
import { toFile, toPostgres } from '#src/storage/transfer/migrate-to.ts'
import { requireDatabase } from './instance.ts'
import { print } from './print.ts'
import { stage, sum } from './progress.ts'

/**
 * Copies an instance from SQLite to PostgreSQL, or from PostgreSQL to SQLite, and verifies the copy. The
 * operator stops all servers first, because the copy would miss later changes. The source is left unchanged,
 * so that the operator can go back.
 */
export const migrateTo = async (to: string, options: { config?: string }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const { data_dir, database_url } = config
  if (to !== 'sqlite') {
    requireAddress(to)
    if (database_url)
      throw new StorageError(
        'GATEHOUSE_DATABASE_URL: names PostgreSQL already; only `migrate-to sqlite` is possible.',
        2,
      )
    requireDatabase(config)
  } else if (!database_url)
    throw new StorageError('GATEHOUSE_DATABASE_URL: not set, so this instance is in SQLite already.', 2)
  const unlock = lockInstance(data_dir)
  try {
    if (database_url) {
      const file = join(data_dir, DATABASE_FILE)
      if (existsSync(file)) throw new StorageError(`${file}: exists; move it away first.`, 1)
      const { rows } = await toFile(database_url, file, { online: false, onProgress: stage })
      print(`${file}: ${sum(rows)} rows, verified. The PostgreSQL database stays as it is.`)
      print('Next: remove GATEHOUSE_DATABASE_URL from the settings and start the server.')
      return
    }
    const file = requireDatabase(config)
    stage('reading the database')
    requireUnused(file)
    verify(file)
    const rows = await toPostgres(file, to, { replace: false, onProgress: stage })
    print(`${sum(rows)} rows copied and verified. ${file} stays as it is.`)
    print(
      'Next: set GATEHOUSE_DATABASE_URL to the address of the copy, keep the master key, and start the server.',
    )
  } finally {
    unlock()
  }
}

/** Checks the address. The error message does not repeat the address, which may contain a password. */
const requireAddress = (to: string): void => {
  if (databaseUrl.parse(to) === undefined)
    throw new StorageError(`migrate-to takes sqlite, or ${databaseUrl.allowed}.`, 2)
}
