import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AppOptions, createApp } from '#src/app.ts'
import { type Config, ConfigError } from '#src/config.ts'
import { devCredentials, isExposed, withCredentials } from '#src/dev/credentials.ts'
import { DEV_PASSWORD, defaultSeed } from '#src/dev/default-seed.ts'
import { type DevCredentials, type DevFile, readDevFile, writeDevFile } from '#src/dev/dev-file.ts'
import { development } from '#src/dev/development.ts'
import { findOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { socketOptions } from '#src/http/socket.ts'
import { DEFAULT_ADMIN_CLIENT, DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { type Logger, silentLog } from '#src/lib/log.ts'
import { newSecret } from '#src/lib/secrets.ts'
import { DRAIN_MS, startHousekeeping } from '#src/operations/housekeeping.ts'
import type { ReadSeed } from '#src/seed/read.ts'
import type { SeedInput, SeedOf } from '#src/seed/schema.ts'
import { lockAround } from '#src/storage/sqlite/lock.ts'
import { inTemporaryDir } from './leftovers.ts'
import { openSeeded, readGiven } from './seeded-core.ts'
import { checkDataDir, configOf, listening } from './settings.ts'

/** Options of a development server in this process. */
export interface StartOptions {
  /**
   * Data at the start and after each reset. Default: the users alice and admin, a public and a confidential
   * client.
   */
  seed?: SeedInput | ReadSeed | undefined
  /** Default: a free port. */
  port?: number | undefined
  /** Address to listen on; default 127.0.0.1. */
  host?: string | undefined
  /** Issuer. Default: `http://localhost:<port>`, or `https://localhost:<port>` if `tls` is set. */
  url?: string | undefined
  /**
   * Address for server-to-server calls, if it is not the issuer. Calls between containers need such an
   * address.
   */
  internal_url?: string | undefined
  /** Accepts an issuer whose host is not `localhost`, 127.0.0.1 or ::1. */
  public_issuer?: boolean | undefined
  /** Further hosts for which the server accepts requests, besides its own host and loopback. */
  dev_hosts?: readonly string[] | undefined
  /** True when the controls may be called from other machines. Default: false. */
  remote_controls?: boolean | undefined
  /** Serves https with a certificate generated for this run. */
  tls?: boolean | undefined
  /** Signs in the user of a `login_hint` at once, without the sign-in page. */
  auto_login?: boolean | undefined
  /** Private JWK that signs the tokens of its algorithm from the start. */
  key?: JsonWebKey | undefined
  /**
   * Client of minted tokens and of `exec`; default: the first confidential client, or the first client if
   * none is confidential.
   */
  client?: string | undefined
  /** Data directory to keep. Default: a temporary directory, which `stop` deletes. */
  data_dir?: string | undefined
  /**
   * Settings that override the defaults. The environment is not read. `port`, `host`, `url`, the database,
   * the master key and the costs of hashes in the settings are ignored.
   */
  config?: Partial<Config> | undefined
  log?: Logger | undefined
}

/** The users and clients of a seed. */
export interface SeededObjects {
  users: readonly Pick<SeedOf<'users'>, 'id' | 'username' | 'password' | 'organization' | 'roles'>[]
  clients: readonly Pick<
    SeedOf<'clients'>,
    'client_id' | 'client_secret' | 'organization' | 'type' | 'grant_types'
  >[]
}

/** A running development server. */
export interface Started extends DevFile {
  credentials: DevCredentials
  config: Config
  seed: SeededObjects
  stop(): Promise<void>
}

/**
 * Starts the production server with the development controls and the data of the seed, on the data directory
 * or on a temporary one. After a failed start neither the port nor the directory stays in use.
 *
 * @throws ConfigError when an option or the data directory cannot be used; SeedError for an invalid seed;
 *   StorageError when the directory is locked, or cannot be written
 */
export const start = (options: StartOptions = {}): Promise<Started> =>
  options.data_dir
    ? startIn(options.data_dir, options)
    : inTemporaryDir(data_dir => startIn(data_dir, options))

const startIn = async (data_dir: string, options: StartOptions): Promise<Started> => {
  const prepared = await prepare(data_dir, options)
  const { given } = prepared
  const certificate = options.tls
    ? await (await import('#src/dev/self-signed.ts')).selfSigned(new URL(given.url).hostname)
    : undefined

  // The socket is opened before the app exists, because the issuer contains the port, and port 0 gets a
  // number only when the socket is opened. Requests that arrive before the app exists wait.
  const answer = Promise.withResolvers<Handle>()
  const [listener, unlock] = lockAround(data_dir, () =>
    listen(given, {
      hostname: given.host,
      port: given.port,
      ...socketOptions(options.log ?? silentLog),
      ...(certificate && { tls: { cert: certificate.cert, key: certificate.key } }),
      fetch: async (request, server) => (await answer.promise)(request, server),
    }),
  )
  const begin = (handle: Handle): void => {
    answer.resolve(handle)
    listener.reload({ fetch: handle })
  }
  try {
    return await startOn({ listener, begin, unlock }, data_dir, options, { ...prepared, certificate })
  } catch (error) {
    await listener.stop(true)
    unlock()
    throw error
  }
}

type Handle = ReturnType<typeof development>

/** The open socket of a server, and the lock on its data directory. */
interface Socket {
  listener: ReturnType<typeof listen>
  /** Lets the handler answer the requests. */
  begin(handle: Handle): void
  unlock(): void
}

const startOn = async (
  { listener, begin, unlock }: Socket,
  data_dir: string,
  options: StartOptions,
  prepared: Awaited<ReturnType<typeof prepare>> & { certificate: { cert: string } | undefined },
): Promise<Started> => {
  const { tls = false, log = silentLog } = options
  const { given, exposed, credentials, loginPage, seed, certificate } = prepared
  const config = listening(given, listener.port, exposed)
  const client = mainClient(seed, options.client)
  const organization = client?.organization ?? 'default'
  const client_id = client?.client_id ?? 'dev-service'
  const control_token = newSecret()
  const stopped = {
    url: config.url,
    local_url: `${tls ? 'https' : 'http'}://${loopback(config.host)}:${listener.port}`,
    port: listener.port ?? config.port,
    pid: null,
    control_token,
    client_id,
    client_secret: client?.client_secret ?? null,
    organization,
    organization_id: DEFAULT_ORGANIZATION,
    data_dir,
    ca_file: certificate ? writeCertificate(data_dir, certificate.cert) : null,
    credentials,
  } satisfies DevFile
  // The file is written before the database. If this start fails, for example because of the seed, the next
  // start thus still finds a directory of development mode, with its credentials.
  writeDevFile(stopped)

  const opened = await openSeeded(config, log, options, {
    ...prepared,
    control_token,
    ca: certificate?.cert,
  })
  const { base, clock, mail, xml } = opened
  const { store } = base
  const app = await createApp(base, { late_keys: true, loginPage })
  begin(
    development(app.context, app.fetch, {
      clock,
      mail,
      secrets: new Map(secretsOf(seed)).set(config.admin_client_id, credentials.admin_client_secret),
      token: control_token,
      client_id,
      remote: options.remote_controls ?? false,
      exposed,
      password: credentials.password,
      dev_hosts: options.dev_hosts,
    }),
  )
  const stopHousekeeping = startHousekeeping(app.context)
  const organization_id = (await findOrganizationBySlug(store, organization))?.id ?? DEFAULT_ORGANIZATION
  const file = { ...stopped, pid: process.pid, organization_id }
  writeDevFile(file)

  return {
    ...file,
    config,
    seed,
    stop: async () => {
      const limit = Promise.withResolvers<void>()
      const timer = setTimeout(limit.resolve, DRAIN_MS)
      await Promise.race([stopHousekeeping(), limit.promise])
      // A pending timer would keep a script from ending.
      clearTimeout(timer)
      await listener.stop(true)
      xml.stop()
      await store.close()
      unlock()
      if (options.data_dir) writeDevFile({ ...file, pid: null })
      else rmSync(data_dir, { recursive: true, force: true })
    },
  }
}

/**
 * Returns the parts that are known before the server listens: settings, seed and credentials.
 *
 * @throws ConfigError, SeedError
 */
const prepare = async (data_dir: string, options: StartOptions) => {
  checkDataDir(data_dir)
  const config = configOf(options, data_dir)
  const exposed = isExposed({ ...config, dev_hosts: options.dev_hosts })
  if (exposed && options.auto_login)
    throw new ConfigError(
      '--auto-login signs users in without a password, so it is refused when other machines can reach the server.',
    )
  const credentials = devCredentials(readDevFile(data_dir), exposed, options.config ?? {})
  const isDefault = options.seed === undefined && credentials.password === DEV_PASSWORD
  const read = isDefault
    ? undefined
    : withCredentials(await readGiven(options.seed ?? defaultSeed), credentials)
  return {
    given: { ...config, admin_client_secret: credentials.admin_client_secret },
    exposed,
    credentials,
    loginPage: exposed ? undefined : loginPageOf(options),
    /** Undefined for the default seed with its documented secrets, because that seed needs no validation. */
    read,
    seed: read ? objectsOf(read) : defaultSeed,
    /** True when a new store begins with the rows of the default seed (dev/seed-image.ts). */
    hasImage:
      isDefault &&
      options.data_dir === undefined &&
      config.admin_client_id === DEFAULT_ADMIN_CLIENT &&
      config.admin_username === undefined,
  }
}

/** Returns the user picker. Its code is loaded when the picker is first shown. */
const loginPageOf =
  ({ auto_login = false }: StartOptions): NonNullable<AppOptions['loginPage']> =>
  async (context, step) =>
    (await import('#src/dev/picker.ts')).loginPicker({ auto_login })(context, step)

const objectsOf = ({ entries: { users, clients } }: ReadSeed): SeededObjects => ({
  users: users.map(({ value }) => value),
  clients: clients.map(({ value }) => value),
})

const loopback = (host: string): string =>
  host.includes(':') ? 'localhost' : host === '0.0.0.0' ? '127.0.0.1' : host

const writeCertificate = (data_dir: string, pem: string): string => {
  const file = join(data_dir, 'certificate.pem')
  writeFileSync(file, pem)
  return file
}

const mainClient = ({ clients }: SeededObjects, wanted: string | undefined) =>
  wanted === undefined
    ? (clients.find(({ type }) => type === 'confidential') ?? clients[0])
    : clients.find(({ client_id }) => client_id === wanted)

const secretsOf = ({ clients }: SeededObjects): Map<string, string> =>
  new Map(
    clients.flatMap(({ client_id, client_secret }) => (client_secret ? [[client_id, client_secret]] : [])),
  )

const listen = (config: Config, serve: Parameters<typeof Bun.serve>[0]) => {
  try {
    return Bun.serve(serve)
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    throw new ConfigError(
      code === 'EADDRINUSE'
        ? `${config.host}:${config.port} is in use by another program: choose another --port, or 0 for any.`
        : `cannot listen on ${config.host}:${config.port}: ${message}`,
    )
  }
}
