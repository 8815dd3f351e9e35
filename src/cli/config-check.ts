import { loadConfig } from '#src/config.ts'
import { checkFiles } from '#src/operations/files.ts'
import { checkThemes } from '#src/pages/themes.ts'

/**
 * Checks the settings as `serve` reads them, the files that they name, and the themes of the data directory.
 * Changes nothing.
 */
export const configCheck = async (options: { config?: string }): Promise<void> => {
  const { config, warnings } = loadConfig(process.env, options.config)
  await checkFiles(config, Date.now())
  for (const warning of [...warnings, ...checkThemes(config, [])]) console.error(`warning: ${warning}`)
  console.log('The settings are valid.')
}
