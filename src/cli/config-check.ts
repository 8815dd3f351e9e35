import { type Config, ConfigError, loadConfig } from '#src/config.ts'
import { checkThemes } from '#src/pages/themes.ts'
import { readCertificate, readSettingFile } from './certificate.ts'

/** Throws a ConfigError for the first file of the settings that cannot be read or is not what it should be. */
export const checkFiles = (config: Config): void => {
  const certificate = readCertificate(config)
  if (certificate && certificate.runs_out < Date.now())
    throw new ConfigError(`tls_cert: the certificate in ${config.tls_cert} has run out.`)
  if (config.geoip_file !== undefined) readSettingFile('geoip_file', config.geoip_file)
}

/** Reads the settings as `serve` would, the files that they name, and the themes of the data directory; touches nothing. */
export const configCheck = (options: { config?: string }): void => {
  const { config, warnings } = loadConfig(process.env, options.config)
  checkFiles(config)
  for (const warning of [...warnings, ...checkThemes(config, [])]) console.error(`warning: ${warning}`)
  console.log('The settings are good.')
}
