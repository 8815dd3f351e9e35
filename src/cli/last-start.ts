import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, type LoadedConfig, loadConfig } from '#src/config.ts'
import { VERSION_LINE } from '#src/lib/version.ts'
import { isLocalHost } from '#src/operations/metrics.ts'
import { StorageError } from '#src/storage/errors.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { SERVER_FILE } from '#src/storage/sqlite/lock.ts'
import { reachDirectly } from './reach-directly.ts'

/** The server that was started last on a data directory. */
interface LastStart {
  /** The public URL, which is the issuer. */
  url: string
  /** The address on this machine. */
  local_url: string
  /** Version, commit and runtime of the server (`VERSION_LINE`); missing in files of older versions. */
  version?: string | undefined
  /**
   * Settings of the server on which {@link requireServersEngine} and findings of `doctor` depend; missing in
   * files of older versions.
   */
  settings?: string[] | undefined
}

const fileOf = (data_dir: string): string => join(data_dir, SERVER_FILE)

const localUrl = ({ host, tls_cert }: Config, port: number): string => {
  const address = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  return `${tls_cert ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}

/**
 * Returns the names of the settings of database, TLS and mail that are set, and `host` if it is not loopback.
 */
export const setNames = (config: Config): string[] => [
  ...(['database_url', 'tls_cert', 'trusted_proxies', 'smtp_url', 'mail_from'] as const).filter(
    name => String(config[name] ?? '') !== '',
  ),
  ...(isLocalHost(config.host) ? [] : ['host']),
]

/**
 * Stores the addresses for {@link loadServerConfig}, the version, and the names of settings.
 * A server on PostgreSQL starts even if it cannot write to the data directory. In that case nothing is
 * stored.
 */
export const rememberStart = (config: Config, port: number): void => {
  const file = fileOf(config.data_dir)
  const started: LastStart = {
    url: config.url,
    local_url: localUrl(config, port),
    version: VERSION_LINE,
    settings: setNames(config),
  }
  try {
    writeFileSync(`${file}.new`, `${JSON.stringify(started, null, 2)}\n`, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  } catch {}
}

/** Returns the data that {@link rememberStart} has stored. Returns undefined when nothing is stored. */
export const readLastStart = (data_dir: string): LastStart | undefined => {
  try {
    const started: LastStart = JSON.parse(readFileSync(fileOf(data_dir), 'utf8'))
    return typeof started.url === 'string' && typeof started.local_url === 'string' ? started : undefined
  } catch {
    return undefined
  }
}

/**
 * Refuses the SQLite file of the data directory while the last server on it used PostgreSQL. The file may be
 * what `migrate-to` has left there, so a backup of it would be old, and no server would see a change.
 *
 * @throws StorageError when the settings lack the `database_url` of the server
 */
export const requireServersEngine = ({ database_url, data_dir }: Config): void => {
  if (database_url || !readLastStart(data_dir)?.settings?.includes('database_url')) return
  throw new StorageError(
    `${data_dir}: the last server here used PostgreSQL. Give this command its database_url, or remove ${SERVER_FILE} to use SQLite.`,
    2,
  )
}

/** True when the settings name a PostgreSQL database or an SQLite file that exists. */
export const hasDatabase = ({ database_url, data_dir }: Config): boolean =>
  Boolean(database_url) || existsSync(join(data_dir, DATABASE_FILE))

/**
 * Loads the settings for a command that may run while a server runs. When the settings name no port, or port
 * 0, `local_url` is the address of the last `serve` on the data directory. When they also name no URL, the
 * URL of that `serve` is used too. A command thus finds the server although it does not have the server's
 * environment variables. Requests to `local_url` do not pass through the proxy of HTTP_PROXY.
 *
 * @throws ConfigError for invalid settings
 */
export const loadServerConfig = (options: {
  config?: string
  dataDir?: string
}): LoadedConfig & { local_url: string } => {
  const loaded = loadConfig(process.env, options.config)
  const config = { ...loaded.config, ...(options.dataDir !== undefined && { data_dir: options.dataDir }) }
  const { url, port } = loaded.sources
  const last = port === 'default' || config.port === 0 ? readLastStart(config.data_dir) : undefined
  const local_url = last?.local_url ?? localUrl(config, config.port)
  reachDirectly(URL.parse(local_url)?.hostname ?? '')
  return {
    ...loaded,
    config: { ...config, ...(last && url === 'default' && { url: last.url }) },
    local_url,
  }
}
