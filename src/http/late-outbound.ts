import type { Config } from '#src/config.ts'
import type { Outbound } from '#src/context.ts'

/**
 * Returns a function like `outboundFetch`. The module is loaded at the first call, so the server starts
 * faster.
 */
export const lateOutbound =
  (config: Pick<Config, 'outbound_allow'>, more: { ca?: string | undefined } = {}): Outbound =>
  async (url, init) =>
    (await import('./outbound.ts')).outboundFetch(config, more)(url, init)
