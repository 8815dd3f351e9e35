/** Statements of an identity provider about a user, under our names. */
export interface AssertedProfile {
  /** The same at each login of the same user; at most `LONGEST_SUBJECT` characters. */
  readonly subject: string
  readonly email?: string | undefined
  /** The provider's statement, trusted or not. SAML has none: true, unless a mapping names an attribute for it. */
  readonly email_verified: boolean
  readonly username?: string | undefined
  readonly first_name?: string | undefined
  readonly last_name?: string | undefined
  /** Names of roles, of the attribute or claim that a mapping names. */
  readonly roles: readonly string[]
}

export const LONGEST_SUBJECT = 1024
