import type { BlockList } from 'node:net'

let net: typeof import('node:net') | undefined

/**
 * Loads `node:net` at the first call, because an import would add 1 ms of CPU time to the start of each
 * command.
 */
const loaded = (): typeof import('node:net') => {
  net ??= process.getBuiltinModule('node:net')
  return net
}

/** Returns 4 or 6 for an IP address, 0 for other text. */
export const isIP = (text: string): number => loaded().isIP(text)

/** Returns an empty list of addresses and ranges. */
export const addressList = (): BlockList => new (loaded().BlockList)()
