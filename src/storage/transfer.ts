import { Database } from 'bun:sqlite'
import { type Copied, makeFile } from './backup.ts'
import { copyRows } from './copy.ts'
import { advanceSequences, emptyTables, inPostgres, postgresSide, requireAlone } from './copy-postgres.ts'
import { sqliteSide } from './copy-sqlite.ts'
import { StorageError } from './errors.ts'
import { migrate } from './migrate.ts'

type Told = (stage: string) => void

/**
 * Writes one state of a PostgreSQL instance into the database file `target`, verified row by row. `online`: while servers
 * write; else none may be connected. Throws StorageError.
 */
export const toFile = (
  url: string,
  target: string,
  { online, told }: { online: boolean; told: Told },
): Promise<Copied> =>
  makeFile(target, partial =>
    inPostgres(url, { migrate: false, mode: 'READ ONLY' }, async (connection, where) => {
      if (!online) await requireAlone(connection, where)
      using db = new Database(partial, { create: true })
      // Nobody has this file yet: it is synced whole once it is complete.
      for (const pragma of ['journal_mode = OFF', 'synchronous = OFF', 'foreign_keys = ON'])
        db.run(`PRAGMA ${pragma}`)
      migrate(db)
      db.run('BEGIN')
      await copyRows(postgresSide(connection), sqliteSide(db), told)
      db.run('COMMIT')
    }),
  )

/**
 * Copies the database file at `source` into a PostgreSQL database without an instance, in one transaction and verified row
 * by row; `replace` removes the one that is there. No server may be connected. Gives the rows by table. Throws StorageError.
 */
export const toPostgres = (
  source: string,
  url: string,
  { replace, told }: { replace: boolean; told: Told },
): Promise<Record<string, number>> =>
  inPostgres(url, { migrate: true, mode: 'READ WRITE' }, async (connection, where) => {
    await requireAlone(connection, where)
    // A server that starts meanwhile waits for the end of this.
    await connection.unsafe('LOCK TABLE settings IN ACCESS EXCLUSIVE MODE')
    const [found] = await connection.unsafe(
      'SELECT EXISTS (SELECT 1 FROM settings) OR EXISTS (SELECT 1 FROM organizations) AS used',
    )
    if (found.used && !replace)
      throw new StorageError(
        `${where} has an instance already: \`restore --force\` replaces one by a backup.`,
        1,
      )
    if (found.used) await emptyTables(connection)
    using db = new Database(source, { readonly: true })
    const rows = await copyRows(sqliteSide(db), postgresSide(connection), told)
    await advanceSequences(connection)
    return rows
  })
