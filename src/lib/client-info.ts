import type { SecretHash } from './secrets.ts'

/** The client as the network shows it: the data that sessions and audit events record. */
export interface ClientInfo {
  readonly ip_address: string
  readonly user_agent: string
  /** BCP 47 tag of the language for mail to this client's user. */
  readonly locale?: string
  /**
   * Hash of the device cookie. It is never recorded; sign-in/login-throttle uses it to recognize known
   * browsers.
   */
  readonly device_hash?: SecretHash | undefined
}
