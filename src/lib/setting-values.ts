import { isIP } from 'node:net'
import { parseDuration } from './duration.ts'

/** How the texts of settings are read. What is not allowed is thrown as an Error that says what is. */
const refuse = (allowed: string): never => {
  throw new Error(allowed)
}

export const text = (value: string): string => value

export const integer =
  (min: number, max: number) =>
  (value: string): number =>
    /^\d{1,9}$/.test(value) && Number(value) >= min && Number(value) <= max
      ? Number(value)
      : refuse(`a whole number from ${min} to ${max}`)

export const oneOf =
  <const T extends readonly string[]>(names: T) =>
  (value: string): T[number] =>
    names.includes(value) ? value : refuse(names.join(', '))

export const list =
  (isEntry: (entry: string) => boolean, allowed: string) =>
  (value: string): string[] => {
    const entries = value
      .split(',')
      .map(entry => entry.trim())
      .filter(Boolean)
    return entries.every(isEntry) ? entries : refuse(allowed)
  }

export const baseUrl = (value: string): string => {
  const url = URL.canParse(value) ? new URL(value) : undefined
  const plain = url && `${url.protocol}//${url.host}`
  return url && /^https?:$/.test(url.protocol) && plain === value.toLowerCase()
    ? plain
    : refuse('an http or https address without path and trailing slash, such as https://id.example.com')
}

export const endpoint = (value: string): string => {
  const url = URL.parse(value)
  return url && /^https?:$/.test(url.protocol) && !url.username && !url.search && !url.hash
    ? value.replace(/\/+$/, '')
    : refuse('an http or https address without credentials and query, such as http://127.0.0.1:4318')
}

/** https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables */
export const headers = (value: string): Record<string, string> => {
  try {
    return Object.fromEntries(
      value.split(',').map(entry => {
        const [, name = '', text = ''] = /^\s*([!#$%&'*+.^`|~\w-]+)=(\S*)\s*$/.exec(entry) ?? refuse('')
        return [name, decodeURIComponent(text)]
      }),
    )
  } catch {
    return refuse('a comma list of name=value, values encoded as in addresses')
  }
}

export const smtpUrl = (value: string): string =>
  /^smtps?:$/.test(URL.parse(value)?.protocol ?? '') && URL.parse(value)?.hostname
    ? value
    : refuse('smtp://host:port or smtps://host:port, with user:password@ before the host if need be')

const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

/** The name in a database's address; undefined when that is none. */
export const databaseOf = (value: string): string | undefined => {
  const url = URL.parse(value)
  if (!url || !/^postgres(ql)?:$/.test(url.protocol)) return undefined
  if (!sslModes.includes(url.searchParams.get('sslmode') ?? 'prefer')) return undefined
  try {
    const [name = ''] = [url.pathname.slice(1), url.username, url.password].map(decodeURIComponent)
    return name && !name.includes('/') ? name : undefined
  } catch {
    return undefined
  }
}

export const databaseUrl = (value: string): string =>
  databaseOf(value)
    ? value
    : refuse(
        `postgres://user:password@host:port/database, what has signs such as % or @ encoded, and as sslmode, if one is given, ${sslModes.join(', ')}`,
      )

export const sender = (value: string): string =>
  /^(?:[^<>\r\n]*<)?[^\s@<>]+@[^\s@<>]+>?$/.test(value) ? value : refuse('an address such as id@example.com')

export const ratio = (value: string): number =>
  /^(?:0|1|0?\.\d{1,9}|1\.0+)$/.test(value) ? Number(value) : refuse('a number from 0 to 1, such as 0.1')

export const isRange = (entry: string): boolean => {
  const [address = '', bits, more] = entry.split('/')
  const family = isIP(address)
  return (
    family !== 0 &&
    more === undefined &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32)))
  )
}

/** Milliseconds. */
export const duration = (value: string): number =>
  parseDuration(value) ?? refuse('a whole number and m, h, d or w, such as 90d')

/** `host:port` or `SLUG=host:port`, the host as URLs have it; without a port, 443. An IPv6 address stands in brackets. */
export const outboundAllow = (value: string): string[] =>
  list(
    () => true,
    '',
  )(value).map(entry => {
    const [, slug = '', host = '', port = '443'] =
      /^([a-z\d-]+=)?([\w.-]+|\[[\da-f.:]+\])(?::(\d{1,5}))?$/i.exec(entry) ?? []
    const url = URL.parse(`https://${host}:${port}`)
    return host && url && port !== '0'
      ? `${slug}${url.hostname}:${Number(port)}`
      : refuse('a comma list of host:port or SLUG=host:port, such as idp.internal:8443, acme=[fd00::1]:443')
  })
