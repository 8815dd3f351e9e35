import { type ReservedSQL, SQL } from 'bun'
import { databaseOf } from '#src/lib/setting-values.ts'
import { isLost, StorageError } from '#src/storage/errors.ts'

/** https://www.postgresql.org/docs/13/ is the oldest that is still found in the field and has all that is used here. */
const OLDEST = 13
/** How long a connection may take to open, s, and a statement to answer, ms. */
const CONNECT = 5
const STATEMENT = 15_000
/** What has no answer by then (ms) has no server any more: that would have ended the statement itself. */
export const STALL = STATEMENT + 5_000

/** The answer of a query. Where none comes for `ms`, `giveUp` closes its connection, and the query fails with that. */
export const answered = async <T>(query: PromiseLike<T>, giveUp: () => unknown, ms: number): Promise<T> => {
  const timer = setTimeout(giveUp, ms)
  try {
    return await query
  } finally {
    clearTimeout(timer)
  }
}

/** A connection of the pool on which `first` succeeds, and what that gave. Any that the pool has open may be dead: each is tried once. */
export const reserve = async <T>(
  pool: SQL,
  pooled: number,
  first: (connection: ReservedSQL) => Promise<T>,
): Promise<{ connection: ReservedSQL; value: T }> => {
  for (let dead = 0; ; dead++) {
    const connection = await pool.reserve()
    try {
      return { connection, value: await first(connection) }
    } catch (error) {
      await connection.close().catch(() => {})
      if (!isLost(error) || dead >= pooled) throw error
    }
  }
}

interface Parsed {
  url: string
  database: string
  tls: 'prefer' | undefined
  /** For messages: without user and password. */
  where: string
}

export const parseUrl = (text: string): Parsed => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const database = databaseOf(text)
  if (!url || !database)
    throw new StorageError(
      'GATEHOUSE_DATABASE_URL: must be postgres://user:password@host:port/database. Leave it out to use SQLite.',
      2,
    )
  const isLocal =
    /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|)$/.test(url.hostname) || url.searchParams.has('path')
  return {
    url: text,
    database,
    // As PostgreSQL's own tools do: encrypted where the server can. `?sslmode=verify-full` asks for more.
    tls: isLocal || url.searchParams.has('sslmode') ? undefined : 'prefer',
    where: `PostgreSQL at ${url.host || 'its socket'}, database ${database}`,
  }
}

/** A pool of `max` connections, none of which is open yet. Settings of the session are `parameters`. */
export const connectTo = (
  { url, database, tls }: Parsed,
  max: number,
  parameters: Record<string, string | number> = {},
): SQL =>
  new SQL({
    url,
    database,
    ...(tls && { tls }),
    max,
    connectionTimeout: CONNECT,
    connection: {
      application_name: 'gatehouse',
      client_min_messages: 'warning',
      statement_timeout: STATEMENT,
      idle_in_transaction_session_timeout: 60_000,
      // A client whose machine is gone lets go of its locks within a minute.
      tcp_keepalives_idle: 20,
      tcp_keepalives_interval: 10,
      tcp_keepalives_count: 3,
      ...parameters,
    },
  })

const reasons: Record<string, string> = {
  '28P01': 'the password is not accepted',
  '28000': 'this user may not log in, or not from here (pg_hba.conf)',
  '3D000': 'there is no such database; make it with createdb',
  '42501': 'this user may not do that there: it must own the database or its schema, and the tables',
  '53300': 'the server has no connection left (max_connections)',
  '55000': 'it accepts no connections at present',
  '55P03': 'others hold it; an instance may be being restored or moved',
  '57014': 'no answer in time; it may be being restored or copied',
  '57P03': 'the server is starting up or shutting down',
  ERR_POSTGRES_CONNECTION_REFUSED: 'nothing answers there',
  ERR_POSTGRES_CONNECTION_TIMEOUT: 'nothing answers there',
  ERR_POSTGRES_TLS_NOT_AVAILABLE: 'the server speaks no TLS, which sslmode asks for',
}
/** What may pass when a start is tried again. */
const passing = /^(53300|55000|55P03|57014|57P03|ERR_POSTGRES_CONNECTION_\w+)$/

/** One line for the person at the command line. Neither user nor password is in it. */
export const refusal = (error: unknown, where: string): StorageError => {
  if (error instanceof StorageError) return error
  const codes = ['errno', 'code'].map(name => String(Reflect.get(Object(error), name)))
  const known = codes.find(code => Object.hasOwn(reasons, code))
  const reason = known ? reasons[known] : `${error instanceof Error ? error.message : error}`
  return new StorageError(`${where}: ${reason}.`, codes.some(code => passing.test(code)) ? 75 : 78)
}

/** Throws StorageError unless the server can be reached and is new enough. */
export const requireServer = async (sql: SQL, where: string): Promise<void> => {
  const [row] = await sql.unsafe('SHOW server_version_num')
  const version = Math.floor(Number(row.server_version_num) / 10_000)
  if (version < OLDEST)
    throw new StorageError(`${where}: this is PostgreSQL ${version}; ${OLDEST} or newer is needed.`)
  const [encoding] = await sql.unsafe('SHOW server_encoding')
  if (encoding.server_encoding !== 'UTF8')
    throw new StorageError(
      `${where}: its encoding is ${encoding.server_encoding}; make the database with UTF8.`,
    )
}
