import { type ReservedSQL, SQL } from 'bun'
import { databaseOf } from '#src/lib/setting-values.ts'
import { isLost, StorageError } from '#src/storage/errors.ts'

/**
 * Oldest supported version. From version 13 on, the owner of a database is allowed to create the extension
 * pg_trgm (https://www.postgresql.org/docs/13/pgtrgm.html).
 */
const MIN_VERSION = 13
/**
 * Timeout for opening a connection (in seconds) and for a statement (in ms). Few clients wait longer, and a
 * statement that hangs occupies one of the few connections of the pool.
 */
const CONNECT_TIMEOUT = 5
const STATEMENT_TIMEOUT = 15_000
/**
 * Maximum wait for a connection of a pool in seconds. A connection that is not opened fails earlier, so that
 * its own error reaches the caller.
 */
const RESERVE_TIMEOUT = CONNECT_TIMEOUT + 1
/**
 * Time in ms after which a connection without an answer counts as dead. If PostgreSQL is still connected, it
 * ends the statement earlier (`STATEMENT_TIMEOUT`).
 */
export const STALL_TIMEOUT = STATEMENT_TIMEOUT + 5_000

/**
 * Returns the result of a query. After `ms` without a result, `giveUp` closes the connection and the query
 * rejects.
 */
export const withTimeout = async <T>(
  query: PromiseLike<T>,
  giveUp: () => unknown,
  ms: number,
): Promise<T> => {
  const timer = setTimeout(giveUp, ms)
  try {
    return await query
  } finally {
    clearTimeout(timer)
  }
}

/** Level of the messages that PostgreSQL sends. It is not the default, so it shows if a session has it. */
const MESSAGES = 'warning'

/** The error with which a connection of the pool was refused or closed last, and the time of it. */
const refusals = new WeakMap<SQL, { error: Error; at: number }>()
/** Milliseconds for which a refusal counts as the cause of a missing connection. */
const RECENT = 60_000

/**
 * Reserves a pooled connection within `RESERVE_TIMEOUT`. When PostgreSQL refuses only a part of the
 * connections of a pool, Bun's `reserve` waits without a limit, and no error reaches the caller.
 */
const reserveInTime = (pool: SQL): Promise<ReservedSQL> => {
  const late = Promise.withResolvers<never>()
  const reserved = pool.reserve()
  const giveUp = () => {
    const message = `There was no free connection for ${RESERVE_TIMEOUT} s.`
    const { error, at = 0 } = refusals.get(pool) ?? {}
    const cause = performance.now() - at < RECENT ? error : undefined
    // 53300 is too_many_connections.
    late.reject(Object.assign(new Error(message, { cause }), { errno: '53300' }))
    reserved.then(connection => connection.release()).catch(() => {})
  }
  return withTimeout(Promise.race([reserved, late.promise]), giveUp, RESERVE_TIMEOUT * 1_000)
}

/**
 * Reserves a pooled connection on which `first` succeeds, and returns the connection with the result of
 * `first`. Tries at most `pooled` + 1 connections. If all `pooled` connections are dead, the pool opens a new
 * connection for the last attempt.
 */
export const reserve = async <T>(
  pool: SQL,
  pooled: number,
  first: (connection: ReservedSQL) => Promise<T>,
): Promise<{ connection: ReservedSQL; value: T }> => {
  for (let dead = 0; ; dead++) {
    const connection = await reserveInTime(pool)
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
  /** Host and database for messages, without user or password. */
  where: string
}

/**
 * Parses GATEHOUSE_DATABASE_URL.
 *
 * @throws StorageError for a text that is not a PostgreSQL URL. The message of the error does not contain the
 *   password
 */
export const parseUrl = (text: string): Parsed => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const database = databaseOf(text)
  if (!url || !database)
    throw new StorageError(
      'GATEHOUSE_DATABASE_URL: must be postgres://user:password@host:port/database. Unset it to use SQLite.',
      2,
    )
  const isLocal =
    /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|)$/.test(url.hostname) || url.searchParams.has('path')
  return {
    url: text,
    database,
    // For a server on another machine, TLS is used if the server supports it. PostgreSQL's own tools do the
    // same. `?sslmode=verify-full` requires TLS and a valid certificate.
    tls: isLocal || url.searchParams.has('sslmode') ? undefined : 'prefer',
    where: `PostgreSQL at ${url.host || 'its socket'}, database ${database}`,
  }
}

/**
 * Returns a pool of at most `max` connections. Each connection is opened at its first use and gets the
 * session `parameters`.
 */
