/** A bucket holds at most `burst` units and gains `per_second` units a second. */
export interface Allowance {
  readonly burst: number
  readonly per_second: number
}

interface Bucket {
  left: number
  /** When `left` was counted, in milliseconds. */
  at: number
}

/**
 * Token buckets by key, in memory. At most `most` keys are kept: the one used least lately makes room, and its bucket is full
 * again. A clock that steps back adds nothing.
 */
export class TokenBuckets {
  readonly #most: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(most: number) {
    this.#most = most
  }

  /** Units in the bucket of `key` at `now` (milliseconds). */
  left(key: string, { burst, per_second }: Allowance, now: number): number {
    const bucket = this.#buckets.get(key)
    if (!bucket) return burst
    return Math.min(burst, bucket.left + (Math.max(0, now - bucket.at) / 1000) * per_second)
  }

  /** Takes units out; the caller has looked that they are there. */
  take(key: string, allowance: Allowance, now: number, units: number): void {
    const left = this.left(key, allowance, now) - units
    this.#buckets.delete(key)
    this.#buckets.set(key, { left, at: now })
    if (this.#buckets.size <= this.#most) return
    const [oldest] = this.#buckets.keys()
    if (oldest !== undefined) this.#buckets.delete(oldest)
  }
}
