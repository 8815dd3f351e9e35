import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Config, ConfigError, loadConfig } from '#src/config.ts'

const FILES = ['tls_cert', 'tls_key', 'geoip_file'] as const

/** Throws a ConfigError for the first file of the settings that cannot be read or is not what it should be. */
export const checkFiles = (config: Config): void => {
  for (const name of FILES) {
    const path = config[name]
    if (path === undefined) continue
    let content: Buffer
    try {
      content = readFileSync(path)
    } catch (error) {
      throw new ConfigError(`${name}: ${path} can't be read (${(error as NodeJS.ErrnoException).code}).`)
    }
    if (name !== 'geoip_file' && !content.includes('-----BEGIN'))
      throw new ConfigError(`${name}: ${path} is no PEM file.`)
    if (name === 'tls_cert' && Date.parse(new X509Certificate(content).validTo) < Date.now())
      throw new ConfigError(`tls_cert: the certificate in ${path} has run out.`)
  }
}

/** Reads the settings as `serve` would, and the files that they name; touches nothing. */
export const configCheck = (options: { config?: string }): void => {
  const { config, warnings } = loadConfig(process.env, options.config)
  checkFiles(config)
  for (const warning of warnings) console.error(`warning: ${warning}`)
  console.log('The settings are good.')
}
