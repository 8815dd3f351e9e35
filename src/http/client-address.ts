import type { BlockList } from 'node:net'
import { addressList, isIP } from '#src/lib/ip.ts'

/**
 * Reads the setting `trusted_proxies`: addresses and ranges such as `10.0.0.0/8`. Returns undefined for an
 * empty list.
 */
export const proxyList = (entries: readonly string[]): BlockList | undefined => {
  if (entries.length === 0) return undefined
  const proxies = addressList()
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) proxies.addAddress(address, family)
    else proxies.addSubnet(address, Number(bits), family)
  }
  return proxies
}

/**
 * Returns an IP address without brackets, port or zone id. An IPv4 address in IPv6 form (`::ffff:192.0.2.1`)
 * becomes 192.0.2.1. Returns undefined for other text.
 */
export const normalizeAddress = (text: string): string | undefined => {
  // Most sockets have an IPv4 address. The expressions below would not change it, so they are skipped.
  if (isIP(text) === 4) return text
  const bare = text
    .trim()
    .replace(/^\[|\](?::\d+)?$/g, '')
    .replace(/%.*$/, '')
    .toLowerCase()
  const mapped = /^(?:0*:)*:?ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(bare)?.[1] ?? bare
  const address = /^\d+\.\d+\.\d+\.\d+:\d+$/.test(mapped) ? mapped.slice(0, mapped.indexOf(':')) : mapped
  return isIP(address) ? address : undefined
}

/**
 * Returns the client's address. If the other end of the socket is not a trusted proxy, the result is the
 * address of the socket, and `X-Forwarded-For` is ignored. Otherwise the result is the rightmost entry of
 * `X-Forwarded-For` that is not a trusted proxy, because a client can write all entries to the left of its
 * own address. If all entries are trusted proxies, the leftmost entry is returned. Reading stops at an entry
 * that is not an address, and the last address that was read is returned.
 */
export const clientAddress = (
  socket: string,
  forwarded: string | null,
  proxies: BlockList | undefined,
): string => {
  let address = normalizeAddress(socket) ?? socket
  if (!forwarded || !proxies) return address
  const hops = forwarded.split(',')
  for (let i = hops.length - 1; i >= 0 && isTrusted(proxies, address); i--) {
    const hop = normalizeAddress(hops[i] ?? '')
    if (!hop) break
    address = hop
  }
  return address
}

const isTrusted = (proxies: BlockList, address: string): boolean => {
  const family = isIP(address)
  return family !== 0 && proxies.check(address, family === 6 ? 'ipv6' : 'ipv4')
}
