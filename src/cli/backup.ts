import { statSync } from 'node:fs'
import { loadConfig } from '#src/config.ts'
import { backUp } from '#src/storage/sqlite/backup.ts'
import { toFile } from '#src/storage/transfer/migrate-to.ts'
import { requireDatabase } from './instance.ts'
import { print } from './print.ts'
import { size, stage, sum } from './progress.ts'

/**
 * Writes a complete, verified copy of an SQLite or PostgreSQL database into one SQLite file. The server may
 * run meanwhile. The copy does not contain the master key, so a stolen copy reveals no sealed secret.
 */
export const backup = async (file: string, options: { config?: string }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const { bytes, rows } = config.database_url
    ? await toFile(config.database_url, file, { online: true, onProgress: stage })
    : await backUpFile(requireDatabase(config), file)
  print(
    `${file}: ${sum(rows)} rows, ${size(bytes)}, verified. Keep the master key as well, in another place.`,
  )
}

const backUpFile = (database: string, file: string) => {
  stage(`copying ${size(statSync(database).size)}`)
  return backUp(database, file, stage)
}
