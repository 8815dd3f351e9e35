import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError, loadConfig } from '#src/config.ts'
import { DEV_FILE } from '#src/dev/dev-file.ts'
import { MASTER_KEY_FILE } from '#src/lib/master-key.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { SERVER_FILE } from '#src/storage/sqlite/lock.ts'

const HOSTS = ['localhost', '127.0.0.1', '[::1]']

/**
 * Returns the settings with the port. A server that only this machine can reach may call every port of this
 * machine, such as those of applications under test. A server that other machines can reach may call only its
 * own port, because its users choose some of the addresses that it calls.
 */
export const listening = (config: Config, port: number | undefined, exposed: boolean): Config => ({
  ...config,
  url: config.url.replace(/:0$/, `:${port}`),
  outbound_allow: [...config.outbound_allow, ...HOSTS.map(host => `*=${host}:${exposed ? port : '*'}`)],
})

/** Costs of hashes: low, because those of development mode protect no password of a production server. */
const cheapHashes = { argon2_memory: 64, argon2_time: 1 }

/** The options of a start that change settings (`StartOptions`). */
interface Given {
  port?: number | undefined
  host?: string | undefined
  url?: string | undefined
  internal_url?: string | undefined
  public_issuer?: boolean | undefined
  tls?: boolean | undefined
  config?: Partial<Config> | undefined
}

/**
 * Returns the settings of a development server in a data directory.
 *
 * @throws ConfigError when the host of the issuer is not in `HOSTS` and `public_issuer` is not set
 */
export const configOf = (options: Given, data_dir: string): Config => {
  const base = options.config ?? {}
  const port = options.port ?? 0
  const config: Config = {
    ...loadConfig({}).config,
    ...base,
    ...cheapHashes,
    port,
    data_dir,
    // The database and the master key in the settings may belong to a production server, so they are not
    // used.
    database_url: undefined,
    master_key: undefined,
    host: options.host ?? '127.0.0.1',
    url: options.url ?? `${options.tls ? 'https' : 'http'}://localhost:${port}`,
    internal_url: options.internal_url ?? base.internal_url,
  }
  // GATEHOUSE_URL may be meant for a production server. Development mode therefore accepts a public issuer
  // only if `public_issuer` is set too.
  if (!HOSTS.includes(new URL(config.url).hostname) && !options.public_issuer)
    throw new ConfigError(
      `The host of the issuer ${config.url} (url, --url or GATEHOUSE_URL) is not one of ${HOSTS.join(', ')}, and development mode is only for tests. Set public_issuer (--public-issuer) if only you can reach the server, for example in a container.`,
    )
  return config
}

/**
 * Refuses the data directory of a production server, because the seed would add users with public passwords.
 * The directory of a server on PostgreSQL has no database, but a master key and the addresses of the server.
 *
 * @throws ConfigError for a directory that has one of these files but no `dev.json`
 */
export const checkDataDir = (data_dir: string): void => {
  const has = (name: string): boolean => existsSync(join(data_dir, name))
  if ([DATABASE_FILE, MASTER_KEY_FILE, SERVER_FILE].some(has) && !has(DEV_FILE))
    throw new ConfigError(
      `${data_dir} contains the data of a server that is not a development server. Choose another directory.`,
    )
}
