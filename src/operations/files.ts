import { type Config, ConfigError } from '#src/config.ts'
import { isStream, readSeedText } from '#src/seed/file.ts'
import { readPlaces } from '#src/sessions/geoip.ts'
import { readCertificate } from './certificate.ts'

/**
 * Checks the files that the settings name, for `config check`, `doctor` and the console. The contents of the
 * certificate, the key and the GeoIP file are checked. The seed file is only read, because parsing a large
 * seed takes over 1 GB of memory. `config check` parses the seed afterwards. A seed from a stream is not even
 * read, because a stream can be read only once.
 *
 * @param now milliseconds since the epoch
 * @throws ConfigError for the first file that is missing or invalid, and for an expired certificate
 */
export const checkFiles = async (config: Config, now: number): Promise<void> => {
  const certificate = readCertificate(config)
  if (certificate && certificate.expires_at < now)
    throw new ConfigError(`tls_cert: the certificate in ${config.tls_cert} has expired.`)
  if (config.geoip_file !== undefined) await checkPlaces(config.geoip_file)
  if (config.seed_file !== undefined && !isStream(config.seed_file)) readSeedText(config.seed_file)
}

const checkPlaces = async (file: string): Promise<void> => {
  try {
    await readPlaces(file)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new ConfigError(`geoip_file: ${file} ${code ? `cannot be read (${code})` : message}.`)
  }
}
