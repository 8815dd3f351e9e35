import type { Metrics } from '#src/lib/metrics.ts'

const SLOT = 10_000
/** Number of slots of ten seconds: six complete slots and the current slot. */
const SLOTS = 7

/**
 * Keeps the largest value of the last 60 to 70 seconds, because a collector reads the gauge at intervals and
 * would miss a short peak between two reads. Times are milliseconds of a monotonic clock.
 */
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

/**
 * Milliseconds between two ticks. A hold is the time for which one task occupied the event loop. The measured
 * time can be too short, by less than this interval. Ten ticks a second cost 0.1 % of a core.
 */
const INTERVAL = 100

/**
 * Measures holds of the event loop by the delay of a timer. Returns a function that stops the measurement and
 * sets the gauge to 0.
 */
export const watchEventLoop = (metrics: Metrics): (() => void) => {
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
  // The current delay is recorded before each read: right after a hold, the gauge may be read before the
  // delayed tick runs.
  showHold(metrics, () => holds.read(note()) / 1_000)
  return () => {
    clearInterval(timer)
    showHold(metrics, () => 0)
  }
}

export const EVENT_LOOP_HOLD = 'gatehouse_event_loop_hold_seconds'
const HELP = 'Longest time in the last minute for which one task held the event loop.'

/** Registers the gauge of the longest hold of the event loop, in seconds. */
export const showHold = (metrics: Metrics, read: () => number): void =>
  metrics.gauge(EVENT_LOOP_HOLD, HELP, read)
