import { createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ConfigError, loadConfig } from '#src/config.ts'
import { defaultSeed, isDefaultUser } from '#src/dev/default-seed.ts'
import { isIP } from '#src/lib/ip.ts'
import type { LogLevel } from '#src/lib/log.ts'
import { baseUrl } from '#src/lib/setting-values.ts'
import { VERSION } from '#src/lib/version.ts'
import type { ReadSeed } from '#src/seed/read.ts'
import { readGiven } from '#src/testing/seeded-core.ts'
import { type Started, type StartOptions, start } from '#src/testing/start.ts'
import type { HeldInput } from './held-input.ts'
import { prepareReadyFile, writeReadyFile } from './ready-file.ts'

/** Options of `gatehouse dev` and `gatehouse exec`. */
export interface DevOptions {
  config?: string
  port?: string
  host?: string
  url?: string
  internalUrl?: string
  publicIssuer?: boolean
  devHost?: string[]
  seed?: string
  tls?: boolean
  autoLogin?: boolean
  mcp?: boolean
  key?: string
  dataDir?: string
  readyFile?: string
  untilInputEnds?: boolean
  /** Standard input, if `untilInputEnds` is set. The server stops when standard input ends. */
  input?: HeldInput
  /** Id of the client whose credentials `exec` puts into the environment of the command. */
  client?: string
}

/**
 * Runs the production server with users, clients and test controls, by default on a temporary store. Resolves
 * when the server has stopped.
 */
export const dev = async (given: DevOptions): Promise<void> => {
  const [{ openLog }, { stopSignal }] = await Promise.all([import('./log.ts'), import('./server.ts')])
  const options = given.untilInputEnds ? await withInput(given) : given
  if (options.readyFile) prepareReadyFile(options.readyFile)
  const { log, flush } = await openLog(logLevelOf(options, process.stdout.isTTY ? 'warn' : 'info'))
  const mcp = options.mcp ? await startMcp(options) : undefined
  const started = await startWith(options, { log, ...(mcp && { seed: mcp.seed }) })
  mcp?.serve(started)
  // The signal handlers are installed before the ready line, because a reader of that line may stop the
  // server at once.
  const stopped = Promise.race([stopSignal(), ...(options.input ? [options.input.ended] : [])])
  announce(started, options, Math.round(performance.now()), mcp?.url)
  await stopped
  await mcp?.stop()
  await started.stop()
  flush()
}

/** Returns the log level of the settings, or the level `otherwise` if the settings have none. */
export const logLevelOf = (options: DevOptions, otherwise: LogLevel): LogLevel => {
  const { config, sources } = loadConfig(process.env, options.config)
  return sources.log_level === 'default' ? otherwise : config.log_level
}

const withInput = async (options: DevOptions): Promise<DevOptions> => {
  const { holdInput } = await import('./held-input.ts')
  return { ...options, input: holdInput(seedFileOf(options) === '-') }
}

/** Opens the port of the MCP server. Returns the listener, and the seed with the API of the MCP server. */
const startMcp = async (options: DevOptions) => {
  const [{ listenMcp, withMcp }, { readSeed }] = await Promise.all([
    import('./dev-mcp.ts'),
    import('#src/seed/read.ts'),
  ])
  const seed = (await seedOf(options)) ?? readSeed(defaultSeed)
  const listener = listenMcp(mcpPortOf(options.port))
  return { ...listener, seed: withMcp(seed, listener.url) }
}

/** Starts the server. The options take precedence over the environment. */
export const startWith = async (
  options: DevOptions,
  more: Omit<StartOptions, 'seed'> & { seed?: ReadSeed } = {},
): Promise<Started> => {
  const { config } = loadConfig(process.env, options.config)
  const address = options.devHost?.find(host => isIP(host) > 0)
  const seed = more.seed ?? (await seedOf(options))
  if (options.client) requireClient(seed, options.client)
  return start({
    config,
    seed,
    port: portOf(options.port ?? '8080'),
    host: address ?? options.host,
    dev_hosts: options.devHost,
    remote_controls: address !== undefined,
    url: addressOf('--url', options.url) ?? (process.env.GATEHOUSE_URL || undefined),
    internal_url: addressOf('--internal-url', options.internalUrl),
    public_issuer: options.publicIssuer,
    tls: options.tls,
    auto_login: options.autoLogin,
    client: options.client,
    key: options.key === undefined ? undefined : readKey(options.key),
    data_dir: options.dataDir,
    ...more,
  })
}

/**
 * Returns the seed of `--seed` or of the setting `seed_file`. Returns undefined when neither is set. The
 * default seed then applies.
 */
const seedOf = async (options: DevOptions): Promise<ReadSeed | undefined> => {
  const seed_file = seedFileOf(options)
  if (seed_file === undefined) return undefined
  const [{ readSeedFile }, { parseSeed }] = await Promise.all([
    import('./seed-file.ts'),
    import('#src/seed/read.ts'),
  ])
  const text = await options.input?.seed
  return readGiven(text === undefined ? readSeedFile(seed_file) : parseSeed(text, seed_file, process.env))
}

const seedFileOf = (options: DevOptions): string | undefined =>
  options.seed ?? loadConfig(process.env, options.config).config.seed_file

/** Returns the port of the server plus one. For 0 and 65535 the result is 0, which means any free port. */
const mcpPortOf = (text = '8080'): number => {
  const port = portOf(text)
  return port === 0 || port === 65_535 ? 0 : port + 1
}

