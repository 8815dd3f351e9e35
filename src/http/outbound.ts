import { lookup } from 'node:dns'
import { type IncomingMessage, request as plainRequest, type RequestOptions } from 'node:http'
import { request as secureRequest } from 'node:https'
import { BlockList, isIP } from 'node:net'
import type { Config } from '#src/config.ts'
import type { Outbound } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'

/** Why a call was not made or not waited for. The message names no address: it may reach a log, and nothing else. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
}

interface Limits {
  /** Milliseconds from the call to the last byte. */
  timeout: number
  /** Of the answer's body. */
  bytes: number
  resolve: (hostname: string) => Promise<{ address: string; family: number }[]>
}

const resolve: Limits['resolve'] = hostname =>
  new Promise((done, fail) =>
    lookup(hostname, { all: true }, (error, found) => (error ? fail(error) : done(found))),
  )

const LIMITS: Limits = { timeout: 5 * SECOND, bytes: 1024 * 1024, resolve }

type Family = 'ipv4' | 'ipv6'

const subnets = (family: Family, ranges: string): BlockList => {
  const list = new BlockList()
  for (const range of ranges.split(' ')) {
    const [network = '', bits] = range.split('/')
    list.addSubnet(network, Number(bits), family)
  }
  return list
}

/** Not the Internet's: https://www.iana.org/assignments/iana-ipv4-special-registry and its IPv6 counterpart. */
const private4 = subnets(
  'ipv4',
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 ' +
    '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3',
)
const public6 = subnets('ipv6', '2000::/3')
/** Within 2000::/3, but special: tunnels lead to IPv4 addresses of all kinds. */
const special6 = subnets('ipv6', '2001::/23 2001:db8::/32 2002::/16 3fff::/20')

export const isPublic = (address: string): boolean =>
  isIP(address) === 4
    ? !private4.check(address, 'ipv4')
    : isIP(address) === 6 && public6.check(address, 'ipv6') && !special6.check(address, 'ipv6')

/** Whether `outbound_allow` names the host, with or without the port: it may then be private, and plain http. */
export const isAllowed = ({ outbound_allow }: Pick<Config, 'outbound_allow'>, url: URL): boolean => {
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  const bare = url.hostname.replace(/^\[|\]$/g, '')
  const names = [url.hostname, bare, `${url.hostname}:${port}`]
  return outbound_allow.some(entry => names.includes(entry.toLowerCase()))
}

/** The one address to which this call goes: names are resolved once, so that no second answer of DNS can turn it elsewhere. */
const addressOf = async (config: Pick<Config, 'outbound_allow'>, url: URL, limits: Limits) => {
  const bare = url.hostname.replace(/^\[|\]$/g, '')
  const literal = isIP(bare)
  const found = literal ? [{ address: bare, family: literal }] : await limits.resolve(bare)
  const usable = isAllowed(config, url) ? found[0] : found.find(({ address }) => isPublic(address))
  if (!usable) throw new OutboundError('The address is a private one, which outbound_allow does not name.')
  return usable
}

/**
 * Asks another server: five seconds and 1 MiB at most, https only and never a private address unless the setting
 * `outbound_allow` names the host. Redirects are answers like any other and are not followed. Each call has a connection
 * of its own, so that a slow server keeps nobody waiting but those who asked it.
 */
export const outboundFetch =
  (config: Pick<Config, 'outbound_allow'>, given: Partial<Limits> = {}): Outbound =>
  async (address, init = {}) => {
    const limits = { ...LIMITS, ...given }
    const url = new URL(address)
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isAllowed(config, url)))
      throw new OutboundError('Only https is called, and http where outbound_allow names the host.')
    const late = Promise.withResolvers<never>()
    const stop = new AbortController()
    const timer = setTimeout(() => {
      late.reject(new OutboundError('There was no whole answer in time.'))
      stop.abort()
    }, limits.timeout)
    const abort = () => {
      late.reject(new OutboundError('The call was given up.'))
      stop.abort()
    }
    init.signal?.addEventListener('abort', abort)
    try {
      return await Promise.race([send(config, url, init, limits, stop.signal), late.promise])
    } finally {
      clearTimeout(timer)
      init.signal?.removeEventListener('abort', abort)
    }
  }

const send = async (
  config: Pick<Config, 'outbound_allow'>,
  url: URL,
  { method = 'GET', headers, body }: NonNullable<Parameters<Outbound>[1]>,
  limits: Limits,
  signal: AbortSignal,
): Promise<Response> => {
  const { address, family } = await addressOf(config, url, limits)
  signal.throwIfAborted()
  const text = body?.toString()
  const answer = Promise.withResolvers<IncomingMessage>()
  const options: RequestOptions = {
    method,
    signal,
    agent: false,
    headers: {
      ...Object.fromEntries(new Headers(headers)),
      ...(body instanceof URLSearchParams && { 'content-type': 'application/x-www-form-urlencoded' }),
      // Nothing packed: the limit is then one of what we unpack, too.
      'accept-encoding': 'identity',
      ...(text !== undefined && { 'content-length': String(Buffer.byteLength(text)) }),
    },
    lookup: (_hostname, _options, found) => found(null, [{ address, family }]),
  }
  const call = (url.protocol === 'https:' ? secureRequest : plainRequest)(url, options)
  call.on('response', answer.resolve)
  call.on('error', answer.reject)
  call.end(text)
  const message = await answer.promise
  const bytes = await readAll(message, limits.bytes)
  return asResponse(message, bytes)
}

const readAll = async (message: IncomingMessage, limit: number): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) {
      message.destroy()
      throw new OutboundError(`The answer is larger than ${limit} bytes.`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const asResponse = ({ statusCode = 0, headers }: IncomingMessage, bytes: Buffer): Response => {
  if (statusCode < 200) throw new OutboundError('The answer has no status that ends a call.')
  const plain = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as [string, string]],
  )
  const bodyless = [204, 205, 304].includes(statusCode)
  return new Response(bodyless ? null : new Uint8Array(bytes), { status: statusCode, headers: plain })
}
