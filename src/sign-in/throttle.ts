import type { Context } from '#src/context.ts'
import { networkOf } from '#src/http/network.ts'
import { DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import { cached } from '#src/storage/cache.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { findThrottle, type Throttle, upsertThrottle } from './store.ts'

/** Times in milliseconds. */
export type Limit =
  /** From `after` failures in a row on, a wait that doubles with each further one. */
  | {
      readonly kind: 'row'
      readonly after: number
      readonly first_wait: number
      readonly longest_wait: number
      readonly forget_after: number
    }
  /** From `count` failures within `window` on, a wait. */
  | { readonly kind: 'window'; readonly count: number; readonly window: number; readonly wait: number }

/** What failures are counted by. The key is stored as it is: no secrets, and no text of unbounded length. */
export interface ThrottleKey {
  readonly key: string
  readonly limit: Limit
}

/** Wrong passwords for one account. */
export const ROW = {
  kind: 'row',
  after: 5,
  first_wait: SECOND,
  longest_wait: MINUTE,
  forget_after: DAY,
} satisfies Limit
const ADDRESS: Limit = { kind: 'window', count: 50, window: 5 * MINUTE, wait: MINUTE }
const SECRETS: Limit = { kind: 'window', count: 30, window: MINUTE, wait: MINUTE }

/** Wrong passwords from one address. */
export const passwordsFrom = (ip_address: string): ThrottleKey => ({
  key: `passwords:${networkOf(ip_address)}`,
  limit: ADDRESS,
})

/** Wrong client secrets, codes and refresh tokens from one address. */
export const secretsFrom = (ip_address: string): ThrottleKey => ({
  key: `secrets:${networkOf(ip_address)}`,
  limit: SECRETS,
})

/** Milliseconds until the next attempt is looked at; 0: now. */
export const checkThrottle = async (
  context: Pick<Context, 'clock'>,
  q: Queries,
  keys: readonly ThrottleKey[],
): Promise<number> => {
  const now = context.clock.now()
  const rows = await Promise.all(keys.map(({ key }) => findThrottle(q, key)))
  return Math.max(0, ...rows.map(row => (row ? row.blocked_until - now : 0)))
}

/** When a key is free again (ms; 0: it is), from memory: each call of the token endpoint asks. */
export const blockedUntil = cached(
  'throttles',
  async (q, key) => (await findThrottle(q, key))?.blocked_until ?? 0,
)

/** Counts one failure against each key, and answers how many each has by now, in the order of `keys`. */
export const countFailure = async (
  context: Pick<Context, 'clock'>,
  tx: Transaction,
  keys: readonly ThrottleKey[],
): Promise<number[]> => {
  const counts: number[] = []
  for (const { key, limit } of keys) {
    const row = afterFailure(await findThrottle(tx, key), limit, context.clock.now())
    await upsertThrottle(tx, { key, ...row })
    counts.push(row.failures)
  }
  return counts
}

/** The row after one more failure; a row whose time has run out counts for nothing. */
export const afterFailure = (
  stored: Throttle | undefined,
  limit: Limit,
  now: number,
): Omit<Throttle, 'key'> => {
  const live = stored && stored.expires_at > now ? stored : undefined
  const failures = (live?.failures ?? 0) + 1
  const blocked_until = now + waitAfter(failures, limit)
  const window_started_at = live?.window_started_at ?? now
  const lasts = limit.kind === 'row' ? now + limit.forget_after : window_started_at + limit.window
  return { failures, window_started_at, blocked_until, expires_at: Math.max(lasts, blocked_until) }
}

const waitAfter = (failures: number, limit: Limit): number => {
  if (limit.kind === 'window') return failures >= limit.count ? limit.wait : 0
  if (failures < limit.after) return 0
  return Math.min(limit.longest_wait, limit.first_wait * 2 ** (failures - limit.after))
}