const requireClient = (seed: ReadSeed | undefined, wanted: string): void => {
  const clients = seed?.entries.clients.map(({ value }) => value) ?? defaultSeed.clients
  const ids = clients.map(({ client_id }) => client_id)
  if (!ids.includes(wanted))
    throw new ConfigError(`--client: there is no client ${wanted}. Clients: ${ids.join(', ')}.`)
}

const addressOf = (option: string, text: string | undefined): string | undefined => {
  const url = text === undefined ? undefined : baseUrl.parse(text)
  if (text !== undefined && url === undefined) throw new ConfigError(`${option}: not ${baseUrl.allowed}.`)
  return url
}

const portOf = (text: string): number => {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new ConfigError(`--port: "${text.slice(0, 80)}" is not a whole number from 0 to 65535.`)
}

const readKey = (file: string): JsonWebKey => {
  try {
    const key: JsonWebKey = JSON.parse(readFileSync(file, 'utf8'))
    createPrivateKey({ key, format: 'jwk' })
    return key
  } catch {
    throw new ConfigError(`--key: ${file} is not a readable private RSA or EC key (JWK).`)
  }
}

/**
 * Writes the ready line to the file that `--ready-file` names. Then prints the ready line or, on a terminal,
 * an overview with commands to try.
 */
const announce = (started: Started, options: DevOptions, ms: number, mcp_url: string | undefined): void => {
  const { url, local_url, port, pid, control_token, client_id, client_secret, data_dir, ca_file } = started
  const { password, admin_client_secret } = started.credentials
  const ready = {
    event: 'ready',
    url,
    local_url,
    port,
    ms,
    pid,
    control_token,
    client_id,
    client_secret,
    admin_client_secret,
    password,
    data_dir,
    ca_file,
    ...(mcp_url !== undefined && { mcp_url }),
  }
  if (options.readyFile) writeReadyFile(options.readyFile, `${JSON.stringify(ready)}\n`)
  if (!process.stdout.isTTY) console.log(JSON.stringify(ready))
  else console.log(overview(started, options, ms, mcp_url))
}

type Row = [name: string, ...values: string[]]

const paint = (code: number) => (text: string) =>
  process.stdout.hasColors?.() ? `\u001b[${code}m${text}\u001b[0m` : text
const [bold, dim] = [paint(1), paint(2)]

const aligned = (rows: Row[]): string[] => {
  const widths = rows.reduce<number[]>(
    (most, row) => row.map((cell, i) => Math.max(cell.length, most[i] ?? 0)),
    [],
  )
  return rows.map(row =>
    row
      .map((cell, i) => (i === 0 ? bold(cell.padEnd(widths[i] ?? 0)) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

/** Returns the overview for a terminal. */
const overview = (started: Started, { dataDir }: DevOptions, ms: number, mcp_url?: string): string => {
  const { seed } = started
  const isDefault = seed.users.some(isDefaultUser)
  const users = seed.users.map(({ username, password, organization, roles }): Row => {
    const shown = password ?? (isDefault ? started.credentials.password : '–')
    return [username, shown, [...(organization === 'default' ? [] : [organization]), ...roles].join(', ')]
  })
  const clients = [
    ...seed.clients.map(
      ({ client_id, client_secret, type, grant_types }): Row => [
        client_id,
        client_secret ?? '–',
        `${type}, ${grant_types.join(' ')}`,
      ],
    ),
    [
      started.config.admin_client_id,
      started.credentials.admin_client_secret,
      'confidential, client_credentials: the admin API',
    ] satisfies Row,
  ]
  const section = (title: string, lines: string[]) => ['', dim(title), ...lines.map(line => `  ${line}`)]
  return [
    '',
    `${bold(`Gatehouse ${VERSION}`)} development server, ready in ${ms} ms. ${dataDir ? `Its data stays in ${dataDir}` : 'Its data is deleted when it stops'}.`,
    ...section(
      'Server',
      aligned([
        ['Issuer', started.url],
        ['Home', `${started.local_url}/dev/`, 'users, mailbox, requests, clock and faults'],
        ['Control token', started.control_token],
        ['Guide', `${started.local_url}/guide`],
        ...(started.ca_file ? [['Certificate', started.ca_file] satisfies Row] : []),
      ]),
    ),
    ...(mcp_url === undefined
      ? []
      : section('MCP: give this address to Inspector or an assistant', [
          mcp_url,
          `claude mcp add --transport http gatehouse-dev ${mcp_url}`,
        ])),
    ...section('Users (password)', aligned(users)),
    ...section('Clients (secret)', aligned(clients)),
    ...section('Try', [curlLine(started), tokenLine(started)]),
    '',
  ].join('\n')
}

/** Returns a command that prints a token of the first user. */
const tokenLine = ({ seed: { users }, config }: Started): string => {
  const { username, organization } = users[0] ?? { username: 'somebody', organization: 'default' }
  const home = organization === 'default' ? '' : ` --organization ${organization}`
  // Without --data-dir, `gatehouse token` would prefer an instance in the current folder.
  return `gatehouse token --user ${username}${home} --data-dir ${config.data_dir}`
}

/**
 * Returns a curl command that works as printed. If the client has a secret and the grant client_credentials,
 * the command requests a token. Otherwise it requests the discovery document.
 */
const curlLine = ({ local_url, client_id, client_secret, ca_file, seed }: Started): string => {
  const curl = `curl -s${ca_file ? ` --cacert ${ca_file}` : ''} ${local_url}`
  const client = seed.clients.find(client => client.client_id === client_id)
  return client_secret && client?.grant_types.includes('client_credentials')
    ? `${curl}/oauth/token -d grant_type=client_credentials -d client_id=${client_id} -d client_secret=${client_secret}`
    : `${curl}/.well-known/openid-configuration`
}
