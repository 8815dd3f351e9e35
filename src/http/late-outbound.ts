import type { Config } from '#src/config.ts'
import type { Outbound } from '#src/context.ts'

/**
 * Returns the same function as `outboundFetch`, but loads the module only at the first call of the function.
 * The server thus starts faster.
 */
export const lateOutbound =
  (config: Pick<Config, 'outbound_allow'>, more: { ca?: string | undefined } = {}): Outbound =>
  async (url, init) =>
    (await import('./outbound.ts')).outboundFetch(config, more)(url, init)
