import type { Config } from '#src/config.ts'
import type { Core } from '#src/context.ts'
import { invalid } from '#src/lib/app-error.ts'
import { cached } from '#src/storage/cache.ts'
import { getSetting, putSetting } from '#src/storage/settings.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'

/** Name of the setting that lists the costs of all hashes that were ever stored. */
const NAME = 'password_costs'
/**
 * Maximum number of different costs. Above it, only the configured cost is added. A login computes one hash
 * of each cost, so each additional cost makes every login slower.
 */
const MAX_COSTS = 6

/** The settings that determine the cost of a new hash. */
export type HashSettings = { config: Pick<Config, 'argon2_memory' | 'argon2_time'> }

/** Returns the cost of new hashes. */
export const configuredCost = ({ config }: HashSettings): string =>
  `$argon2id$v=19$m=${config.argon2_memory},t=${config.argon2_time},p=1$`

/**
 * Returns the cost of a hash. This is the part before the salt: the algorithm, the version and the
 * parameters. All variants of bcrypt take the same time, so their costs all begin with `$2b`.
 */
export const costOf = (hash: string): string =>
  /^\$argon2\w+\$v=19\$[^$]+\$/.exec(hash)?.[0] ?? `$2b$${hash.slice(4, 6)}$`

/** Returns a hash of this cost that matches no password. */
export const dummyOf = (cost: string): string =>
  cost.startsWith('$2') ? cost + '.'.repeat(53) : `${cost}${'A'.repeat(43)}$${'A'.repeat(43)}`

/** Returns the costs of the stored hashes. */
export const readCosts = async (q: Queries): Promise<string[]> => (await getSetting<string[]>(q, NAME)) ?? []

/** Returns the costs of the stored hashes, cached because each login needs them. */
export const findCosts = cached('settings', readCosts)

/**
 * Stores the cost of a hash before the hash itself. Each login computes one hash of each stored cost. If the
 * cost of a user's hash were missing, that user's logins would take longer than other logins. The difference
 * would reveal that the user exists.
 *
 * @throws AppError 422 when the instance has hashes of too many costs
 */
export const rememberCost = async (context: Core, tx: Transaction, cost: string): Promise<void> => {
  const costs = await readCosts(tx)
  if (costs.includes(cost)) return
  // The configured cost is accepted even above the maximum. Otherwise the server would not start after a
  // change of `argon2_memory` or `argon2_time`.
  if (costs.length >= MAX_COSTS && cost !== configuredCost(context))
    throw invalid({
      field: 'password_hash',
      code: 'too_many_costs',
      message: `At most ${MAX_COSTS} different costs of password hashes are allowed in an instance.`,
    })
  await putSetting(tx, NAME, [...costs, cost].sort(), context.clock.now())
}
