const units = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Units of time in milliseconds. */
export const SECOND = 1_000
export const MINUTE = units.m
export const HOUR = units.h
export const DAY = units.d

/**
 * Maximum milliseconds by which the clocks of two copies may differ. A stored time that is further in the
 * future than this is ignored, because it was stored before the clock was set back. For the end of a wait,
 * the longest wait is added to this.
 */
export const CLOCK_SKEW = units.m

/**
 * Parses a duration such as `12h` (a number from 1 to 9999999, followed by `m`, `h`, `d` or `w`) into
 * milliseconds. Returns undefined for any other text.
 */
export const parseDuration = (text: string): number | undefined => {
  const match = /^([1-9]\d{0,6})([mhdw])$/.exec(text)
  if (!match) return undefined
  return Number(match[1]) * units[match[2] as keyof typeof units]
}
