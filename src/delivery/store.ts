import { type AnyColumn, between, or, type SQL } from 'drizzle-orm'

/** Ranges of times in milliseconds since the epoch, each with its first and its last millisecond. */
export type Ranges = [first: number, last: number][]

/** Returns the condition that the time in a column is in one of the ranges. */
export const isInRanges = (time: AnyColumn, ranges: Ranges): SQL | undefined =>
  or(...ranges.map(([first, last]) => between(time, first, last)))
