import { statSync } from 'node:fs'
import { loadConfig } from '#src/config.ts'
import { backUp } from '#src/storage/backup.ts'
import { requireDatabase } from './instance.ts'
import { size, stage, sum } from './progress.ts'

/** A whole, verified copy of the database in one file, while the server runs. The master key is not in it. */
export const backup = (file: string, options: { config?: string }): void => {
  const { config } = loadConfig(process.env, options.config)
  const database = requireDatabase(config)
  stage(`copying and verifying ${size(statSync(database).size)}`)
  const { bytes, rows } = backUp(database, file)
  console.log(`${file}: ${sum(rows)} rows, ${size(bytes)}, verified. Keep the master key too, elsewhere.`)
}
