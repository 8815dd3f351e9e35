/**
 * Returns the share of one process in a limit that `workers` processes count in memory. It is at least 1,
 * because 0 would refuse everything.
 */
export const shareOf = (limit: number, workers: number): number => Math.max(1, Math.floor(limit / workers))
