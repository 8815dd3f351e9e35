import { loadConfig } from '#src/config.ts'
import { checkFiles } from '#src/operations/files.ts'
import { checkNames } from '#src/operations/first-start.ts'
import { checkThemes } from '#src/pages/themes.ts'
import { isStream } from '#src/seed/file.ts'
import { requireSound } from '#src/seed/read.ts'
import { print } from './print.ts'
import { readSeedFile } from './seed-file.ts'

/**
 * Checks the settings that `serve` would use, the files that they name, and the themes of the data directory.
 * Changes nothing. The entries of the seed file are not compared with stored data. A seed from standard input
 * or a pipe is not read, because reading would use it up.
 *
 * @throws ConfigError for a wrong setting or file, SeedError for mistakes in the seed file
 */
export const configCheck = async (options: { config?: string }): Promise<void> => {
  const { config, warnings } = loadConfig(process.env, options.config)
  const { seed_file } = config
  await checkNames(config)
  await checkFiles(config, Date.now())
  if (seed_file !== undefined && !isStream(seed_file)) requireSound(readSeedFile(seed_file))
  for (const warning of [...warnings, ...checkThemes(config, [])]) console.error(`warning: ${warning}`)
  print('The settings are valid.')
}
