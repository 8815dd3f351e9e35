import type { Clock } from '#src/context.ts'

/** The server's time in development: runs beside the machine's, or stands still. */
export interface DevClock extends Clock {
  /** Stands still from now on. */
  freeze(): void
  /** Milliseconds since the epoch. A clock that runs goes on from there. */
  set(ms: number): void
  advance(ms: number): void
  /** Runs again, with the machine's time. */
  reset(): void
  isFrozen(): boolean
}

/** Runs with the machine until it is set or frozen. */
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
