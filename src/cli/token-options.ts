import { ConfigError } from '#src/config.ts'
import type { MintInput } from '#src/dev/mint-schema.ts'
import { parseDuration, SECOND } from '#src/lib/duration.ts'

/** Options of `gatehouse token`. */
export interface TokenOptions {
  config?: string
  dataDir?: string
  user?: string
  organization: string
  client?: string
  scope?: string
  role?: string[]
  claim?: string[]
  bad?: string
  expiresIn?: string
  output: string
}

/**
 * Returns the seconds of `--expires-in`. A number without a unit means seconds. The parameter `expires_in` of
 * OAuth is in seconds too.
 */
export const secondsOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const [, seconds] = /^([1-9]\d{0,8})s?$/.exec(text) ?? []
  const ms = seconds === undefined ? parseDuration(text) : Number(seconds) * SECOND
  if (ms === undefined)
    throw new ConfigError(
      '--expires-in: must be a whole number of seconds, or a whole number with the unit s, m, h, d or w, such as 1h.',
    )
  return ms / SECOND
}

/** Parses `name=value`. A value that is JSON gets its JSON type. Any other value becomes a string. */
const claimOf = (text: string): [string, unknown] => {
  const at = text.indexOf('=')
  if (at < 1) throw new ConfigError('--claim: must be name=value, such as --claim tier=gold.')
  const value = text.slice(at + 1)
  try {
    return [text.slice(0, at), JSON.parse(value)]
  } catch {
    return [text.slice(0, at), value]
  }
}

/** Converts the options into the input of the control `/dev/mint`. */
export const mintInputOf = (options: TokenOptions): MintInput => {
  const { user, organization, client, scope, role, claim, bad, expiresIn } = options
  const expires_in = secondsOf(expiresIn)
  return {
    organization,
    claims: Object.fromEntries((claim ?? []).map(claimOf)) as MintInput['claims'] & object,
    ...(user !== undefined && { user }),
    ...(client !== undefined && { client_id: client }),
    ...(scope !== undefined && { scope }),
    ...(role && { roles: role }),
    ...(bad !== undefined && { bad: bad as NonNullable<MintInput['bad']> }),
    ...(expires_in !== undefined && { expires_in }),
  }
}
