/**
 * Divides a limit among `workers` processes, which count in their own memory. Returns the share of one
 * process: at least 1, because 0 would refuse everything.
 */
export const shareOf = (limit: number, workers: number): number => Math.max(1, Math.floor(limit / workers))
