import { Database } from 'bun:sqlite'
import { StorageError } from '#src/storage/errors.ts'
import { appliedIn, apply, sqliteMigrations } from './migrate.ts'

/** Findings beyond these say nothing new. */
const MOST = 20

/** What ANALYZE adds to a file. https://www.sqlite.org/fileformat2.html#stat1tab */
const STATISTICS = ['sqlite_stat1(tbl,idx,stat)', 'sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)']
const isStatistics = (type: unknown, sql: unknown): boolean =>
  type === 'table' && STATISTICS.some(table => sql === `CREATE TABLE ${table}`)

type Schema = Map<string, string>

/** Each table, index, trigger and view by type and name, with the statement that makes it. */
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
  apply(
    db,
    Object.entries(sqliteMigrations).filter(([name]) => applied.includes(name)),
  )
  return schemaOf(db)
}

/** A name in a file of others may hold anything: it is shown as a JSON string. */
const shown = (key: string): string =>
  JSON.parse(key)
    .map((part: unknown) => JSON.stringify(part))
    .join(' ')

/**
 * Compares the schema of a database with what its migrations make in an empty one. Gives a line for each object that is
 * missing, changed or unknown. Runs no statement of the file: queries on a table of it are safe once there is no finding.
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
    .slice(0, MOST)
}

/** Throws a StorageError unless the schema is that of the migrations. */
export const requireSchema = (db: Database): void => {
  const [finding] = schemaFindings(db)
  if (finding) throw new StorageError(`${db.filename} is damaged: ${finding}.`)
}

/**
 * Opens a file whose content is not trusted: its schema calls no function with side effects, and malformed pages are
 * found when they are read. https://www.sqlite.org/security.html#untrusted_sqlite_database_files
 */
export const openUntrusted = (path: string, options: object): Database => {
  const db = new Database(path, options)
  db.run('PRAGMA trusted_schema = OFF')
  db.run('PRAGMA cell_size_check = ON')
  return db
}
