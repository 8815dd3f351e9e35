import { parseDuration } from './duration.ts'
import { isIP } from './ip.ts'

/**
 * The parser of a setting. It does not use zod, because every command reads settings, and loading zod would
 * delay the start of each command.
 */
export interface Parser<T> {
  /** Returns the value. Returns undefined when the text is not allowed. */
  parse(given: string): T | undefined
  /** Describes the allowed values. In an error message this description follows the words "is not". */
  allowed: string
}

const value = <T>(parse: (given: string) => T | undefined, allowed: string): Parser<T> => ({ parse, allowed })

const matching = (isAllowed: (given: string) => boolean, allowed: string): Parser<string> =>
  value(given => (isAllowed(given) ? given : undefined), allowed)

/** One setting of the server: its parser and its default. */
export interface Setting<T> {
  parser: Parser<T>
  fallback: T | undefined
  secret?: true
  /** The description in `gatehouse help`. */
  about: string
}

/** Parses a text with at least one visible character. An empty secret file is thus refused. */
export const text = matching(given => given.trim() !== '', 'a text with at least one visible character')

/** An optional setting. */
export const setting = <T>(parser: Parser<T>, about: string): Setting<T | undefined> => ({
  parser,
  fallback: undefined,
  about,
})

/**
 * An optional secret setting. Its value can be read from a file. Neither a terminal nor an error message
 * shows the value.
 */
export const secret = <T>(parser: Parser<T>, about: string): Setting<T | undefined> => ({
  ...setting(parser, about),
  secret: true,
})

/** A setting with a default. */
export const withDefault = <T>(
  parser: Parser<T>,
  fallback: T,
  about: string,
): Setting<T> & { fallback: T } => ({ parser, fallback, about })

/** Parses a whole number within the bounds, both inclusive. */
export const wholeNumber = (min: number, max: number): Parser<number> =>
  value(given => {
    const number = Number(given)
    return /^\d{1,9}$/.test(given) && number >= min && number <= max ? number : undefined
  }, `a whole number from ${min} to ${max}`)

/** Parses one of the given names. */
export const choice = <const T extends readonly string[]>(names: T): Parser<T[number]> =>
  value(given => names.find(name => name === given), `one of ${names.join(', ')}`)

const entriesOf = (value: string): string[] =>
  value
    .split(',')
    .map(entry => entry.trim())
    .filter(Boolean)

/** Parses a comma-separated list. `allowed` describes the list. */
export const list = (isEntry: (entry: string) => boolean, allowed: string): Parser<string[]> =>
  value(given => {
    const entries = entriesOf(given)
    return entries.every(isEntry) ? entries : undefined
  }, allowed)

/**
 * Parses an http or https URL without user name, path or trailing slash. The URL must not name the default
 * port.
 */
export const baseUrl = value(given => {
  const url = URL.parse(given)
  const plain = url && `${url.protocol}//${url.host}`
  return url && /^https?:$/.test(url.protocol) && plain === given.toLowerCase() ? plain : undefined
}, 'an http or https address without path or trailing slash, such as https://id.example.com')

