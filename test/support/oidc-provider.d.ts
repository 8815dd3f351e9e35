/** Types of the parts that the tests use. The package has no types. */
declare module 'oidc-provider' {
  import type { Server } from 'node:http'
  export class Provider {
    constructor(
      issuer: string,
      configuration: Record<string, unknown> & {
        findAccount(
          context: unknown,
          id: string,
        ): Promise<{ accountId: string; claims(): Promise<Record<string, unknown>> }>
      },
    )
    listen(port: number, hostname: string, listening: () => void): Server
  }
}
