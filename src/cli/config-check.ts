import { type Config, ConfigError, loadConfig } from '#src/config.ts'
import { checkThemes } from '#src/pages/themes.ts'
import { readPlaces } from '#src/sessions/location.ts'
import { readCertificate } from './certificate.ts'

/** @throws ConfigError for the first file of the settings that cannot be read or is not what it should be. */
export const checkFiles = async (config: Config): Promise<void> => {
  const certificate = readCertificate(config)
  if (certificate && certificate.runs_out < Date.now())
    throw new ConfigError(`tls_cert: the certificate in ${config.tls_cert} has run out.`)
  if (config.geoip_file !== undefined) await checkPlaces(config.geoip_file)
}

const checkPlaces = async (file: string): Promise<void> => {
  try {
    await readPlaces(file)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new ConfigError(`geoip_file: ${file} ${code ? `can't be read (${code})` : message}.`)
  }
}

/** Reads the settings as `serve` would, the files that they name, and the themes of the data directory; touches nothing. */
export const configCheck = async (options: { config?: string }): Promise<void> => {
  const { config, warnings } = loadConfig(process.env, options.config)
  await checkFiles(config)
  for (const warning of [...warnings, ...checkThemes(config, [])]) console.error(`warning: ${warning}`)
  console.log('The settings are good.')
}
