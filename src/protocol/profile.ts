/** An identity provider's statements about a user, under Gatehouse's field names. */
export interface AssertedProfile {
  /**
   * Identifier of the user at the provider. It is the same at each login, and {@link isSubject} accepts it.
   */
  readonly subject: string
  readonly email?: string | undefined
  /**
   * True when the provider says that the address is verified. Account linking may still distrust the address.
   * SAML has no standard attribute that says this. An address from SAML therefore counts as verified, unless
   * the provider's mapping names an attribute for `email_verified`, which then decides.
   */
  readonly email_verified: boolean
  readonly username?: string | undefined
  readonly first_name?: string | undefined
  readonly last_name?: string | undefined
  /** Role names from the attribute or claim that the provider's mapping names for roles. */
  readonly roles: readonly string[]
}

/**
 * True for a text that can be a subject: 1 to 1,024 characters, and at most 2,048 bytes. OpenID Connect
 * allows 255 characters, and SAML allows 256 (persistent NameID). A subject from a SAML attribute
 * (`attribute:NAME=VALUE`) can be longer. The bytes are limited, because a row of a PostgreSQL index has at
 * most 2,704 bytes.
 */
export const isSubject = (subject: string): boolean =>
  subject !== '' && subject.length <= 1_024 && Buffer.byteLength(subject) <= 2_048
