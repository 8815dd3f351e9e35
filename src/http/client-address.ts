import { BlockList, isIP } from 'node:net'

const lists = new WeakMap<string[], BlockList>()

const trusted = (proxies: string[]): BlockList => {
  let list = lists.get(proxies)
  if (!list) {
    list = new BlockList()
    for (const entry of proxies) {
      const [address = '', bits] = entry.split('/')
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
      if (bits === undefined) list.addAddress(address, family)
      else list.addSubnet(address, Number(bits), family)
    }
    lists.set(proxies, list)
  }
  return list
}

/**
 * Returns an IP address without brackets, port and zone id, `::ffff:192.0.2.1` as 192.0.2.1. Returns
 * undefined for other text.
 */
export const normalizeAddress = (text: string): string | undefined => {
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
 * Returns the client's address: that of the socket, or, behind trusted proxies, the rightmost entry of
 * `X-Forwarded-For` that is not a trusted proxy. The header is ignored when the socket is not a trusted
 * proxy.
 */
export const clientAddress = (socket: string, forwarded: string | null, proxies: string[]): string => {
  let address = normalizeAddress(socket) ?? socket
  if (!forwarded || proxies.length === 0) return address
  const list = trusted(proxies)
  const hops = forwarded.split(',')
  for (let i = hops.length - 1; i >= 0 && isTrusted(list, address); i--) {
    const hop = normalizeAddress(hops[i] ?? '')
    if (!hop) break
    address = hop
  }
  return address
}

const isTrusted = (list: BlockList, address: string): boolean => {
  const family = isIP(address)
  return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
}
