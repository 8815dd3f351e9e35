import { createHash } from 'node:crypto'
import { getTableName } from 'drizzle-orm'
import { getTableConfig, type SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { StorageError } from '#src/storage/errors.ts'
import { sqliteTables } from '#src/storage/sqlite/tables.ts'

/** A row in the same JSON form for both engines; bytes are in PostgreSQL's hexadecimal format (`\x00ff`). */
export type CopiedRow = Record<string, boolean | number | string | null>

/** A table and its columns, as both engines copy it. */
export interface CopiedTable {
  name: string
  columns: SQLiteColumn[]
  /** Columns that identify a row. They sort the same on both engines. */
  key: string[]
}

/**
 * Number of rows in one batch. A row of `pictures` has up to 256 KiB, and a batch is in memory several times,
 * as hexadecimal JSON: 500 pictures took 2 GB. Batches of 500 would copy small rows 1.4 times as fast.
 */
export const COPY_BATCH = 32

/** Quotes column names for both engines. */
export const quoted = (names: string[]): string => names.map(name => `"${name}"`).join(', ')

/** The source or the target of a copy. */
export interface Side {
  /** Returns all rows in the order of the key, in batches. */
  read(table: CopiedTable): AsyncIterable<CopiedRow[]> | Iterable<CopiedRow[]>
  write(table: CopiedTable, rows: CopiedRow[]): Promise<void>
}

const describe = (table: (typeof sqliteTables)[keyof typeof sqliteTables]): CopiedTable => {
  const { columns, primaryKeys, indexes } = getTableConfig(table)
  const own = columns.filter(({ primary }) => primary)
  const unique = indexes.find(({ config }) => config.unique)?.config.columns as SQLiteColumn[] | undefined
  const key = primaryKeys[0]?.columns ?? (own.length > 0 ? own : unique) ?? []
  return { name: getTableName(table), columns, key: key.map(({ name }) => name) }
}

/** All tables, parents before children. */
export const copiedTables = Object.values(sqliteTables).map(describe)

/**
 * Columns that the target's triggers compute while rows are written, so their values are not copied. The
 * comparison of digests includes them.
 */
const counted: ReadonlySet<string> = new Set(['user_count', 'member_count'])
const isCounted = ({ name }: CopiedTable): boolean => name === 'counters'

/** Number of rows and a digest over all rows of a table, the same on both engines. */
interface Digest {
  rows: number
  sha256: string
}

const digester = () => {
  const hash = createHash('sha256')
  let rows = 0
  return {
    add: (batch: CopiedRow[]) => {
      for (const row of batch) hash.update(`${JSON.stringify(row)}\n`)
      rows += batch.length
    },
    end: (): Digest => ({ rows, sha256: hash.digest('hex') }),
  }
}

const uncounted = (row: CopiedRow): CopiedRow => {
  const copied = { ...row }
  for (const name of counted) if (name in copied) copied[name] = 0
  return copied
}

/**
 * Copies all rows into empty tables, then reads them back and compares the digests. Returns the number of
 * rows by table.
 *
 * @throws StorageError when the digests differ; the caller rolls back
 */
export const copyRows = async (
  from: Side,
  to: Side,
  onProgress: (table: string) => void,
): Promise<Record<string, number>> => {
  const sent = new Map<string, Digest>()
  for (const table of copiedTables) {
    onProgress(`copying ${table.name}`)
    const digest = digester()
    for await (const rows of from.read(table)) {
      digest.add(rows)
      if (!isCounted(table)) await to.write(table, rows.map(uncounted))
    }
    sent.set(table.name, digest.end())
  }
  const rows: Record<string, number> = {}
  for (const table of copiedTables) {
    onProgress(`comparing ${table.name}`)
    const digest = digester()
    for await (const batch of to.read(table)) digest.add(batch)
    const [was, is] = [sent.get(table.name), digest.end()]
    if (was?.sha256 !== is.sha256)
      throw new StorageError(
        `The copy of ${table.name} differs from the original (${was?.rows} rows, ${is.rows} in the copy). Nothing was changed.`,
        1,
      )
    rows[table.name] = is.rows
  }
  return rows
}
