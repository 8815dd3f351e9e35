/** Resolves after a turn of the event loop, in which other requests run: a read on SQLite does not yield. */
export const othersRun = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