export const connectTo = (
  { url, database, tls }: Parsed,
  max: number,
  parameters: Record<string, string | number> = {},
): SQL => {
  const pool = new SQL({
    url,
    database,
    ...(tls && { tls }),
    max,
    connectionTimeout: CONNECT_TIMEOUT,
    onclose: error => void (error && refusals.set(pool, { error, at: performance.now() })),
    connection: {
      application_name: 'gatehouse',
      client_min_messages: MESSAGES,
      // Bun reads no other format, and the copy to the other engine writes this one.
      bytea_output: 'hex',
      statement_timeout: STATEMENT_TIMEOUT,
      // PostgreSQL ends a transaction that is idle for a minute, because the transaction can hold locks.
      idle_in_transaction_session_timeout: 60_000,
      // With keepalives PostgreSQL notices within a minute that the machine of a copy is gone, and releases
      // the locks of that copy.
      tcp_keepalives_idle: 20,
      tcp_keepalives_interval: 10,
      tcp_keepalives_count: 3,
      ...parameters,
    },
  })
  return pool
}

const reasons: Record<string, string> = {
  '25006': 'the server is a standby or read-only at present',
  '28P01': 'the password is not accepted',
  '28000': 'pg_hba.conf does not allow this user to connect from here',
  '3D000': 'the database does not exist; create it with createdb',
  '42501': 'permission denied; the user must own the database or its schema, and the tables',
  '53300': 'the server has no free connection (max_connections)',
  '55000': 'the database does not accept connections at present',
  '55P03': 'the database is locked; a restore or migrate-to may be running',
  '57014': 'no answer in time; a restore or copy may be running',
  '57P01': 'the server ended the connection; it may be restarting',
  '57P02': 'the server ended the connection; it may be restarting',
  '57P03': 'the server is starting up or shutting down',
  ERR_POSTGRES_CONNECTION_REFUSED: 'no server answers at this address',
  ERR_POSTGRES_CONNECTION_TIMEOUT: 'no server answers at this address',
  ERR_POSTGRES_TLS_NOT_AVAILABLE: 'the server does not support TLS, which sslmode requires',
}
const WITHOUT_TLS = `${reasons['28000']} without TLS; for TLS add ?sslmode=require to the URL`
const POOLER = 'this is a pooler that refuses or drops session parameters; connect to PostgreSQL itself'
/**
 * Codes of further conditions that may be temporary. For these, and when the connection is lost, the command
 * exits with 75.
 */
const passing = /^(25006|40001|40P01|53[23]00|55000|55P03|57014)$/

/**
 * Matches code and message of refusals that last, although their codes also mean a lost connection: a dropped
 * database, and two of the refusals for which PgBouncer uses 08P01.
 */
const lasting = /^(57P04 |08P01 (unsupported startup parameter|no such database))/

/** Returns the error for the command line. Its message is one line and contains no user name or password. */
export const refusal = (error: unknown, where: string): StorageError => {
  if (error instanceof StorageError) return error
  const codes = ['errno', 'code'].map(name => String(Reflect.get(Object(error), name)))
  const known = codes.find(code => Object.hasOwn(reasons, code))
  const message = error instanceof Error ? error.message : `${error}`
  // PostgreSQL 13 and earlier say `SSL off`.
  const isPlain = /pg_hba\.conf .*, (no encryption|SSL off)$/.test(message)
  const named = isPlain ? WITHOUT_TLS : known ? reasons[known] : message
  const reason = /^unsupported startup parameter/.test(message) ? POOLER : named
  const lasts = codes.some(code => lasting.test(`${code} ${message}`))
  const isPassing = !lasts && (isLost(error) || codes.some(code => passing.test(code)))
  return new StorageError(`${where}: ${reason}.`, isPassing ? 75 : 78)
}

/**
 * Checks the session parameters, and the server's version and encoding. PgBouncer drops the parameters that
 * its `ignore_startup_parameters` names. Only the encoding UTF-8 can store every text.
 *
 * @throws StorageError when `connectTo` has set no parameters, or the version or encoding is not supported
 */
export const requireServer = async (sql: SQL, where: string): Promise<void> => {
  const [parameter] = await sql.unsafe('SHOW client_min_messages')
  if (parameter.client_min_messages !== MESSAGES) throw new StorageError(`${where}: ${POOLER}.`)
  const [row] = await sql.unsafe('SHOW server_version_num')
  const version = Math.floor(Number(row.server_version_num) / 10_000)
  if (version < MIN_VERSION)
    throw new StorageError(
      `${where}: PostgreSQL ${MIN_VERSION} or newer is required; the server has version ${version}.`,
    )
  const [encoding] = await sql.unsafe('SHOW server_encoding')
  if (encoding.server_encoding !== 'UTF8')
    throw new StorageError(
      `${where}: the encoding must be UTF8, not ${encoding.server_encoding}; create the database with UTF8.`,
    )
}
