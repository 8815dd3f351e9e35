import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Config, ConfigError } from '#src/config.ts'

/** PEM, as the socket takes it. */
export interface Certificate {
  cert: string
  key: string
  /** Milliseconds since the epoch. */
  runs_out: number
}

/** Throws a ConfigError that names the setting and the reason. */
const readSettingFile = (name: 'tls_cert' | 'tls_key', path: string): Buffer => {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new ConfigError(`${name}: ${path} can't be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

const parse = <T>(name: string, path: string, what: string, read: () => T): T => {
  try {
    return read()
  } catch {
    throw new ConfigError(`${name}: ${path} holds no ${what}.`)
  }
}

/**
 * Certificate and key that the settings name; undefined when they name none. Throws a ConfigError unless both can be read
 * and belong together. Whether the certificate has run out is for the caller to judge.
 */
export const readCertificate = ({
  tls_cert,
  tls_key,
}: Pick<Config, 'tls_cert' | 'tls_key'>): Certificate | undefined => {
  if (tls_cert === undefined || tls_key === undefined) return undefined
  const cert = readSettingFile('tls_cert', tls_cert).toString()
  const key = readSettingFile('tls_key', tls_key).toString()
  const x509 = parse('tls_cert', tls_cert, 'certificate in PEM', () => new X509Certificate(cert))
  const privateKey = parse('tls_key', tls_key, 'private key in PEM without passphrase', () =>
    createPrivateKey(key),
  )
  if (!x509.checkPrivateKey(privateKey))
    throw new ConfigError(`tls_key: ${tls_key} is not the key of the certificate in ${tls_cert}.`)
  return { cert, key, runs_out: Date.parse(x509.validTo) }
}
