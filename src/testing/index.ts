import type { SeedInput } from '#src/operations/seed/schema.ts'
import { type Controls, controlsOf } from './controls.ts'
import { type StartOptions, start } from './start.ts'

export type { Controls } from './controls.ts'

/** A running server and its controls. */
export interface Gatehouse extends Controls {
  /** The issuer. */
  url: string
  /** The client for whom tokens are minted unless another is named. */
  client_id: string
  client_secret: string | null
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export type GatehouseOptions = { seed?: SeedInput } & Omit<StartOptions, 'seed' | 'log' | 'config'>

/**
 * A Gatehouse server in this process (Bun): the real one, on a throw-away store and a free port, seeded. Node and Deno use
 * `@gatehouse/testing/process`, which starts the executable and has the same calls.
 */
export const startGatehouse = async (options: GatehouseOptions = {}): Promise<Gatehouse> => {
  const { stop, ...server } = await start(options)
  return {
    ...controlsOf({ url: server.local_url, control_token: server.control_token }),
    url: server.url,
    client_id: server.client_id,
    client_secret: server.client_secret,
    close: stop,
    [Symbol.asyncDispose]: stop,
  }
}
