import type { SecretHash } from './secrets.ts'

/** Facts about the sender of a request, for sessions, audit events and mail. */
export interface ClientInfo {
  readonly ip_address: string
  readonly user_agent: string
  /** Language of mail to the user, as a BCP 47 tag. */
  readonly locale?: string
  /** IANA time zone that the browser stated, for times in mail to the user. */
  readonly time_zone?: string | undefined
  /** Name of the OAuth client whose authorization request this request continues. */
  readonly application?: string | undefined
  /**
   * Hash of the device cookie. sign-in/known-browsers recognizes a browser by the hash. Sessions, events and
   * mail do not contain it.
   */
  readonly device_hash?: SecretHash | undefined
}
