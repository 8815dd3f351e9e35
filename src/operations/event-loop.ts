const SLOT = 10_000
/** Six whole ones and the current one. */
const SLOTS = 7

/** The largest value of the last 60 to 70 seconds. Times are ms of a monotonic clock. */
export const largestOfMinute = () => {
  const slots: { number: number; value: number }[] = []
  return {
    note(now: number, value: number): void {
      const number = Math.floor(now / SLOT)
      const slot = slots[number % SLOTS]
      if (slot?.number === number) slot.value = Math.max(slot.value, value)
      else slots[number % SLOTS] = { number, value }
    },
    read(now: number): number {
      const oldest = Math.floor(now / SLOT) - SLOTS
      return Math.max(0, ...slots.filter(({ number }) => number > oldest).map(({ value }) => value))
    },
  }
}

/** ms between two ticks. A hold is told too short by less than that; ten ticks a second cost 0.1 % of a core. */
const INTERVAL = 100

/** The longest hold of the last minute of each server in this process, ms. */
const watches = new Set<() => number>()

/** Measures by how much a timer is late, until the function that it returns is called. */
export const watchEventLoop = (): (() => void) => {
  const holds = largestOfMinute()
  let due = performance.now() + INTERVAL
  const note = (): number => {
    const now = performance.now()
    holds.note(now, now - due)
    return now
  }
  const timer = setInterval(() => {
    due = note() + INTERVAL
  }, INTERVAL).unref()
  // Who asks right after a hold may come before the late tick.
  const longest = () => holds.read(note())
  watches.add(longest)
  return () => {
    clearInterval(timer)
    watches.delete(longest)
  }
}

/** Longest hold of the event loop in the last minute, ms; 0 while no server is watched. */
export const longestHold = (): number => Math.max(0, ...[...watches].map(longest => longest()))

/** The gauge of it, in seconds. */
export const EVENT_LOOP_HOLD = 'gatehouse_event_loop_hold_seconds'
