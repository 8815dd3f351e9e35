import type { Core } from '#src/context.ts'
import { networkOf } from '#src/http/network.ts'
import { CLOCK_SKEW, DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import { cached } from '#src/storage/cache.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { findThrottle, type Throttle, upsertThrottle } from './store.ts'

/** A throttling rule. Times are in milliseconds. */
export type Limit =
  /** After `after` consecutive failures there is a wait. Each further failure doubles the wait. */
  | {
      readonly kind: 'row'
      readonly after: number
      readonly first_wait: number
      readonly longest_wait: number
      readonly forget_after: number
    }
  /** After `count` failures within `window` there is a fixed wait. */
  | { readonly kind: 'window'; readonly count: number; readonly window: number; readonly wait: number }

/**
 * A counter of failures and its rule. The key is stored unhashed. It must contain no secret and no text of
 * unlimited length.
 */
export interface ThrottleKey {
  readonly key: string
  readonly limit: Limit
}

/**
 * Limit of wrong passwords for one account. Five attempts have no wait. After these the waits double from a
 * second to a minute. With longer waits a stranger could keep the owner out.
 */
export const ROW = {
  kind: 'row',
  after: 5,
  first_wait: SECOND,
  longest_wait: MINUTE,
  forget_after: DAY,
} satisfies Limit
/**
 * Limit of wrong passwords from one network. It is high enough for an office in which several people mistype
 * at the same time. An attacker who guesses passwords of many accounts gets about ten attempts a minute.
 */
const ADDRESS: Limit = { kind: 'window', count: 50, window: 5 * MINUTE, wait: MINUTE }
/**
 * Limit of wrong client secrets, codes and refresh tokens from one network. The limit stops programs that
 * repeat a wrong secret in a loop. A client with a correct secret is accepted even after the limit is
 * reached.
 */
const SECRETS: Limit = { kind: 'window', count: 30, window: MINUTE, wait: MINUTE }

/** Returns the throttle of wrong passwords from one network. */
export const passwordsFrom = (ip_address: string): ThrottleKey => ({
  key: `passwords:${networkOf(ip_address)}`,
  limit: ADDRESS,
})

/** Returns the throttle of wrong client secrets, codes and refresh tokens from one network. */
export const secretsFrom = (ip_address: string): ThrottleKey => ({
  key: `secrets:${networkOf(ip_address)}`,
  limit: SECRETS,
})

const isFromAhead = (blocked_until: number, limit: Limit, now: number): boolean =>
  blocked_until > now + CLOCK_SKEW + (limit.kind === 'row' ? limit.longest_wait : limit.wait)

/**
 * Returns the milliseconds until `blocked_until`, the end of a wait that `limit` caused. Returns 0 when the
 * wait has ended, or was stored before the clock was set back.
 */
export const waitUntil = (blocked_until: number, limit: Limit, now: number): number =>
  isFromAhead(blocked_until, limit, now) ? 0 : Math.max(0, blocked_until - now)

/** Returns the milliseconds until the next attempt is allowed. Returns 0 when an attempt is allowed now. */
export const checkThrottle = async (
  context: Pick<Core, 'clock'>,
  q: Queries,
  keys: readonly ThrottleKey[],
): Promise<number> => {
  const now = context.clock.now()
  const waits = keys.map(async ({ key, limit }) =>
    waitUntil((await findThrottle(q, key))?.blocked_until ?? 0, limit, now),
  )
  return Math.max(0, ...(await Promise.all(waits)))
}

/**
 * Returns the time (ms) until which a key is blocked, for `waitUntil`. The time is cached, because the token
 * endpoint needs it at each call of a client that is not authenticated.
 */
export const blockedUntil = cached(
  'throttles',
  async (q, key) => (await findThrottle(q, key))?.blocked_until ?? 0,
)

/** Counts one failure against each key. Returns the new counts in the order of `keys`. */
export const countFailure = async (
  context: Pick<Core, 'clock'>,
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

/**
 * Returns the row after one more failure. Ignores a stored row that has expired, or that was stored before
 * the clock was set back.
 */
export const afterFailure = (
  stored: Throttle | undefined,
  limit: Limit,
  now: number,
): Omit<Throttle, 'key'> => {
  const isLive =
    stored &&
    stored.expires_at > now &&
    stored.window_started_at <= now + CLOCK_SKEW &&
    !isFromAhead(stored.blocked_until, limit, now)
  const live = isLive ? stored : undefined
  const failures = (live?.failures ?? 0) + 1
  const wait = waitAfter(failures, limit)
  const blocked_until = wait && now + wait
  const window_started_at = live?.window_started_at ?? now
  const lasts = limit.kind === 'row' ? now + limit.forget_after : window_started_at + limit.window
  return { failures, window_started_at, blocked_until, expires_at: Math.max(lasts, blocked_until) }
}

const waitAfter = (failures: number, limit: Limit): number => {
  if (limit.kind === 'window') return failures >= limit.count ? limit.wait : 0
  if (failures < limit.after) return 0
  return Math.min(limit.longest_wait, limit.first_wait * 2 ** (failures - limit.after))
}
