import { lookup } from 'node:dns'
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { type RequestOptions, request as secureRequest } from 'node:https'
import { BlockList, isIP } from 'node:net'
import type { Config } from '#src/config.ts'
import type { CalledFor, Outbound } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { isNestedDeeply } from '#src/lib/json.ts'

/**
 * A call that was refused or got no complete answer. All these errors have the same message, which reveals
 * nothing about hosts and ports. Only the server's log contains the `cause`.
 */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  constructor(cause: unknown) {
    super('The call to the other server is not allowed or got no complete answer in time.', { cause })
  }
}

interface Limits {
  /** Milliseconds from the start of the call to the last byte. */
  timeout: number
  /** Maximum bytes of the answer's body. */
  bytes: number
  resolve: (hostname: string) => Promise<{ address: string; family: number }[]>
  /** Certificate (PEM) that calls trust instead of the public authorities. */
  ca?: string | undefined
}

const resolve: Limits['resolve'] = hostname =>
  new Promise((done, fail) =>
    lookup(hostname, { all: true }, (error, found) => (error ? fail(error) : done(found))),
  )

/**
 * Maximum bytes of an answer outside its body: head, interim answers and chunk sizes. A server that sends
 * them without end would keep the parser busy.
 */
const OVERHEAD = 64 * 1024

/**
 * Default limits. The time is short because a person waits for most calls. Common answers, such as userinfo
 * and discovery documents, have a size of a few KiB.
 */
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

/**
 * Ranges that are not public. They are refused, because an organization could otherwise read or scan the
 * operator's network: https://www.iana.org/assignments/iana-ipv4-special-registry and its IPv6 counterpart.
 */
const private4 = subnets(
  'ipv4',
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 ' +
    '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3',
)
const public6 = subnets('ipv6', '2000::/3')
/**
 * Special ranges within 2000::/3. An address in a tunnel range, such as 2002::/16, may lead to any IPv4
 * address.
 */
const special6 = subnets('ipv6', '2001::/23 2001:db8::/32 2002::/16 3fff::/20')

/** True for an address of the public Internet. */
export const isPublic = (address: string): boolean =>
  isIP(address) === 4
    ? !private4.check(address, 'ipv4')
    : isIP(address) === 6 && public6.check(address, 'ipv6') && !special6.check(address, 'ipv6')

type Allow = Pick<Config, 'outbound_allow'>
type Call = Parameters<Outbound>[1]

/**
 * True when `outbound_allow` names the host and port of the URL for this organization. The host may then have
 * a private address and use plain http. Development mode adds entries for all organizations, such as
 * `*=localhost:*` and `*=localhost:8080`. The setting `outbound_allow` cannot contain such entries, because a
 * value with `*` is refused.
 */
export const isAllowed = ({ outbound_allow }: Allow, url: URL, { id, slug }: CalledFor): boolean => {
  const target = `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`
  const entries = [`${slug}=${target}`, `*=${target}`, `*=${url.hostname}:*`]
  if (id === DEFAULT_ORGANIZATION) entries.push(target)
  return outbound_allow.some(entry => entries.includes(entry))
}

/** True when an entry of `outbound_allow` names this slug, even if no organization has this slug. */
export const isSlugNamed = ({ outbound_allow }: Allow, slug: string): boolean =>
  outbound_allow.some(entry => entry.startsWith(`${slug}=`))

/**
 * Returns the address to connect to. The name is resolved only once, so a second DNS answer cannot redirect
 * the call (DNS rebinding).
 */
const addressOf = async (url: URL, isNamed: boolean, limits: Limits) => {
  const bare = url.hostname.replace(/^\[|\]$/g, '')
  const literal = isIP(bare)
  const found = literal ? [{ address: bare, family: literal }] : await limits.resolve(bare)
  const usable = isNamed ? found[0] : found.find(({ address }) => isPublic(address))
  if (!usable) throw new Error('The address is private and outbound_allow does not name it.')
  return usable
}

/**
 * Returns `fetch` for other servers. A call takes at most five seconds, and its answer has at most 1 MiB,
 * unless the caller sets other limits. The URL must be https with a public address, unless `outbound_allow`
 * names its host and port for the organization. Redirects are not followed, because a redirect could lead to
 * an address that is not allowed. Each call has its own connection, so a slow server delays only its own
 * callers.
 *
 * @throws OutboundError for every failure
 */
export const outboundFetch =
  (config: Allow, given: Partial<Limits> = {}): Outbound =>
  async (address, init) => {
    const limits = {
      ...LIMITS,
      ...(init.timeout !== undefined && { timeout: init.timeout }),
      ...given,
      ...(init.bytes !== undefined && { bytes: init.bytes }),
    }
    const late = Promise.withResolvers<never>()
    const stop = new AbortController()
    const giveUp = (reason: string) => {
      late.reject(new Error(reason))
      stop.abort()
    }
    const timer = setTimeout(() => giveUp('There was no complete answer in time.'), limits.timeout)
    const abort = () => giveUp('The call was aborted.')
    init.signal?.addEventListener('abort', abort)
    try {
      return await Promise.race([send(config, new URL(address), init, limits, stop.signal), late.promise])
    } catch (cause) {
      throw new OutboundError(cause)
    } finally {
      clearTimeout(timer)
      init.signal?.removeEventListener('abort', abort)
    }
  }

const send = async (
  config: Allow,
  url: URL,
  { organization, method = 'GET', headers, body }: Call,
  limits: Limits,
  signal: AbortSignal,
): Promise<Response> => {
  const isNamed = isAllowed(config, url, organization)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isNamed))
    throw new Error('The URL must be https, or http with host and port in outbound_allow.')
  const { address, family } = await addressOf(url, isNamed, limits)
  signal.throwIfAborted()
  const text = body?.toString()
  const answer = Promise.withResolvers<IncomingMessage>()
  const options: RequestOptions = {
    method,
    signal,
    ca: limits.ca,
    agent: false,
    headers: {
      ...Object.fromEntries(new Headers(headers)),
      ...(body instanceof URLSearchParams && { 'content-type': 'application/x-www-form-urlencoded' }),
      // No compression, so that the size limit also bounds the decoded body.
      'accept-encoding': 'identity',
      ...(text !== undefined && { 'content-length': String(Buffer.byteLength(text)) }),
    },
    lookup: (_hostname, _options, found) => found(null, [{ address, family }]),
  }
  const call = (url.protocol === 'https:' ? secureRequest : plainRequest)(url, options)
  call.on('socket', socket => {
    let received = 0
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received > limits.bytes + OVERHEAD) call.destroy(tooLarge(limits.bytes))
    })
  })
  call.on('response', answer.resolve)
  call.on('error', answer.reject)
  call.end(text)
  const message = await answer.promise
  const bytes = await readAll(message, limits.bytes)
  const answered = bytes.toString('latin1')
  if (/^\s*[[{]/.test(answered) && isNestedDeeply(answered))
    throw new Error('The answer is JSON with too many levels.')
  return asResponse(message, bytes)
}

const tooLarge = (limit: number) => new Error(`The answer is larger than ${limit} bytes.`)

const readAll = async (message: IncomingMessage, limit: number): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) {
      message.destroy()
      throw tooLarge(limit)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const asResponse = ({ statusCode = 0, headers }: IncomingMessage, bytes: Buffer): Response => {
  if (statusCode < 200) throw new Error('The answer has no final status.')
  const plain = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as [string, string]],
  )
  const bodyless = [204, 205, 304].includes(statusCode)
  return new Response(bodyless ? null : new Uint8Array(bytes), { status: statusCode, headers: plain })
}
