import { readFileSync } from 'node:fs'
import { DEFAULT_ADMIN_CLIENT } from './lib/ids.ts'
import {
  baseUrl,
  choice,
  databaseUrl,
  duration,
  endpointUrl,
  headers,
  isRange,
  isServiceLink,
  list,
  outboundAllow,
  type Parser,
  ratio,
  type Setting,
  secret,
  sender,
  setting,
  smtpUrl,
  suggestionFor,
  text,
  wholeNumber,
  withDefault,
} from './lib/setting-values.ts'
import { parseYaml, readBounded, type Yaml, YamlError } from './lib/yaml.ts'
import { signingAlgs } from './protocol/oidc/signing-algs.ts'

/** An invalid configuration. The command line prints `message` on one line and exits with 2. */
export class ConfigError extends Error {
  readonly exit_code = 2
}

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const

/** All settings by their names in the settings file. In the environment, `url` is `GATEHOUSE_URL`. */
export const settings = {
  url: setting(baseUrl, 'public address and issuer; default http://localhost:<port>, with tls_cert https'),
  internal_url: setting(baseUrl, 'address for server-to-server calls when it differs from url (containers)'),
  host: setting(text, 'address to listen on; default 127.0.0.1, or all addresses (::) if url is set'),
  port: withDefault(wholeNumber(0, 65_535), 8080, 'port to listen on, 0 for a free one; default 8080'),
  data_dir: withDefault(text, './data', 'directory of database and keys; default ./data'),
  database_url: secret(databaseUrl, 'postgres://… of a PostgreSQL database; default: SQLite in data_dir'),
  workers: withDefault(wholeNumber(1, 64), 1, 'processes that share the port, PostgreSQL only; default 1'),
  master_key: secret(text, '32 bytes in base64 that encrypt stored keys; default: a file in data_dir'),
  trusted_proxies: withDefault(
    list(isRange, 'a comma-separated list of addresses and ranges such as 10.0.0.0/8, ::1'),
    [],
    'addresses and ranges of proxies whose X-Forwarded-For is used',
  ),
  console: withDefault(choice(['on', 'off']), 'on', 'console at /console, on or off; default on'),
  log_level: withDefault(choice(logLevels), 'info', `${logLevels.join(', ')}; default info`),
  tls_cert: setting(text, 'certificate file for https (PEM)'),
  tls_key: setting(text, 'private key file of the certificate (PEM)'),
  geoip_file: setting(text, 'MaxMind DB file to look up the place of a session'),
  outbound_allow: withDefault(
    outboundAllow,
    [],
    'private hosts that the server may call: host:port for the default organization, SLUG=host:port for a tenant',
  ),
  smtp_url: secret(smtpUrl, 'mail server: smtp://… or smtps://…'),
  mail_from: setting(sender, 'sender of mail, such as Example <id@example.com>'),
  // The defaults of Argon2id are the minimum of OWASP's Password Storage Cheat Sheet, and lower values are
  // refused. Higher defaults would cost too much memory, because each concurrent hash takes up
  // `argon2_memory`.
  argon2_memory: withDefault(
    wholeNumber(19_456, 1_048_576),
    19_456,
    'memory for password hashing, in KiB; default 19456',
  ),
  argon2_time: withDefault(wholeNumber(2, 16), 2, 'passes of password hashing; default 2'),
  admin_client_id: withDefault(
    text,
    DEFAULT_ADMIN_CLIENT,
    'id of the first admin client; default gatehouse-admin',
  ),
  admin_client_secret: secret(text, 'secret of the first admin client, applied at each start'),
  admin_username: setting(text, 'user name of the first admin (first start only)'),
  admin_email: setting(text, 'e-mail address of the first admin'),
  admin_password: secret(text, 'password of the first admin'),
  metrics_token: secret(
    text,
    'bearer token for /metrics; without one (default) only this machine can read /metrics, and only if no proxy is trusted and url and host are loopback',
  ),
  // ES256 signs in 1/28 of the CPU time of RS256. OpenID Connect requires RS256 only for ID tokens.
  access_token_alg: withDefault(
    choice(signingAlgs),
    'ES256',
    'signature algorithm of access tokens; default ES256',
  ),
  id_token_alg: withDefault(choice(signingAlgs), 'RS256', 'signature algorithm of ID tokens; default RS256'),
  seed_file: setting(text, 'seed file (organizations, users, clients …), applied at each start'),
  otel_exporter_otlp_endpoint: setting(
    endpointUrl,
    'OpenTelemetry collector (OTLP over HTTP) for traces; default: none',
  ),
  otel_exporter_otlp_headers: secret(headers, 'request headers for the collector: name=value, …'),
  otel_service_name: withDefault(text, 'gatehouse', 'service name in traces; default gatehouse'),
  otel_traces_sampler: withDefault(
    choice(samplers),
    'parentbased_always_on',
    'sampler of traces; default parentbased_always_on',
  ),
  otel_traces_sampler_arg: withDefault(
    ratio,
    1,
    'sampled share of requests, from 0 to 1, for the traceidratio samplers',
  ),
  event_retention: setting(
    duration,
    'age at which audit events move from the database to files in data_dir; default: never',
  ),
}

