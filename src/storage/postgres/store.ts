import { randomBytes } from 'node:crypto'
import type { ReservedSQL, SQL } from 'bun'
import { sql } from 'drizzle-orm'
import { openMetrics } from '#src/lib/metrics.ts'
import { commitMetrics } from '#src/storage/commit-metrics.ts'
import { isLost, isStorageFailure, unavailable } from '#src/storage/errors.ts'
import type { Store, Topic } from '#src/storage/store.ts'
import { postgresChanges } from './changes.ts'
import { answered, connectTo, parseUrl, refusal, requireServer, reserve, STALL } from './connect.ts'
import { migratePostgres } from './migrate.ts'
import { type Answer, postgresQueries } from './queries.ts'
import { postgresWriter } from './writer.ts'

interface PostgresOptions {
  url: string
  /** false: a database that waits for migrations is an error. */
  migrate?: boolean
  /** Connections for reads, and as many for writes; one more listens. */
  connections?: number
  /** How long an answer may take, ms, before its connection is given up. */
  stall?: number
}

/** Per kind. More would not make a database of a few cores faster, and a server has a hundred by default. */
const CONNECTIONS = 8
/** How long a read waits for its turn and its answer at /readyz, ms. */
const READY = 2_000
/** How long and how often another copy's turn is waited for, ms. */
const TURN = 60_000
const LOOK = 50

/**
 * Small tables would be read from end to end, and a serializable transaction that has done so conflicts with every write
 * to them. All queries of ours have an index.
 */
const PLANNING = { enable_seqscan: 'off', jit: 'off' }

const prepare = async (options: PostgresOptions): Promise<ReturnType<typeof parseUrl>> => {
  const parsed = parseUrl(options.url)
  const sql = connectTo(parsed, 1, { statement_timeout: 0 })
  try {
    await requireServer(sql, parsed.where)
    await migratePostgres(sql, parsed.where, { apply: options.migrate ?? true })
    // Held by a restore and by migrate-to until they are done.
    await sql.unsafe(`SET lock_timeout = ${options.stall ?? STALL}; SELECT 1 FROM settings LIMIT 1`)
    return parsed
  } catch (error) {
    throw refusal(error, parsed.where)
  } finally {
    await sql.close()
  }
}

/**
 * A PostgreSQL database as store, its tables made and migrated when need be. Several copies of the server may serve one.
 * Throws StorageError when it cannot be reached, is of another program or newer than this version.
 */
export const openPostgres = async (options: PostgresOptions): Promise<Store> => {
  const parsed = await prepare(options)
  const { connections = CONNECTIONS, stall = STALL } = options
  let pool = connectTo(parsed, connections, PLANNING)
  const writers = connectTo(parsed, connections, PLANNING)

  // Which of its connections is dead, a pool does not say: all of them go, and what they were asked is asked once more.
  const renew = (dead: SQL) => {
    if (pool === dead) pool = connectTo(parsed, connections, PLANNING)
    dead.close({ timeout: 0 }).catch(() => {})
  }
  const ask = async (text: string, values: unknown[]): Promise<Answer> => {
    const asked = pool
    return (await answered(asked.unsafe(text, values).values(), () => renew(asked), stall)) as Answer
  }
  const reads = postgresQueries(async (text, values) => {
    try {
      // What was asked over a connection that is gone may be asked again: it only reads.
      return await ask(text, values).catch(error => {
        if (!isLost(error)) throw error
        return ask(text, values)
      })
    } catch (error) {
      throw isStorageFailure(error) ? unavailable(error) : error
    }
  })

  const listeners: ((topics?: ReadonlySet<Topic>) => void)[] = []
  const tell = (topics?: ReadonlySet<Topic>) => {
    for (const listener of listeners) listener(topics)
  }
  const changes = await postgresChanges(() => connectTo(parsed, 1), randomBytes(8).toString('hex'), tell)
  const metrics = openMetrics()
  const { write, rehearse, close } = postgresWriter(writers, connections, {
    stall,
    notice: changes.notice,
    done: tell,
    metrics: commitMetrics(metrics),
  })

  return {
    engine: 'postgres',
    metrics,
    caches: new Map(),
    read: body => body(reads),
    write,
    // Its server puts away what was written without holding anybody up.
    calm: async () => {},
    rehearse,
    exclusively: (name, body, wait) => exclusively(pool, connections, name, body, wait === 'wait' ? TURN : 0),
    onChange: listener => void listeners.push(listener),
    ready: async () => {
      const late = Promise.withResolvers<false>()
      const timer = setTimeout(late.resolve, READY, false)
      const looked = reads
        .select({ writable: sql<boolean>`NOT pg_is_in_recovery()` })
        .from(reads.tables.settings)
        .limit(1)
        .then(
          rows => rows.every(({ writable }) => writable),
          () => false,
        )
      const ready = await Promise.race([looked, late.promise])
      clearTimeout(timer)
      return ready
    },
    close: async () => {
      await close()
      await changes.close()
      await Promise.all([pool.close({ timeout: 1 }), writers.close({ timeout: 1 })])
    },
  }
}

const KEY = `hashtextextended(current_schema() || ' ' || $1, 0)`

const lock = async (connection: ReservedSQL, name: string): Promise<boolean> => {
  const asked = connection.unsafe(`SELECT pg_try_advisory_lock(${KEY}) AS taken`, [name])
  const [row] = await answered(asked, () => connection.close(), STALL)
  return row.taken
}

/** An advisory lock of the session: it goes with the connection, however that ends. */
const exclusively = async <T>(
  pool: SQL,
  pooled: number,
  name: string,
  body: () => Promise<T>,
  patience: number,
): Promise<T | undefined> => {
  const refuse = (error: unknown): never => {
    throw unavailable(error)
  }
  const reserved = await reserve(pool, pooled, connection => lock(connection, name)).catch(refuse)
  const { connection } = reserved
  let taken = reserved.value
  try {
    for (let waited = 0; !taken; waited += LOOK) {
      if (waited >= patience) return undefined
      await Bun.sleep(LOOK)
      taken = await lock(connection, name).catch(refuse)
    }
    try {
      return await body()
    } finally {
      // A lock that cannot be given back goes with its connection.
      await connection.unsafe(`SELECT pg_advisory_unlock(${KEY})`, [name]).catch(() => connection.close())
    }
  } finally {
    await connection.release()
  }
}
