import type { Config } from '#src/config.ts'
import type { Outbound } from '#src/context.ts'

/** Returns a function like `outboundFetch`. Its first call loads outbound.ts, so the start is shorter. */
export const lateOutbound =
  (config: Pick<Config, 'outbound_allow'>): Outbound =>
  async (url, init) =>
    (await import('./outbound.ts')).outboundFetch(config)(url, init)
