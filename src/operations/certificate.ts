import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Config, ConfigError } from '#src/config.ts'

/** A certificate and its key, each in PEM. */
export interface Certificate {
  cert: string
  key: string
  /** Milliseconds since the epoch. */
  expires_at: number
}

/**
 * Reads the file that a setting names.
 *
 * @throws ConfigError with the setting and the reason
 */
const readSettingFile = (name: 'tls_cert' | 'tls_key', path: string): Buffer => {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new ConfigError(`${name}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

const parse = <T>(name: string, path: string, what: string, read: () => T): T => {
  try {
    return read()
  } catch {
    throw new ConfigError(`${name}: ${path} contains no ${what}.`)
  }
}

/**
 * Reads the certificate and the key that the settings name. Returns undefined when the settings name none.
 * The expiry is not checked, so that a server can start with an expired certificate. The server loads the
 * renewed certificate without a restart.
 *
 * @throws ConfigError when a file cannot be read, a file does not contain the expected PEM, or the key does
 * not belong to the certificate
 */
export const readCertificate = ({
  tls_cert,
  tls_key,
}: Pick<Config, 'tls_cert' | 'tls_key'>): Certificate | undefined => {
  if (tls_cert === undefined || tls_key === undefined) return undefined
  const cert = readSettingFile('tls_cert', tls_cert).toString()
  const key = readSettingFile('tls_key', tls_key).toString()
  const x509 = parse('tls_cert', tls_cert, 'certificate in PEM', () => new X509Certificate(cert))
  const privateKey = parse('tls_key', tls_key, 'unencrypted private key in PEM', () => createPrivateKey(key))
  if (!x509.checkPrivateKey(privateKey))
    throw new ConfigError(`tls_key: ${tls_key} is not the key of the certificate in ${tls_cert}.`)
  return { cert, key, expires_at: Date.parse(x509.validTo) }
}
