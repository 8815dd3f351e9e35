import type { SecretHash } from './secrets.ts'

/** Who asks, as seen from the network: what sessions and audit events record. */
export interface ClientInfo {
  readonly ip_address: string
  readonly user_agent: string
  /** The language in which they would be written to. */
  readonly locale?: string
  /** Of the device cookie. Never recorded: it tells known browsers from others (sign-in/login-throttle). */
  readonly device_hash?: SecretHash | undefined
}
