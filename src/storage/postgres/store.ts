import type { ReservedSQL, SQL } from 'bun'
import { sql } from 'drizzle-orm'
import { openMetrics } from '#src/lib/metrics.ts'
import { commitMetrics } from '#src/storage/commit-metrics.ts'
import { isLost, isStorageFailure, unavailable } from '#src/storage/errors.ts'
import { openProbe } from '#src/storage/probe.ts'
import type { BeforeUpgrade, Queries, Store, Topic } from '#src/storage/store.ts'
import { postgresChanges } from './changes.ts'
import {
  connectTo,
  parseUrl,
  refusal,
  requireServer,
  reserve,
  STALL_TIMEOUT,
  withTimeout,
} from './connect.ts'
import { migratePostgres } from './migrate.ts'
import { postgresQueries, type QueryResult } from './queries.ts'
import { postgresWriter } from './writer.ts'

interface PostgresOptions {
  url: string
  /** If false, pending migrations are not applied but cause an error. */
  migrate?: boolean
  beforeUpgrade?: BeforeUpgrade | undefined
  /**
   * Number of connections for reads. Writes have the same number of connections. One further connection
   * receives the notices of other copies.
   */
  connections?: number
  /** Time in ms without an answer after which a connection is closed. */
  stall?: number
}

/**
 * Number of connections for reads. Writes have the same number. More connections would not speed up a
 * database with a few cores, and PostgreSQL allows 100 by default.
 */
const CONNECTIONS = 8
/** Timeout in ms of the read and the write for /readyz. Load balancers wait for a few seconds. */
const READY_TIMEOUT = 2_000
/**
 * Timeout and poll interval, in ms, for a lock that another process on this database holds. A first start or
 * a seed holds the lock for seconds.
 */
const LOCK_TIMEOUT = 60_000
const LOCK_POLL = 50

/**
 * Settings of the planner. By default PostgreSQL scans small tables in full, and a serializable transaction
 * that scans a table conflicts with every write to this table. Scans are therefore off. The planner uses an
 * index instead, and every query has a suitable one. JIT is off, because it speeds up only long queries, and
 * the server's queries are short.
 */
const PLANNING = { enable_seqscan: 'off', jit: 'off' }

const refuse =
  (where: string) =>
  (error: unknown): never => {
    throw refusal(error, where)
  }

const prepare = async (options: PostgresOptions): Promise<ReturnType<typeof parseUrl>> => {
  const parsed = parseUrl(options.url)
  const sql = connectTo(parsed, 1, { statement_timeout: 0 })
  try {
    await requireServer(sql, parsed.where)
    const { migrate: apply, beforeUpgrade } = options
    await migratePostgres(sql, parsed.where, { apply, beforeUpgrade })
    // A restore or migrate-to locks this table until it is done. This SELECT waits for the end of the lock.
    await sql.unsafe(`SET lock_timeout = ${options.stall ?? STALL_TIMEOUT}; SELECT 1 FROM settings LIMIT 1`)
    return parsed
  } catch (error) {
    throw refusal(error, parsed.where)
  } finally {
    await sql.close()
  }
}

/**
 * Opens a PostgreSQL database as a store. Creates missing tables and applies pending migrations, except when
 * `migrate` is false. Several copies of the server can share the database.
 *
 * @throws StorageError when the URL is wrong, or when the server or the database cannot be used (see
 *   `refusal` and `migratePostgres`)
 */
