/**
 * Resolves after other requests have had a turn of the event loop. A job of many SQLite reads awaits this
 * between two reads, because each read blocks the event loop.
 */
export const othersRun = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
