import { type Config, ConfigError, loadConfig } from '#src/config.ts'
import { checkThemes } from '#src/pages/themes.ts'
import { readPlaces } from '#src/sessions/location.ts'
import { readCertificate } from './certificate.ts'

/** @throws ConfigError for the first file of the settings that is missing or invalid */
export const checkFiles = async (config: Config): Promise<void> => {
  const certificate = readCertificate(config)
  if (certificate && certificate.expires_at < Date.now())
    throw new ConfigError(`tls_cert: the certificate in ${config.tls_cert} has expired.`)
  if (config.geoip_file !== undefined) await checkPlaces(config.geoip_file)
}

const checkPlaces = async (file: string): Promise<void> => {
  try {
    await readPlaces(file)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new ConfigError(`geoip_file: ${file} ${code ? `cannot be read (${code})` : message}.`)
  }
}

/**
 * Checks the settings as `serve` reads them, the files that they name, and the themes of the data directory.
 * Changes nothing.
 */
export const configCheck = async (options: { config?: string }): Promise<void> => {
  const { config, warnings } = loadConfig(process.env, options.config)
  await checkFiles(config)
  for (const warning of [...warnings, ...checkThemes(config, [])]) console.error(`warning: ${warning}`)
  console.log('The settings are valid.')
}
