import { isIP } from '#src/lib/ip.ts'

/**
 * Returns the network that is charged as one party: the IPv4 address in canonical form, or the first `bits`
 * of an IPv6 address. Providers assign at least a /64 to a home and at most a /48 to a site
 * (https://www.rfc-editor.org/rfc/rfc6177#section-2).
 */
export const networkOf = (ip_address: string, bits: 48 | 64 = 64): string => {
  if (isIP(ip_address) !== 6) return ip_address
  const groups = expand(new URL(`http://[${ip_address}]`).hostname.slice(1, -1))
  const isMapped = groups.slice(0, 5).every(group => group === 0) && groups[5] === 0xffff
  if (!isMapped)
    return `${groups
      .slice(0, bits / 16)
      .map(hex)
      .join(':')}::/${bits}`
  const [high = 0, low = 0] = groups.slice(6)
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

const hex = (group: number): string => group.toString(16)

/**
 * Returns the eight groups of an IPv6 address. The address must have the form that a URL parser returns: at
 * most one `::`, no dots.
 */
const expand = (address: string): number[] => {
  const [head = '', tail] = address.split('::')
  const groupsOf = (text: string) =>
    text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16))
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')]
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}
