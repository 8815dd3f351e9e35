/**
 * Authentication context classes, weakest first: `1` one factor (a password, a link, a provider), `2` two factors, `phr`
 * phishing-resistant: a passkey, alone or beside a password.
 * https://openid.net/specs/openid-provider-authentication-policy-extension-1_0.html (for the name `phr`)
 */
export const acrValues = ['1', '2', 'phr'] as const

export type FactorType = 'totp' | 'passkey'

/** How strong a class is: 1 to 3; 0 for one that is not ours. */
export const levelOf = (acr: string): number => (acrValues as readonly string[]).indexOf(acr) + 1

/** The class of a level, 1 to 3. */
export const acrOf = (level: number): string => acrValues[level - 1] ?? '1'

/** How strong a login is once this factor was proven in it. */
export const levelWith = (type: FactorType): number => (type === 'passkey' ? 3 : 2)

/** The level that `acr_values` asks for: the weakest of those named will do. What this server does not know is passed over. */
export const wantedLevel = (acr_values: readonly string[], supported: readonly string[]): number => {
  const levels = acr_values.filter(value => supported.includes(value)).map(levelOf)
  return levels.length > 0 ? Math.min(...levels) : 0
}

/**
 * What tokens say: the class of the login, or, when the client asked for others alone, the strongest of those that it
 * fulfils.
 */
export const answeredAcr = (acr_values: readonly string[], acr: string): string => {
  const fulfilled = acr_values.map(levelOf).filter(level => level > 0 && level <= levelOf(acr))
  return acrOf(fulfilled.length > 0 ? Math.max(...fulfilled) : levelOf(acr))
}

/** What a login still owes. */
export interface Owed {
  /** The level that the next factor has to reach. */
  readonly level: number
  /** One that the user has. */
  readonly factor_due: boolean
  /** One that the user has not. */
  readonly enrol_due: boolean
}

/**
 * Whoever has a second factor proves it at every login, whoever lacks one where it is demanded (by the organization or by the
 * client's `acr_values`) enrols one; what the user has is proven before something is added to it.
 */
export const owed = (login: {
  readonly acr: string
  readonly factors: readonly FactorType[]
  readonly wanted: number
  readonly required: boolean
}): Owed => {
  const { acr, factors, wanted, required } = login
  const level = Math.max(1, levelOf(acr))
  const reachable = Math.max(1, ...factors.map(levelWith))
  const needed = Math.max(wanted, required || factors.length > 0 ? 2 : 1)
  const factor_due = level < Math.min(needed, reachable)
  return {
    level: factor_due ? Math.min(needed, reachable) : needed,
    factor_due,
    enrol_due: level < needed && reachable < needed,
  }
}
