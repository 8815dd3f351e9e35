import { SQLiteError } from 'bun:sqlite'
import type { ReservedSQL } from 'bun'
import { StorageError } from '#src/storage/errors.ts'
import { connectTo, parseUrl, refusal, requireServer, STALL_TIMEOUT } from '#src/storage/postgres/connect.ts'
import { applyPending, migratePostgres } from '#src/storage/postgres/migrate.ts'
import { COPY_BATCH, type CopiedRow, copiedTables, quoted, type Side } from './copy.ts'

/**
 * Wraps a connection that is in a transaction, as the source or target of a transfer. A target database must
 * be migrated and empty.
 */
export const postgresSide = (connection: ReservedSQL): Side => ({
  read: async function* ({ name, columns, key }) {
    const names = quoted(columns.map(column => column.name))
    await connection.unsafe(
      `DECLARE copied NO SCROLL CURSOR FOR
       SELECT to_json(found)::text AS row FROM (SELECT ${names} FROM "${name}" ORDER BY ${quoted(key)}) AS found`,
    )
    for (;;) {
      const rows: { row: string }[] = await connection.unsafe(`FETCH ${COPY_BATCH} FROM copied`)
      yield rows.map(({ row }): CopiedRow => JSON.parse(row))
      if (rows.length < COPY_BATCH) break
    }
    await connection.unsafe('CLOSE copied')
  },
  write: async ({ name, columns }, rows) => {
    const names = quoted(columns.map(column => column.name))
    await connection.unsafe(
      `INSERT INTO "${name}" (${names})
       SELECT ${names} FROM json_populate_recordset(NULL::"${name}", $1::text::json)`,
      [JSON.stringify(rows)],
    )
  },
})

/** Advances all sequences beyond the copied values. */
export const advanceSequences = async (connection: ReservedSQL): Promise<void> => {
  for (const { name, columns } of copiedTables)
    for (const column of columns) {
      const [sequence] = await connection.unsafe('SELECT pg_get_serial_sequence($1, $2) AS name', [
        name,
        column.name,
      ])
      if (sequence.name)
        await connection.unsafe(
          `SELECT setval('${sequence.name}', coalesce(max("${column.name}"), 1), max("${column.name}") IS NOT NULL) FROM "${name}"`,
        )
    }
}

/** Removes all rows and the totals that triggers maintain. */
export const emptyTables = async (connection: ReservedSQL): Promise<void> => {
  const names = copiedTables.map(({ name }) => name).filter(name => name !== 'counters')
  await connection.unsafe(`TRUNCATE ${quoted([...names, 'counter_slots'])}`)
  await connection.unsafe(`INSERT INTO counter_slots VALUES ('organizations', '', -1, 0)`)
}

/**
 * Runs `body` in a transaction on the database at `url` and commits it. If `migrate` is true, the transaction
 * locks other servers out and applies pending migrations before `body`, so that a refusal undoes the
 * migrations too. If `migrate` is false, pending migrations are an error, and so is a table that another
 * connection locks for `stall` ms.
 *
 * @throws StorageError, whose message contains no user and no password. An SQLiteError of `body` is thrown
 * unchanged
 */
export const inPostgres = async <T>(
  url: string,
  {
    migrate,
    mode,
    stall = STALL_TIMEOUT,
  }: { migrate: boolean; mode: 'READ ONLY' | 'READ WRITE'; stall?: number | undefined },
  body: (connection: ReservedSQL, where: string) => Promise<T>,
): Promise<T> => {
  const parsed = parseUrl(url)
  const sql = connectTo(parsed, 1, {
    statement_timeout: 0,
    idle_in_transaction_session_timeout: 0,
    lock_timeout: migrate ? 0 : stall,
  })
  try {
    await requireServer(sql, parsed.where)
    if (!migrate) await migratePostgres(sql, parsed.where, { apply: false })
    const connection = await sql.reserve()
    try {
      await connection.unsafe(
        `BEGIN ISOLATION LEVEL ${migrate ? 'READ COMMITTED' : 'REPEATABLE READ'} ${mode}`,
      )
      if (migrate) await migrateAlone(connection, parsed.where)
      const result = await body(connection, parsed.where)
      await connection.unsafe('COMMIT')
      return result
    } catch (error) {
      await connection.unsafe('ROLLBACK').catch(() => {})
      throw error
    } finally {
      connection.release()
    }
  } catch (error) {
    // An error of the SQLite file is not reported as an error of PostgreSQL.
    throw error instanceof SQLiteError ? error : refusal(error, parsed.where)
  } finally {
    await sql.close()
  }
}

/** Locks other servers out and applies pending migrations, in the transaction of the connection. */
const migrateAlone = async (connection: ReservedSQL, where: string): Promise<void> => {
  // The tables are locked before the migrations. While a server runs, the lock fails, and no migration
  // changes the schema that the server uses. An empty database has no table to lock. A server that starts on
  // an empty database waits in `applyPending`.
  const [found] = await connection.unsafe("SELECT to_regclass('write_lock') IS NOT NULL AS has_tables")
  if (found.has_tables) await lockOthersOut(connection, where)
  await applyPending(connection, where)
  if (!found.has_tables) await lockOthersOut(connection, where)
}

/**
 * Milliseconds for which a connection may still be listed after its server has stopped, and the pause between
 * two checks. PostgreSQL ends the process of a connection some time after the client has closed it.
 */
const CLOSING = 1_000
const CLOSING_PAUSE = 20

/**
 * Blocks other servers until the end of the transaction: a starting server waits before its first read and
 * write. Without the locks a server could write rows that the copy does not have, or serve an incomplete
 * copy. A REPEATABLE READ transaction must call this function first. LOCK takes no snapshot, so the snapshot
 * of the transaction is taken under the locks and contains each earlier commit of the servers.
 *
 * @throws StorageError while a server or another command is connected
 */
export const lockOthersOut = async (connection: ReservedSQL, where: string): Promise<void> => {
  const inUse = (why: string): StorageError =>
    new StorageError(
      `${where} is in use by a Gatehouse server or command (${why}). Stop all Gatehouse servers and commands first.`,
      75,
    )
  try {
    await connection.unsafe('LOCK TABLE write_lock IN EXCLUSIVE MODE NOWAIT')
    await connection.unsafe('LOCK TABLE settings IN ACCESS EXCLUSIVE MODE NOWAIT')
  } catch (error) {
    throw Reflect.get(Object(error), 'errno') === '55P03' ? inUse('it holds a lock') : error
  }
  const end = performance.now() + CLOSING
  for (;;) {
    await connection.unsafe('SELECT pg_stat_clear_snapshot()')
    const [others] = await connection.unsafe(
      `SELECT count(*)::int AS count FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'gatehouse' AND pid <> pg_backend_pid()`,
    )
    if (others.count === 0) return
    if (performance.now() >= end) throw inUse(`${others.count} connections`)
    await Bun.sleep(CLOSING_PAUSE)
  }
}
