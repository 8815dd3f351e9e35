import type { Clock } from '#src/context.ts'

/** The server's clock in development. It follows the machine's clock with an offset, or is stopped. */
export interface DevClock extends Clock {
  /** Stops the clock at the current time. */
  freeze(): void
  /** Sets the time in milliseconds since the epoch. A running clock continues from this time. */
  set(ms: number): void
  advance(ms: number): void
  /** Follows the machine's clock again, without an offset. */
  reset(): void
  isFrozen(): boolean
}

/** Creates a clock that follows the machine's clock until it is set or frozen. */
export const devClock = (): DevClock => {
  let offset = 0
  let frozen: number | undefined
  const now = () => frozen ?? Date.now() + offset
  const set = (ms: number): void => {
    if (frozen !== undefined) frozen = ms
    offset = ms - Date.now()
  }
  return {
    now,
    set,
    advance: ms => set(now() + ms),
    freeze: () => {
      frozen = now()
    },
    reset: () => {
      frozen = undefined
      offset = 0
    },
    isFrozen: () => frozen !== undefined,
  }
}
