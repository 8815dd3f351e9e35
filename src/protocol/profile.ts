/** An identity provider's statements about a user, under Gatehouse's field names. */
export interface AssertedProfile {
  /**
   * Identifier of the user at the provider, the same at each login; at most `MAX_SUBJECT_LENGTH` characters.
   */
  readonly subject: string
  readonly email?: string | undefined
  /**
   * True when the provider says that the address is verified. Account linking may still distrust the address.
   * SAML has no standard attribute for this. An address from SAML therefore counts as verified, unless the
   * provider's mapping names an attribute for `email_verified`, which then decides.
   */
  readonly email_verified: boolean
  readonly username?: string | undefined
  readonly first_name?: string | undefined
  readonly last_name?: string | undefined
  /** Role names from the attribute or claim that the provider's mapping names for roles. */
  readonly roles: readonly string[]
}

/**
 * Maximum length of `subject` in characters. OpenID Connect allows 255 and SAML 256 (persistent NameID); a
 * subject from a SAML attribute (`attribute:NAME=VALUE`) may be longer.
 */
export const MAX_SUBJECT_LENGTH = 1024
