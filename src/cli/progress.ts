/** Prints the current stage of a long command. Prints nothing when standard error is not a terminal. */
export const stage = (text: string): void => {
  if (process.stderr.isTTY) console.error(`\u001b[2m${text} …\u001b[0m`)
}

/** Formats bytes as kB or MB. */
export const size = (bytes: number): string =>
  bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`

/** Returns the total of the rows of all tables. */
export const sum = (rows: Record<string, number>): number => Object.values(rows).reduce((a, b) => a + b, 0)
