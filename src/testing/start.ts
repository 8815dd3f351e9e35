import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AppOptions, createApp } from '#src/app.ts'
import { type Config, ConfigError, loadConfig } from '#src/config.ts'
import { devCredentials, isExposed, withCredentials } from '#src/dev/credentials.ts'
import { DEV_PASSWORD, defaultSeed } from '#src/dev/default-seed.ts'
import { DEV_FILE, type DevCredentials, type DevFile, readDevFile, writeDevFile } from '#src/dev/dev-file.ts'
import { development } from '#src/dev/development.ts'
import { findOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { socketOptions } from '#src/http/socket.ts'
import { DEFAULT_ADMIN_CLIENT, DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { type Logger, silentLog } from '#src/lib/log.ts'
import { DRAIN_MS, startHousekeeping } from '#src/operations/housekeeping.ts'
import type { ReadSeed } from '#src/seed/read.ts'
import type { SeedInput, SeedOf } from '#src/seed/schema.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { lockAround } from '#src/storage/sqlite/lock.ts'
import { inTemporaryDir } from './leftovers.ts'
import { openSeeded, readGiven } from './seeded-core.ts'

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
  /** Accepts an issuer whose host is not this machine. */
  public_issuer?: boolean | undefined
  /** Further hosts for which the server accepts requests, besides its own host and loopback. */
  dev_hosts?: readonly string[] | undefined
  /** True when the controls may be called from other machines. */
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
  /** Data directory to keep. Default: a temporary directory, which `close` deletes. */
  data_dir?: string | undefined
  /** Settings that override the defaults. The environment is not read. */
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

const HOSTS = ['localhost', '127.0.0.1', '[::1]']

/**
 * Returns the settings with the port. A server that only this machine can reach may call every port of this
 * machine, such as those of applications under test. A server that other machines can reach may call only its
 * own port, because its users choose some of the addresses that it calls.
 */
const listening = (config: Config, port: number | undefined, exposed: boolean): Config => ({
  ...config,
  url: config.url.replace(/:0$/, `:${port}`),
  outbound_allow: [...config.outbound_allow, ...HOSTS.map(host => `*=${host}:${exposed ? port : '*'}`)],
})

/** Passwords are hashed at low cost, because the passwords of development mode are public or random. */
const cheapHashes = { argon2_memory: 64, argon2_time: 1 }

/**
 * Starts the production server with the development controls, seeded, on a temporary store.
 *
 * @throws ConfigError when an option or the data directory cannot be used; SeedError for an invalid seed
 */
export const start = (options: StartOptions = {}): Promise<Started> =>
  options.data_dir
    ? startIn(options.data_dir, options)
    : inTemporaryDir(data_dir => startIn(data_dir, options))

const startIn = async (data_dir: string, options: StartOptions): Promise<Started> => {
  const { tls = false, log = silentLog } = options
  const prepared = await prepare(data_dir, options)
  const { given, exposed, credentials, loginPage, seed } = prepared
  const certificate = tls
    ? await (await import('#src/dev/self-signed.ts')).selfSigned(new URL(given.url).hostname)
    : undefined

  // The socket is opened before the app exists, because the issuer contains the port, and port 0 gets a
  // number only when the socket is opened. Requests that arrive before the app exists wait.
  const answer = Promise.withResolvers<ReturnType<typeof development>>()
  const [listener, unlock] = lockAround(data_dir, () =>
    listen(given, {
      hostname: given.host,
      port: given.port,
      ...socketOptions(log),
      ...(certificate && { tls: { cert: certificate.cert, key: certificate.key } }),
      fetch: async (request, server) => (await answer.promise)(request, server),
    }),
  )
  const config = listening(given, listener.port, exposed)

  const opened = await openSeeded(config, log, options, { ...prepared, ca: certificate?.cert })
  const { base, clock, mail, xml, control_token } = opened
  const { store } = base
  const app = await createApp(base, { late_keys: true, loginPage })

  const client = mainClient(seed, options.client)
  const organization = client?.organization ?? 'default'
  const client_id = client?.client_id ?? 'dev-service'
  const handle = development(app.context, app.fetch, {
    clock,
    mail,
    secrets: new Map(secretsOf(seed)).set(config.admin_client_id, credentials.admin_client_secret),
    token: control_token,
    client_id,
    remote: options.remote_controls ?? false,
    exposed,
    password: credentials.password,
    dev_hosts: options.dev_hosts,
  })
  answer.resolve(handle)
  listener.reload({ fetch: handle })
  const stopHousekeeping = startHousekeeping(app.context)

  const file = {
    url: config.url,
    local_url: `${tls ? 'https' : 'http'}://${loopback(config.host)}:${listener.port}`,
    port: listener.port ?? config.port,
    pid: process.pid,
    control_token,
    client_id,
    client_secret: client?.client_secret ?? null,
    organization,
    organization_id: (await findOrganizationBySlug(store, organization))?.id ?? DEFAULT_ORGANIZATION,
    data_dir,
    ca_file: certificate ? writeCertificate(data_dir, certificate.cert) : null,
    credentials,
  } satisfies DevFile
  writeDevFile(file)

  return {
    ...file,
    config,
    seed,
    stop: async () => {
      const limit = Promise.withResolvers<void>()
      const timer = setTimeout(limit.resolve, DRAIN_MS)
      await Promise.race([stopHousekeeping(), limit.promise])
      // Otherwise a script could not end before the timer.
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

/** Returns the parts that are known before the server listens: settings, seed and credentials. */
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

const configOf = (options: StartOptions, data_dir: string): Config => {
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
      `The host of the issuer ${config.url} (url, --url or GATEHOUSE_URL) is not this machine, and development mode is only for tests. Set public_issuer (--public-issuer) if only you can reach the server, for example in a container.`,
    )
  return config
}

/**
 * Refuses the data directory of a production server, because the seed would add users with public passwords.
 */
const checkDataDir = (data_dir: string): void => {
  if (existsSync(join(data_dir, DATABASE_FILE)) && !existsSync(join(data_dir, DEV_FILE)))
    throw new ConfigError(
      `${data_dir} contains the data of a server that is not a development server. Choose another directory.`,
    )
}

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
