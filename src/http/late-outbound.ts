import type { Config } from '#src/config.ts'
import type { Outbound } from '#src/context.ts'

/** Returns `outboundFetch` (outbound.ts), whose HTTP client the first call loads. */
export const lateOutbound =
  (config: Pick<Config, 'outbound_allow'>): Outbound =>
  async (url, init) =>
    (await import('./outbound.ts')).outboundFetch(config)(url, init)
