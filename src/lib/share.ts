/** Returns the share that one of `workers` processes has of a limit in memory; at least 1. */
export const shareOf = (limit: number, workers: number): number => Math.max(1, Math.floor(limit / workers))
