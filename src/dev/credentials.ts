import { randomBytes } from 'node:crypto'
import { ConfigError } from '#src/config.ts'
import { newSecret } from '#src/lib/secrets.ts'
import type { ReadSeed } from '#src/seed/read.ts'
import { DEV_ADMIN_SECRET, DEV_PASSWORD, DEV_SECRET, HASH } from './default-seed.ts'
import type { DevCredentials, DevFile } from './dev-file.ts'
import { bare, isLoopbackAddress, isLoopbackHost } from './host-check.ts'

const known: DevCredentials = {
  password: DEV_PASSWORD,
  service_secret: DEV_SECRET,
  admin_client_secret: DEV_ADMIN_SECRET,
}

/**
 * True when other machines can reach the server. Such a server listens on an address that is not loopback, or
 * has a host name that is not loopback.
 */
export const isExposed = (server: {
  readonly url: string
  readonly host: string
  readonly dev_hosts?: readonly string[] | undefined
}): boolean =>
  [new URL(server.url).hostname, server.host, ...(server.dev_hosts ?? [])].some(
    host => !isLoopbackHost(host.toLowerCase()) && !isLoopbackAddress(bare(host)),
  )

/**
 * Returns the credentials of a server. A data directory that is used again keeps its credentials. In a new
 * data directory, a server that only this machine can reach gets the documented credentials. Any other server
 * gets random credentials, because the documented credentials are public. An admin secret in the settings
 * replaces the random admin secret.
 *
 * @throws ConfigError for a directory with documented credentials, when other machines can reach the server
 */
export const devCredentials = (
  before: DevFile | undefined,
  exposed: boolean,
  given: { readonly admin_client_secret?: string | undefined },
): DevCredentials => {
  const { credentials = known } = before ?? {}
  if (before && !(exposed && credentials.password === DEV_PASSWORD)) return credentials
  if (!exposed) return known
  if (before)
    throw new ConfigError(
      `${before.data_dir} was made for a server that only this machine can reach, and its passwords are public. Other machines can reach this server: choose another directory.`,
    )
  return {
    password: randomBytes(12).toString('base64url'),
    service_secret: newSecret(),
    admin_client_secret: given.admin_client_secret ?? newSecret(),
  }
}

/** Returns the seed with these credentials in place of the documented credentials. */
export const withCredentials = (seed: ReadSeed, { password, service_secret }: DevCredentials): ReadSeed => {
  if (password === DEV_PASSWORD) return seed
  const { users, clients } = seed.entries
  return {
    ...seed,
    entries: {
      ...seed.entries,
      users: users.map(({ value: { password_hash, ...value }, ...entry }) => ({
        ...entry,
        value: {
          ...value,
          ...(password_hash === HASH ? { password } : password_hash !== undefined && { password_hash }),
        },
      })),
      clients: clients.map(({ value, ...entry }) => ({
        ...entry,
        value: value.client_secret === DEV_SECRET ? { ...value, client_secret: service_secret } : value,
      })),
    },
  }
}
