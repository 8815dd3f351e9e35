/** Formats a table. The first column is left-aligned, and the other columns are right-aligned. */
export const table = (head: string[], rows: string[][]): string => {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map(row => row[column]?.length ?? 0)))
  const line = (row: string[]) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return [line(head), widths.map(width => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n')
}

export const number = (value: number | undefined, digits = 0): string =>
  value === undefined || Number.isNaN(value) ? '' : value.toFixed(digits)

/** Returns the limit, followed by `ok` or `MISSED`. Returns an empty text if there is no limit. */
export const against = (measured: number | undefined, limit: number | undefined): string =>
  limit === undefined ? '' : `${limit}${measured !== undefined && measured > limit ? ' MISSED' : ' ok'}`

const printed: string[] = []

/** Prints a part of the result and keeps the text for `written`. */
export const print = (text: string): void => {
  printed.push(text)
  console.log(text)
}

/** Returns the results so far as Markdown. */
export const written = (about: string): string =>
  `# Benchmark\n\n${about}\n\n\`\`\`text\n${printed.join('\n').trim()}\n\`\`\`\n`