export const openPostgres = async (options: PostgresOptions): Promise<Store> => {
  const parsed = await prepare(options)
  const { connections = CONNECTIONS, stall = STALL_TIMEOUT } = options
  let pool = connectTo(parsed, connections, PLANNING)
  const writers = connectTo(parsed, connections, PLANNING)

  // A pool does not say which of its connections is dead. All connections are therefore replaced, and their
  // queries run once more. `timeout` gives running queries this many seconds to end first.
  const renew = (dead: SQL, timeout = 0) => {
    if (pool === dead) pool = connectTo(parsed, connections, PLANNING)
    dead.close({ timeout }).catch(() => {})
  }
  const query = async (text: string, values: unknown[]): Promise<QueryResult> => {
    const current = pool
    return (await withTimeout(
      current.unsafe(text, values).values(),
      () => renew(current),
      stall,
    )) as QueryResult
  }
  const reads = postgresQueries(async (text, values) => {
    try {
      // A read stores nothing, so it can be repeated on another connection.
      return await query(text, values).catch(error => {
        if (!isLost(error)) throw error
        return query(text, values)
      })
    } catch (error) {
      throw isStorageFailure(error) ? unavailable(error) : error
    }
  })

  const listeners: ((topics?: ReadonlySet<Topic>) => void)[] = []
  const notify = (topics?: ReadonlySet<Topic>) => {
    for (const listener of listeners) listener(topics)
  }
  const changes = await postgresChanges(() => connectTo(parsed, 1), notify).catch(refuse(parsed.where))
  const metrics = openMetrics()
  const probe = openProbe('postgres', commitMetrics(metrics))
  const { write, rehearse, close } = postgresWriter(writers, connections, {
    stall,
    notice: changes.notice,
    done: notify,
    unsure: topics => {
      changes.unsure()
      notify(topics)
    },
    metrics: probe.metrics,
  })

  return {
    engine: 'postgres',
    metrics,
    caches: new Map(),
    read: body => body(reads),
    write,
    // On PostgreSQL earlier writes do not delay other writes, so there is nothing to wait for.
    drained: async () => {},
    rehearse,
    exclusively: (name, body, wait) =>
      exclusively(pool, connections, name, body, wait === 'wait' ? LOCK_TIMEOUT : 0),
    onChange: listener => void listeners.push(listener),
    ready: () =>
      isReady(reads, {
        requireWrites: () => probe.requireWrites(write),
        renew: () => renew(pool, READY_TIMEOUT / 1_000),
      }),
    close: async () => {
      await close()
      await changes.close()
      await Promise.all([pool.close({ timeout: 1 }), writers.close({ timeout: 1 })])
    },
  }
}

/**
 * Resolves to true when the database accepts writes and answers in time. When its transactions are read-only,
 * as on a standby, the next reads open new connections, because the address can now lead to another server.
 */
const isReady = async (
  reads: Queries,
  { requireWrites, renew }: { requireWrites(): Promise<void>; renew(): void },
): Promise<boolean> => {
  const late = Promise.withResolvers<false>()
  const timer = setTimeout(late.resolve, READY_TIMEOUT, false)
  const checked = reads
    .select({ writable: sql<boolean>`current_setting('transaction_read_only') = 'off'` })
    .from(reads.tables.settings)
    .limit(1)
    .then(rows => {
      const isWritable = rows.every(({ writable }) => writable)
      if (!isWritable) renew()
      return isWritable && requireWrites().then(() => true)
    })
    .catch(() => false)
  const ready = await Promise.race([checked, late.promise])
  clearTimeout(timer)
  return ready
}

const KEY = `hashtextextended(current_schema() || ' ' || $1, 0)`

const lock = async (connection: ReservedSQL, name: string): Promise<boolean> => {
  const answer = connection.unsafe(`SELECT pg_try_advisory_lock(${KEY}) AS taken`, [name])
  const [row] = await withTimeout(answer, () => connection.close(), STALL_TIMEOUT)
  return row.taken
}

/** Runs the body under an advisory lock. PostgreSQL releases the lock when the connection ends. */
const exclusively = async <T>(
  pool: SQL,
  pooled: number,
  name: string,
  body: () => Promise<T>,
  timeout: number,
): Promise<T | undefined> => {
  const refuse = (error: unknown): never => {
    throw unavailable(error)
  }
  const reserved = await reserve(pool, pooled, connection => lock(connection, name)).catch(refuse)
  const { connection } = reserved
  let taken = reserved.value
  try {
    for (let waited = 0; !taken; waited += LOCK_POLL) {
      if (waited >= timeout) return undefined
      await Bun.sleep(LOCK_POLL)
      taken = await lock(connection, name).catch(refuse)
    }
    try {
      return await body()
    } finally {
      // If the unlock fails, the connection is closed. This releases the lock.
      await connection.unsafe(`SELECT pg_advisory_unlock(${KEY})`, [name]).catch(() => connection.close())
    }
  } finally {
    await connection.release()
  }
}