/** Parses an http or https URL without credentials, query or fragment. Removes trailing slashes. */
export const endpointUrl = value(given => {
  const url = URL.parse(given)
  const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password
  return isPlain && !/[?#]/.test(given) ? given.replace(/\/+$/, '') : undefined
}, 'an http or https address without credentials or query, such as http://127.0.0.1:4318')

/**
 * Parses `name=value` pairs, separated by commas:
 * https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables
 */
export const headers = value((given): Record<string, string> | undefined => {
  const entries = given.split(',').map(entry => /^\s*([!#$%&'*+.^`|~\w-]+)=(\S*)\s*$/.exec(entry))
  try {
    return entries.every(entry => entry !== null)
      ? Object.fromEntries(entries.map(([, name = '', text = '']) => [name, decodeURIComponent(text)]))
      : undefined
  } catch {
    return undefined
  }
}, 'a comma-separated list of name=value with percent-encoded values')

/** Checks the URL of a mail server: `smtp:` or `smtps:`. */
export const smtpUrl = matching(given => {
  const url = URL.parse(given)
  return /^smtps?:$/.test(url?.protocol ?? '') && Boolean(url?.hostname)
}, 'smtp://host:port or smtps://host:port, with user:password@ before the host if the server asks for it')

const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

/**
 * Returns the database name of a PostgreSQL URL. Returns undefined for any other text, and for a URL with an
 * unknown `sslmode`, invalid percent-encoding, several hosts, no database name, or a name that contains a
 * slash.
 */
export const databaseOf = (value: string): string | undefined => {
  const url = URL.parse(value)
  if (!url || !/^postgres(ql)?:$/.test(url.protocol)) return undefined
  if (url.hostname.includes(',')) return undefined
  if (!sslModes.includes(url.searchParams.get('sslmode') ?? 'prefer')) return undefined
  try {
    const [name = ''] = [url.pathname.slice(1), url.username, url.password].map(decodeURIComponent)
    return name && !name.includes('/') ? name : undefined
  } catch {
    return undefined
  }
}

/** Accepts a PostgreSQL URL from which {@link databaseOf} can read the name of a database. */
export const databaseUrl = matching(
  given => databaseOf(given) !== undefined,
  `postgres://user:password@host:port/database with one host, percent-encoded parts and, if given, an sslmode of ${sslModes.join(', ')}`,
)

/** Checks a mail address, alone or as `Name <address>`. */
export const sender = matching(
  given => /^(?:[^<>\r\n]*<)?[^\s@<>]+@[^\s@<>]+>?$/.test(given),
  'an address such as id@example.com',
)

/** Parses a number from 0 to 1. */
export const ratio = value(
  given => (/^(?:0|1|0?\.\d{1,9}|1\.0+)$/.test(given) ? Number(given) : undefined),
  'a number from 0 to 1, such as 0.1',
)

/** True for an IP address, alone or with a prefix length such as `10.0.0.0/8`. */
export const isRange = (entry: string): boolean => {
  const [address = '', bits, more] = entry.split('/')
  const family = isIP(address)
  return (
    family !== 0 &&
    more === undefined &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32)))
  )
}

/** Parses a duration such as `90d` into milliseconds. */
export const duration = value(parseDuration, 'a whole number followed by m, h, d or w, such as 90d')

/**
 * Parses entries `host:port` or `SLUG=host:port`. Hosts are normalized as in URLs, IPv6 addresses need
 * brackets, and the default port is 443.
 */
export const outboundAllow = value((given): string[] | undefined => {
  const hosts = entriesOf(given).map(allowedHost)
  return hosts.every(host => host !== undefined) ? hosts : undefined
}, 'a comma-separated list of host:port or SLUG=host:port, such as idp.internal:8443, acme=[fd00::1]:443')

const allowedHost = (entry: string): string | undefined => {
  const [, slug = '', host = '', port = '443'] =
    /^([a-z\d-]+=)?([\w.-]+|\[[\da-f.:]+\])(?::(\d{1,5}))?$/i.exec(entry) ?? []
  const url = URL.parse(`https://${host}:${port}`)
  return host && url && port !== '0' ? `${slug}${url.hostname}:${Number(port)}` : undefined
}

const SERVICE_LINK =
  /^GATEHOUSE_(?:\w+_)?(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/

/** True for a variable that Kubernetes sets for a service whose name begins with "gatehouse". */
export const isServiceLink = (name: string, value: string): boolean =>
  SERVICE_LINK.test(name) || /^(?:tcp|udp|sctp):\/\//.test(value)

/**
 * Returns a sentence that suggests a known name for an unknown one, such as `smtp_url` for `smtp-url`.
 * Returns an empty string when no known name is similar.
 */
export const suggestionFor = (unknown: string, names: readonly string[]): string => {
  const text = unknown.replaceAll('-', '_')
  const near =
    names.find(name => name === text) ??
    names.find(name => name.startsWith(text.slice(0, 5)) || text.includes(name))
  return near ? `Did you mean ${near}? ` : ''
}
