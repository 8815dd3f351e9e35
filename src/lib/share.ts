/** Returns the share of one process in a limit that `workers` processes count in memory; at least 1. */
export const shareOf = (limit: number, workers: number): number => Math.max(1, Math.floor(limit / workers))
