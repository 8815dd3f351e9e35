import type { Database } from 'bun:sqlite'
import { COPY_BATCH, type CopiedRow, type CopiedTable, quoted, type Side } from './copy.ts'

type Stored = number | string | Uint8Array | null

const isBool = (type: string): boolean => type === 'SQLiteBoolean'
const isBytes = (type: string): boolean => type === 'SQLiteBlobBuffer'

/** Wraps a database file as the source or target of a copy. A target database must be migrated and empty. */
export const sqliteSide = (db: Database): Side => ({
  read: function* ({ name, columns, key }: CopiedTable) {
    const decoders = columns.map(({ columnType }) => (value: Stored) => {
      if (value === null) return null
      if (isBool(columnType)) return value === 1
      return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value
    })
    const names = columns.map(column => column.name)
    const statement = db.query<Record<string, Stored>, []>(
      `SELECT ${quoted(names)} FROM "${name}" ORDER BY ${quoted(key)}`,
    )
    let rows: CopiedRow[] = []
    for (const stored of statement.iterate()) {
      rows.push(
        Object.fromEntries(names.map((name, i) => [name, decoders[i]?.(stored[name] ?? null) ?? null])),
      )
      if (rows.length === COPY_BATCH) {
        yield rows
        rows = []
      }
    }
    yield rows
  },
  write: async ({ name, columns }, rows) => {
    const names = columns.map(column => column.name)
    const statement = db.query(
      `INSERT INTO "${name}" (${quoted(names)}) VALUES (${names.map(() => '?').join(', ')})`,
    )
    for (const row of rows)
      statement.run(
        ...columns.map(({ name, columnType }): Stored => {
          const value = row[name] ?? null
          if (value === null) return null
          if (isBytes(columnType)) return Buffer.from(String(value).slice(2), 'hex')
          return typeof value === 'boolean' ? Number(value) : value
        }),
      )
  },
})
