import { Database } from 'bun:sqlite'
import { giveToOwner } from '#src/storage/data-dir.ts'
import { StorageError } from '#src/storage/errors.ts'
import { type Copied, makeFile, type OnProgress } from '#src/storage/sqlite/backup.ts'
import { migrate } from '#src/storage/sqlite/migrate.ts'
import { openUntrusted, requireSchema } from '#src/storage/sqlite/schema-check.ts'
import { copyRows } from './copy.ts'
import { advanceSequences, emptyTables, inPostgres, lockOthersOut, postgresSide } from './postgres.ts'
import { sqliteSide } from './sqlite.ts'

/**
 * Copies a PostgreSQL instance into the database file `target` and verifies every row. A backup sets
 * `online`: servers may then go on writing, and the copy lacks the writes that they make after the copy
 * began. A move does not set `online`: no server may then be connected, so that no write is lost.
 *
 * @throws StorageError when the copy differs or one of the databases cannot be used. Also thrown when a
 * server is connected and `online` is false
 */
export const toFile = (
  url: string,
  target: string,
  { online, onProgress }: { online: boolean; onProgress: OnProgress },
): Promise<Copied> =>
  makeFile(
    target,
    partial =>
      inPostgres(
        url,
        { migrate: false, mode: online ? 'READ ONLY' : 'READ WRITE' },
        async (connection, where) => {
          if (!online) await lockOthersOut(connection, where)
          using db = new Database(partial, { create: true })
          // The file is not in use yet, so it is synced only when it is complete.
          for (const pragma of ['journal_mode = OFF', 'synchronous = OFF', 'foreign_keys = ON'])
            db.run(`PRAGMA ${pragma}`)
          migrate(db)
          db.run('BEGIN')
          await copyRows(postgresSide(connection), sqliteSide(db), onProgress)
          db.run('COMMIT')
          // When `online` is false, the file is the new database in the data directory, so it is given to the
          // owner of that directory. A backup stays with the user who makes it.
          if (!online) giveToOwner(partial)
        },
      ),
    onProgress,
  )

/**
 * Copies the database file `source` into a PostgreSQL database in one transaction and verifies every row.
 * Returns the number of rows by table. `replace` removes an existing instance. No server may be connected,
 * because its caches would keep rows of the old instance.
 *
 * @throws StorageError when a server is connected, the copy differs, one of the databases cannot be used or
 * the file has an older version. Also thrown when an instance exists and `replace` is false
 */
export const toPostgres = async (
  source: string,
  url: string,
  { replace, onProgress }: { replace: boolean; onProgress: OnProgress },
): Promise<Record<string, number>> => {
  using db = openUntrusted(source, { readonly: true })
  // One transaction reads one state of the file, because commands such as `user create` may write meanwhile.
  db.run('BEGIN')
  // The source stays unchanged, so that the release that wrote it can still open it. A file of an older
  // version is thus refused, not upgraded.
  const upgrade = false
  migrate(db, undefined, upgrade)
  requireSchema(db)
  return await inPostgres(url, { migrate: true, mode: 'READ WRITE' }, async (connection, where) => {
    const [found] = await connection.unsafe(
      'SELECT EXISTS (SELECT 1 FROM settings) OR EXISTS (SELECT 1 FROM organizations) AS used',
    )
    if (found.used && !replace)
      throw new StorageError(
        `${where} already has an instance. \`restore --force\` replaces it with a backup.`,
        1,
      )
    if (found.used) await emptyTables(connection)
    const rows = await copyRows(sqliteSide(db), postgresSide(connection), onProgress)
    await advanceSequences(connection)
    return rows
  })
}
