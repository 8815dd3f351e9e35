import { Database } from 'bun:sqlite'
import { StorageError } from '#src/storage/errors.ts'
import { applyMigrations } from './apply-migrations.ts'
import { appliedIn, sqliteMigrations } from './migrate.ts'

/** Maximum number of findings in the report. Many findings usually have one cause. */
export const MAX_FINDINGS = 20

/** Tables that ANALYZE adds: https://www.sqlite.org/fileformat2.html#stat1tab */
const STATISTICS = ['sqlite_stat1(tbl,idx,stat)', 'sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)']
const isStatistics = (type: unknown, sql: unknown): boolean =>
  type === 'table' && STATISTICS.some(table => sql === `CREATE TABLE ${table}`)

type Schema = Map<string, string>

/** Returns each table, index, trigger and view by type and name, with its SQL. */
const schemaOf = (db: Database): Schema =>
  new Map(
    db
      .query('SELECT type, name, tbl_name, sql FROM sqlite_schema')
      .values()
      .filter(([type, , , sql]) => !isStatistics(type, sql))
      .map(([type, name, table, sql]) => [JSON.stringify([type, name]), JSON.stringify([table, sql])]),
  )

const freshSchema = (applied: string[]): Schema => {
  using db = new Database(':memory:')
  applyMigrations(
    db,
    Object.entries(sqliteMigrations).filter(([name]) => applied.includes(name)),
  )
  return schemaOf(db)
}

/** Formats a name as a JSON string, because an untrusted file can contain any characters. */
const shown = (key: string): string =>
  JSON.parse(key)
    .map((part: unknown) => JSON.stringify(part))
    .join(' ')

/**
 * Compares the schema of a database with the schema that the same migrations make in an empty database.
 * Returns a line for each missing, changed or unknown object, at most `MAX_FINDINGS` lines. The comparison
 * runs no SQL from the file. If it returns no line, queries on the tables are safe.
 */
export const schemaFindings = (db: Database): string[] => {
  const found = schemaOf(db)
  const fresh = freshSchema(appliedIn(db))
  const names = [...new Set([...fresh.keys(), ...found.keys()])]
  return names
    .filter(name => found.get(name) !== fresh.get(name))
    .map(name => {
      const state = !found.has(name) ? 'missing' : fresh.has(name) ? 'changed' : 'unknown'
      return `schema: ${shown(name)} is ${state}`
    })
    .slice(0, MAX_FINDINGS)
}

/**
 * Checks the schema.
 *
 * @throws StorageError when the schema differs from the schema that the migrations make
 */
export const requireSchema = (db: Database): void => {
  const [finding] = schemaFindings(db)
  if (finding) throw new StorageError(`${db.filename} is damaged: ${finding}.`)
}

/**
 * Opens an untrusted database file. The schema of the file cannot call functions with side effects, and
 * malformed pages are detected when they are read.
 * https://www.sqlite.org/security.html#untrusted_sqlite_database_files
 */
export const openUntrusted = (path: string, options: object): Database => {
  const db = new Database(path, options)
  db.run('PRAGMA trusted_schema = OFF')
  db.run('PRAGMA cell_size_check = ON')
  return db
}
