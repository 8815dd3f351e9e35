import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { networkOf } from '#src/sign-in/throttle.ts'

/** So many flows may one network leave waiting in the store at once, and so many more each second. */
const BURST = 1_000
const PER_SECOND = 5
/** Networks remembered: the oldest makes room. */
const NETWORKS = 10_000

interface Bucket {
  left: number
  at: number
}

const buckets = new WeakMap<Context['store'], Map<string, Bucket>>()

/**
 * Called before something is stored for a browser that has proven nothing: without a bound, one stranger could fill the disk
 * with logins that nobody goes on with. Kept in memory, since a restart costs at most one more burst. 429 page.
 */
export const takeAllowance = ({ store, clock }: Context, call: Pick<Call, 'ip_address'>): void => {
  const known = buckets.get(store) ?? new Map<string, Bucket>()
  buckets.set(store, known)
  const key = networkOf(call.ip_address)
  const now = clock.now()
  const { left, at } = known.get(key) ?? { left: BURST, at: now }
  const filled = Math.min(BURST, left + (Math.max(0, now - at) / 1000) * PER_SECOND)
  if (filled < 1)
    throw retryLater('rate_limited', 'Too many logins were begun from this address.', 1000 / PER_SECOND)
  known.delete(key)
  known.set(key, { left: filled - 1, at: now })
  const oldest = known.size > NETWORKS ? known.keys().next().value : undefined
  if (oldest !== undefined) known.delete(oldest)
}