type Settings = typeof settings
type Name = keyof Settings
type Value<S> = S extends { fallback: infer F; parser: Parser<infer T> }
  ? undefined extends F
    ? T | undefined
    : T
  : never

type Values = { readonly [K in Name]: Value<Settings[K]> }

/** The server's settings, parsed once from environment and file. */
export interface Config extends Values {
  readonly url: string
  readonly host: string
}

/** The parsed settings, and the source of each. */
export interface LoadedConfig {
  config: Config
  /** Source of each value, which `config print` shows. */
  sources: Record<Name, string>
  warnings: string[]
}

type Environment = Record<string, string | undefined>

const PREFIX = 'GATEHOUSE_'
/** Maximum bytes of the settings file. The parser takes quadratic time for map keys: 3 s at this size. */
const MAX_BYTES = 64 * 1024
const isName = (name: string): name is Name => Object.hasOwn(settings, name)

interface RawValue {
  value: string
  source: string
}

/**
 * Adds a value. `name_FILE` is the path of a file that contains the value of a secret: containers mount
 * secrets as files. An unknown name is an error, because it is probably mistyped, and the intended setting
 * would silently keep its default.
 */
const addRaw = (
  given: Map<Name, RawValue>,
  name: string,
  value: string,
  source: string,
  label: string,
): void => {
  const key = name.toLowerCase()
  if (isName(key)) {
    if (given.has(key)) throw new ConfigError(`${label}: set twice, perhaps once as a file (${source}).`)
    given.set(key, { value, source })
    return
  }
  const base = key.replace(/_file$/, '')
  if (key === base || !isName(base) || !settings[base].secret)
    throw new ConfigError(
      `${label}: no such setting (${source}). ${suggestionFor(key, Object.keys(settings))}\`gatehouse help settings\` lists all settings.`,
    )
  try {
    addRaw(given, base, readFileSync(value, 'utf8').replace(/\r?\n$/, ''), `${source}, file ${value}`, label)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError(`${label}: the file ${value} cannot be read (${source}).`)
  }
}

const fromEnvironment = (env: Environment, warnings: string[]): Map<Name, RawValue> => {
  const given = new Map<Name, RawValue>()
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || name === 'GATEHOUSE_CONFIG' || value === undefined) continue
    if (isServiceLink(name, value))
      warnings.push(`${name} looks like a container's service link and is ignored.`)
    else if (value !== '') addRaw(given, name.slice(PREFIX.length), value, 'environment', name)
  }
  // OTEL_ variables are meant for every program on the machine. GATEHOUSE_ variables therefore take
  // precedence. Unknown OTEL_ variables and values are ignored.
  for (const [name, value] of Object.entries(env)) {
    const key = name.toLowerCase()
    if (!name.startsWith('OTEL_') || !value || !isName(key) || given.has(key)) continue
    const raw = { value, source: `environment, ${name}` }
    if (settings[key].parser.parse(value) === undefined)
      warnings.push(`${name}: ${mistake(settings[key], raw)}, and is ignored.`)
    else given.set(key, raw)
  }
  return given
}

const readYaml = (path: string): Yaml => {
  try {
    // Numbers are read as texts, because a secret may consist of digits that begin with a zero.
    return parseYaml(readBounded(path, MAX_BYTES), { areScalarsTexts: true })
  } catch (error) {
    if (!(error instanceof YamlError))
      throw new ConfigError(`${path}: cannot be read (${(error as NodeJS.ErrnoException).code}).`)
    throw new ConfigError(`${[path, error.line].filter(Boolean).join(':')}: ${error.message}`)
  }
}

