import { createHash } from 'node:crypto'
import { getTableName } from 'drizzle-orm'
import { getTableConfig, type SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { StorageError } from '#src/storage/errors.ts'
import { sqliteTables } from '#src/storage/sqlite/tables.ts'

/** As JSON has it on both engines: booleans, numbers, texts, null, and bytes as PostgreSQL writes them (`\x00ff`). */
export type CopiedRow = Record<string, boolean | number | string | null>

export interface CopiedTable {
  name: string
  columns: SQLiteColumn[]
  /** The columns that tell rows apart: their order is the same on both engines. */
  key: string[]
}

/** Rows that are held in memory at once. */
export const BATCH = 500

/** As both engines write the names of columns. */
export const quoted = (names: string[]): string => names.map(name => `"${name}"`).join(', ')

/** One engine during a copy. */
export interface Side {
  /** All rows in the order of the key, in batches. */
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

/** Parents come before their children. */
export const copiedTables = Object.values(sqliteTables).map(describe)

/** Totals that the target's own triggers count while rows come in. That they end as they were is part of the proof. */
const counted: ReadonlySet<string> = new Set(['user_count', 'member_count'])
const isCounted = ({ name }: CopiedTable): boolean => name === 'counters'

/** How many rows of a table there are, and a digest over all of them: both are the same on both engines. */
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
 * Copies every row from one side to the other, where there is none yet, then reads all of them there and compares numbers
 * and digests. Gives the number of rows by table. Throws StorageError when anything differs: the caller then undoes it.
 */
export const copyRows = async (
  from: Side,
  to: Side,
  told: (table: string) => void,
): Promise<Record<string, number>> => {
  const sent = new Map<string, Digest>()
  for (const table of copiedTables) {
    told(`copying ${table.name}`)
    const digest = digester()
    for await (const rows of from.read(table)) {
      digest.add(rows)
      if (!isCounted(table)) await to.write(table, rows.map(uncounted))
    }
    sent.set(table.name, digest.end())
  }
  const rows: Record<string, number> = {}
  for (const table of copiedTables) {
    told(`comparing ${table.name}`)
    const digest = digester()
    for await (const batch of to.read(table)) digest.add(batch)
    const [was, is] = [sent.get(table.name), digest.end()]
    if (was?.sha256 !== is.sha256)
      throw new StorageError(
        `The copy of ${table.name} is not what was read (${was?.rows} rows, ${is.rows} in the copy): nothing was changed.`,
        1,
      )
    rows[table.name] = is.rows
  }
  return rows
}
