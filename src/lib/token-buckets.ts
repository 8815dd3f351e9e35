/** A bucket holds at most `burst` units and gains `per_second` units a second. */
export interface Allowance {
  readonly burst: number
  readonly per_second: number
}

interface Bucket {
  left: number
  /** Time of the value in `left`, in milliseconds. */
  at: number
}

/**
 * Token buckets by key, in memory. At most `most` keys are kept; the least recently used one is dropped,
 * which refills its bucket. A clock that steps back adds nothing.
 */
export class TokenBuckets {
  readonly #most: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(most: number) {
    this.#most = most
  }

  /** Returns the units in the bucket of `key` at `now` (ms). */
  left(key: string, { burst, per_second }: Allowance, now: number): number {
    const bucket = this.#buckets.get(key)
    if (!bucket) return burst
    return Math.min(burst, bucket.left + (Math.max(0, now - bucket.at) / 1000) * per_second)
  }

  /** Removes units. The caller must have checked `left` before. */
  take(key: string, allowance: Allowance, now: number, units: number): void {
    const left = this.left(key, allowance, now) - units
    this.#buckets.delete(key)
    this.#buckets.set(key, { left, at: now })
    if (this.#buckets.size <= this.#most) return
    const [oldest] = this.#buckets.keys()
    if (oldest !== undefined) this.#buckets.delete(oldest)
  }
}