const fromFile = (path: string): Map<Name, RawValue> => {
  const { value: content, lineOf } = readYaml(path)
  if (content === null) return new Map()
  if (typeof content !== 'object' || Array.isArray(content))
    throw new ConfigError(`${path}: must be a map of settings in YAML or JSON.`)
  const given = new Map<Name, RawValue>()
  for (const [name, value] of Object.entries(content)) {
    const at = `${path}:${lineOf([name])}`
    const scalar = Array.isArray(value) ? value.join(',') : value
    if (typeof scalar !== 'string')
      throw new ConfigError(`${name}: must be a string, a number or a list of strings (${at}).`)
    addRaw(given, name, scalar, at, name)
  }
  return given
}

/**
 * Loads all settings.
 *
 * @throws ConfigError for the first mistake. The message for a wrong value names the setting, the allowed
 * values and the source. The message quotes the value, but never the value of a secret.
 */
export const loadConfig = (env: Environment, named?: string): LoadedConfig => {
  if (named === '') throw new ConfigError('--config: the name of the file is empty.')
  const file = named ?? env.GATEHOUSE_CONFIG
  const warnings: string[] = []
  // Later entries win, so the environment wins over the file.
  const given = new Map([...(file ? fromFile(file) : []), ...fromEnvironment(env, warnings)])
  const values = mapSettings((name, setting) => parseOne(name, setting, given.get(name))) as Values
  const config: Config = {
    ...values,
    // By default a server with a `url` listens on all addresses, because other machines have to reach it. A
    // server without a `url` listens on loopback only.
    host: values.host ?? (given.has('url') ? '::' : '127.0.0.1'),
    url: values.url ?? new URL(`${values.tls_cert ? 'https' : 'http'}://localhost:${values.port}`).origin,
  }
  check(config)
  if (!config.smtp_url !== !config.mail_from)
    warnings.push(`No mail is sent: ${config.smtp_url ? 'mail_from' : 'smtp_url'} is missing.`)
  return { config, sources: mapSettings(name => given.get(name)?.source ?? 'default'), warnings }
}

const mapSettings = <T>(map: (name: Name, setting: Setting<unknown>) => T) =>
  Object.fromEntries(
    Object.entries(settings).map(([name, setting]) => [name, map(name as Name, setting)]),
  ) as Record<Name, T>

const parseOne = (name: Name, setting: Setting<unknown>, given?: RawValue): unknown => {
  if (!given) return setting.fallback
  const parsed = setting.parser.parse(given.value)
  if (parsed !== undefined) return parsed
  const label = given.source.startsWith('environment') ? PREFIX + name.toUpperCase() : name
  throw new ConfigError(`${label}: ${mistake(setting, given)}.`)
}

/** Says what is wrong with a value. The value of a secret is not shown. */
const mistake = ({ parser, secret }: Setting<unknown>, { value, source }: RawValue): string =>
  `${secret ? 'the value' : `"${value.slice(0, 80)}"`} is not ${parser.allowed} (${source})`

/**
 * Returns the environment without Gatehouse's settings, for child programs. A child program must not get
 * Gatehouse's secrets, but needs the variables of the PostgreSQL driver and of TLS libraries.
 */
export const environmentOfOthers = (): Environment =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:GATEHOUSE|OTEL)_/.test(name)))

const check = (config: Config): void => {
  if (config.workers > 1 && config.database_url === undefined)
    throw new ConfigError(
      'workers: more than 1 needs database_url, because only one process can write an SQLite file.',
    )
  if ((config.tls_cert === undefined) !== (config.tls_key === undefined))
    throw new ConfigError('tls_cert and tls_key: set both or neither.')
  const admin = [config.admin_username, config.admin_email, config.admin_password]
  if (admin.some(Boolean) && !admin.every(Boolean))
    throw new ConfigError('admin_username, admin_email and admin_password: set all three or none.')
  if (config.master_key !== undefined && Buffer.from(config.master_key, 'base64').length !== 32)
    throw new ConfigError('master_key: must be 32 bytes in base64; make one with `openssl rand -base64 32`.')
}
