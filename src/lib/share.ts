/**
 * Returns the share of one of `workers` processes in a limit that each process counts in memory; at least 1.
 */
export const shareOf = (limit: number, workers: number): number => Math.max(1, Math.floor(limit / workers))
