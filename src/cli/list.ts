import type { Keyset } from '#src/lib/cursor.ts'
import { print } from './print.ts'

/** Rows per read. The rows of one read stay in memory until they are printed. */
const PAGE = 100
/** Minimum characters of a column, so that the columns of successive pages line up. */
const WIDTH = 16

/**
 * Prints all rows of a list page by page. With `json` each row is one JSON object on a line. Otherwise the
 * rows are in columns below a line with titles.
 */
export const printList = async <Row>(list: {
  json: boolean | undefined
  fetch(after: Keyset | undefined, limit: number): Promise<Row[]>
  keyset(row: Row): Keyset
  item(row: Row): unknown
  titles: readonly string[]
  cells(row: Row): Promise<string[]> | string[]
}): Promise<void> => {
  let titles: readonly (readonly string[])[] = [list.titles]
  let after: Keyset | undefined
  do {
    const rows = await list.fetch(after, PAGE)
    if (list.json) for (const row of rows) print(JSON.stringify(list.item(row)))
    else if (rows.length > 0 || !after) printTable([...titles, ...(await Promise.all(rows.map(list.cells)))])
    titles = []
    const last = rows.at(-1)
    after = rows.length === PAGE && last ? list.keyset(last) : undefined
  } while (after)
}

const printTable = (lines: readonly (readonly string[])[]): void => {
  const widths = lines[0]?.map((_, i) => Math.max(WIDTH, ...lines.map(line => line[i]?.length ?? 0))) ?? []
  for (const line of lines)
    print(
      line
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}
