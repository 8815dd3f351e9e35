import type { SeedInput } from '#src/seed/schema.ts'
import { connectGatehouse } from './controls.ts'
import { type StartOptions, start } from './start.ts'
import type { Gatehouse, GatehouseOptions } from './types.ts'

export { connectGatehouse } from './controls.ts'
export type * from './types.ts'

/**
 * Starts a seeded Gatehouse server in this process (Bun): the production code on a temporary store and a free
 * port. For Node and Deno, `@gatehouse/testing/process` has the same interface and starts the executable.
 *
 * @param options all have defaults
 * @returns the running server with its controls; `close` stops it and deletes the store
 * @throws ConfigError for an option that cannot be used, SeedError for a wrong seed, StorageError when the
 *   store cannot be written
 *
 * @example
 * await using server = await startGatehouse()
 * const { token } = await server.mint({ user: 'alice' })
 */
export const startGatehouse = async ({
  seed,
  ...options
}: GatehouseOptions & Pick<StartOptions, 'key'> = {}): Promise<Gatehouse> => {
  const { stop, local_url, control_token, url, client_id, client_secret, credentials, ca_file } = await start(
    {
      ...options,
      ...(seed && { seed: seed as SeedInput }),
    },
  )
  return {
    ...connectGatehouse({ url: local_url, control_token, ca_file }),
    url,
    client_id,
    client_secret,
    password: credentials.password,
    ca_file,
    close: stop,
    [Symbol.asyncDispose]: stop,
  }
}
