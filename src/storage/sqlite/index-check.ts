import type { Database } from 'bun:sqlite'

/** Quotes a name as an SQL identifier. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Tables with at least this many rows get a line of progress. A smaller table takes less than a second. */
const MANY = 100_000

/**
 * Compares each index with its table. Returns a finding for each index that differs from its table, and for
 * each unique index with repeated keys. The table and each index are read in their own order. The sums of the
 * hashes of all entries are compared. The time per row is thus constant. `PRAGMA integrity_check` looks up
 * each row in each index. When the indexes exceed the page cache, this takes three times as long per row.
 *
 * All scans of a table share one read transaction, because a server can write meanwhile.
 *
 * @param rows number of rows by table
 * @param onProgress receives a description of each large table before it is read
 */
export const indexFindings = (
  db: Database,
  rows: Record<string, number>,
  onProgress: (text: string) => void,
): string[] =>
  Object.entries(rows).flatMap(([table, count]) => {
    if (count >= MANY) onProgress(`comparing the indexes of ${table}, ${count} rows`)
    return db.transaction(() => differences(db, table, indexesOf(db, table)))()
  })

interface Index {
  name: string
  isUnique: boolean
  /** SQL expression for all columns of an entry as one text. */
  entry: string
  /** SQL expression for the key columns only. In a unique index no two entries have the same key. */
  key: string
  /** Condition of a partial index. */
  where: string
}

const indexesOf = (db: Database, table: string): Index[] => {
  const blobs = new Set<unknown>(
    db
      .query("SELECT name FROM pragma_table_info(?) WHERE type = 'BLOB'")
      .values(table)
      .map(([name]) => name),
  )
  // A column without a name is the rowid. An expression has no name either, but no index of the schema has an
  // expression.
  const text = (columns: unknown[]): string => {
    const parts = columns.map(name => {
      const column = name === null ? 'rowid' : identifier(String(name))
      return `ifnull(${blobs.has(name) ? `hex(${column})` : column}, char(0))`
    })
    return `concat_ws('|', ${parts.join(', ')})`
  }
  return db
    .query(
      `SELECT list.name, list."unique", schema.sql FROM pragma_index_list(?) AS list
       JOIN sqlite_schema AS schema ON schema.name = list.name AND schema.rootpage > 0`,
    )
    .values(table)
    .map(([name, unique, sql]) => {
      const columns = db.query('SELECT name, key FROM pragma_index_xinfo(?)').values(String(name))
      return {
        name: String(name),
        isUnique: unique === 1,
        entry: text(columns.map(([column]) => column)),
        key: text(columns.filter(([, isKey]) => isKey === 1).map(([column]) => column)),
        where: /\bWHERE\b(.*)$/is.exec(String(sql ?? ''))?.[1] ?? 'true',
      }
    })
}

/** The number of entries and the sum of their hashes. The order of the entries changes neither number. */
interface Sum {
  entries: number
  hashes: number
}

const add = (sum: Sum, text: string): void => {
  sum.entries++
  sum.hashes = (sum.hashes + Bun.hash.xxHash32(text)) % Number.MAX_SAFE_INTEGER
}

const differences = (db: Database, table: string, indexes: Index[]): string[] => {
  const sums: Sum[] = indexes.map(() => ({ entries: 0, hashes: 0 }))
  const columns = indexes.map(({ entry, where }, i) => `CASE WHEN ${where} THEN ${entry} END AS e${i}`)
  if (indexes.length > 0)
    for (const row of db.query(`SELECT ${columns} FROM ${identifier(table)} NOT INDEXED`).iterate() as Rows)
      for (const [i, sum] of sums.entries()) if (row[`e${i}`] != null) add(sum, row[`e${i}`] ?? '')
  return indexes.flatMap((index, i) => {
    const { sum, repeated } = sumOf(db, table, index)
    const isSame = sum.entries === sums[i]?.entries && sum.hashes === sums[i]?.hashes
    return [
      ...(isSame ? [] : [`structure: index ${index.name} differs from its table ${table}`]),
      ...(repeated > 0 ? [`structure: ${repeated} repeated entries in the unique index ${index.name}`] : []),
    ]
  })
}

type Rows = IterableIterator<Record<string, string | null>>

const sumOf = (db: Database, table: string, { name, isUnique, entry, key, where }: Index) => {
  const sum = { entries: 0, hashes: 0 }
  let repeated = 0
  let before: string | null | undefined
  const rows = db.query(
    `SELECT ${entry} AS entry${isUnique ? `, ${key} AS key` : ''} FROM ${identifier(table)} INDEXED BY ${identifier(name)} WHERE ${where}`,
  )
  for (const row of rows.iterate() as Rows) {
    add(sum, row.entry ?? '')
    // A key with NULL never equals another key. In the text of a key, U+0000 represents NULL.
    if (isUnique && row.key === before && !row.key?.includes('\0')) repeated++
    before = row.key
  }
  return { sum, repeated }
}
