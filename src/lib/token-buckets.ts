/** Size of a bucket: it holds at most `burst` units and gains `per_second` units a second. */
export interface Allowance {
  readonly burst: number
  readonly per_second: number
}

interface Bucket {
  left: number
  /** Time at which `left` was computed, in milliseconds since the epoch. */
  at: number
}

/**
 * Token buckets by key, in memory. At most `most` keys are kept, because strangers choose them. Beyond this
 * number, the least recently used key is dropped. When a dropped key is used again, its bucket is full. A
 * clock that steps back neither adds units nor delays new units. The buckets of each of `workers` processes
 * have an equal share of the allowance, but each bucket can always hold the units of one charge.
 */
export class TokenBuckets {
  readonly #most: number
  readonly #buckets = new Map<string, Bucket>()

  readonly #workers: number

  constructor(most: number, workers = 1) {
    this.#most = most
    this.#workers = workers
  }

  /** Returns the units in the bucket of `key` at `now` (ms). The bucket can hold at least `units`. */
  left(key: string, { burst, per_second }: Allowance, now: number, units = 1): number {
    const most = Math.max(units, burst / this.#workers)
    const bucket = this.#buckets.get(key)
    if (!bucket) return most
    bucket.at = Math.min(bucket.at, now)
    const gained = ((now - bucket.at) / 1000) * (per_second / this.#workers)
    return Math.min(most, bucket.left + gained)
  }

  /** Returns the milliseconds until the bucket has `units`. Returns 0 when the bucket already has them. */
  wait(key: string, allowance: Allowance, now: number, units: number): number {
    const lacking = units - this.left(key, allowance, now, units)
    return Math.max(0, (lacking / allowance.per_second) * this.#workers * 1000)
  }

  /** Fills all buckets. */
  clear(): void {
    this.#buckets.clear()
  }

  /** Removes units. The caller must have checked `wait` before. */
  take(key: string, allowance: Allowance, now: number, units: number): void {
    const left = this.left(key, allowance, now, units) - units
    this.#buckets.delete(key)
    this.#buckets.set(key, { left, at: now })
    if (this.#buckets.size <= this.#most) return
    const [oldest] = this.#buckets.keys()
    if (oldest !== undefined) this.#buckets.delete(oldest)
  }
}
