/**
 * Authentication context classes, weakest first. `1` is one factor: a password, a link or code by mail, or an
 * upstream provider. `2` is two factors. `phr` is phishing-resistant: a passkey, alone or after another
 * factor. A passkey ranks highest, because it needs the device and a biometric or PIN, and cannot be used on
 * another site. The name `phr` is defined in https://openid.net/specs/openid-connect-eap-acr-values-1_0.html
 */
export const acrValues = ['1', '2', 'phr'] as const

export type FactorType = 'totp' | 'passkey'

/** Returns the level of a class, from 1 to 3. Returns 0 for an unknown class. */
export const levelOf = (acr: string): number => (acrValues as readonly string[]).indexOf(acr) + 1

/** Returns the class of a level from 1 to 3. */
export const acrOf = (level: number): string => acrValues[level - 1] ?? '1'

/** Returns the level of a login in which a factor of this type was proven. */
export const levelWith = (type: FactorType): number => (type === 'passkey' ? 3 : 2)

/**
 * Returns the level that `acr_values` requests: the level of the weakest requested value that is supported.
 * Returns 0 when no requested value is supported. The weakest value suffices, because each requested value
 * satisfies the client.
 */
export const wantedLevel = (acr_values: readonly string[], supported: readonly string[]): number => {
  const levels = acr_values.filter(value => supported.includes(value)).map(levelOf)
  return levels.length > 0 ? Math.min(...levels) : 0
}

/**
 * Returns the `acr` for tokens: the strongest requested class that the login fulfils. Returns the login's own
 * class when it fulfils no requested class. A client that compares `acr` with the requested class thus finds
 * equal values, even when the login is stronger.
 */
export const answeredAcr = (acr_values: readonly string[], acr: string): string => {
  const fulfilled = acr_values.map(levelOf).filter(level => level > 0 && level <= levelOf(acr))
  return acrOf(fulfilled.length > 0 ? Math.max(...fulfilled) : levelOf(acr))
}

/** Requirements that a login does not fulfil yet. */
export interface RequiredFactor {
  /** Level that the next factor has to reach. */
  readonly level: number
  /** The user has to prove a factor that is enrolled. */
  readonly factor_due: boolean
  /** The user has to enrol a factor. */
  readonly enrol_due: boolean
}

/**
 * Returns what a login still requires. A user with a second factor proves it at every login. In a remembered
 * browser the user proves a factor only in two cases: the organization requires a passkey, or the client's
 * `acr_values` ask for `2` or `phr`. A user whose factors do not reach the required level enrols a factor
 * that reaches it. A user proves an existing factor before adding another one. A user who has used a recovery
 * code in place of a lost passkey adds a passkey without this proof.
 */
export const requiredFactor = (login: {
  readonly acr: string
  readonly factors: readonly FactorType[]
  /** Level that the client asks for, or 0. */
  readonly wanted: number
  /** Level that the organization requires: 1, 2 or 3. */
  readonly required: number
  /** The user has proven a recovery code in place of a lost passkey. */
  readonly recovered: boolean
  /**
   * True in a remembered browser. The user need not prove the second factor in such a browser. The client can
   * still ask for two factors or a passkey, and the organization can require a passkey.
   */
  readonly remembered: boolean
}): RequiredFactor => {
  const { acr, factors, wanted, required, recovered, remembered } = login
  const level = Math.max(1, levelOf(acr))
  const passkey = levelWith('passkey')
  if (recovered) return { level: passkey, factor_due: false, enrol_due: level < passkey }
  const reachable = Math.max(1, ...factors.map(levelWith))
  const usual = Math.max(required, factors.length > 0 ? 2 : 1)
  const isSpared = remembered && factors.length > 0 && usual === 2
  const needed = Math.max(wanted, isSpared ? 1 : usual)
  const factor_due = level < Math.min(needed, reachable)
  return {
    level: factor_due ? Math.min(needed, reachable) : needed,
    factor_due,
    enrol_due: level < needed && reachable < needed,
  }
}
