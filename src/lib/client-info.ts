import type { SecretHash } from './secrets.ts'

/** The client as the network shows it: the data that sessions and audit events record. */
export interface ClientInfo {
  readonly ip_address: string
  readonly user_agent: string
  /** BCP 47 tag of the language for mail to this client's user. */
  readonly locale?: string
  /** IANA time zone for mail to this client's user, as its browser names it. */
  readonly time_zone?: string | undefined
  /** Name of the client whose authorization request led to the event. */
  readonly application?: string | undefined
  /**
   * Hash of the device cookie. It is never recorded; sign-in/login-throttle uses it to recognize known
   * browsers.
   */
  readonly device_hash?: SecretHash | undefined
}
