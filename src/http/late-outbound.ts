import type { Config } from '#src/config.ts'
import type { Outbound } from '#src/context.ts'

/**
 * Returns a function like `outboundFetch` (outbound.ts), which it loads at the first call to shorten the
 * start.
 */
export const lateOutbound =
  (config: Pick<Config, 'outbound_allow'>): Outbound =>
  async (url, init) =>
    (await import('./outbound.ts')).outboundFetch(config)(url, init)
