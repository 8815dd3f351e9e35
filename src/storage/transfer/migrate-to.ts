import { Database } from 'bun:sqlite'
import { StorageError } from '#src/storage/errors.ts'
import { type Copied, makeFile } from '#src/storage/sqlite/backup.ts'
import { migrate } from '#src/storage/sqlite/migrate.ts'
import { openUntrusted, requireSchema } from '#src/storage/sqlite/schema-check.ts'
import { copyRows } from './copy.ts'
import { advanceSequences, emptyTables, inPostgres, keepOthersOut, postgresSide } from './postgres.ts'
import { sqliteSide } from './sqlite.ts'

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
    inPostgres(
      url,
      { migrate: false, mode: online ? 'READ ONLY' : 'READ WRITE' },
      async (connection, where) => {
        if (!online) await keepOthersOut(connection, where)
        using db = new Database(partial, { create: true })
        // Nobody has this file yet: it is synced whole once it is complete.
        for (const pragma of ['journal_mode = OFF', 'synchronous = OFF', 'foreign_keys = ON'])
          db.run(`PRAGMA ${pragma}`)
        migrate(db)
        db.run('BEGIN')
        await copyRows(postgresSide(connection), sqliteSide(db), told)
        db.run('COMMIT')
      },
    ),
  )

/**
 * Copies the database file at `source` into a PostgreSQL database without an instance, in one transaction and verified row
 * by row; `replace` removes the one that is there. No server may be connected. Gives the rows by table. Throws StorageError,
 * also where the file is of an older version.
 */
export const toPostgres = async (
  source: string,
  url: string,
  { replace, told }: { replace: boolean; told: Told },
): Promise<Record<string, number>> => {
  using db = openUntrusted(source, { readonly: true })
  migrate(db, undefined, false)
  requireSchema(db)
  return await inPostgres(url, { migrate: true, mode: 'READ WRITE' }, async (connection, where) => {
    await keepOthersOut(connection, where)
    const [found] = await connection.unsafe(
      'SELECT EXISTS (SELECT 1 FROM settings) OR EXISTS (SELECT 1 FROM organizations) AS used',
    )
    if (found.used && !replace)
      throw new StorageError(
        `${where} has an instance already: \`restore --force\` replaces one by a backup.`,
        1,
      )
    if (found.used) await emptyTables(connection)
    const rows = await copyRows(sqliteSide(db), postgresSide(connection), told)
    await advanceSequences(connection)
    return rows
  })
}
