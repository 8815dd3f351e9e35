import { Database } from 'bun:sqlite'
import { sql } from 'drizzle-orm'
import { openMetrics } from '#src/lib/metrics.ts'
import { commitMetrics } from '#src/storage/commit-metrics.ts'
import { failureText, StorageError, unavailable } from '#src/storage/errors.ts'
import { openProbe } from '#src/storage/probe.ts'
import {
  type BeforeUpgrade,
  preparedForStart,
  type RehearsedUsers,
  type Store,
  type Topic,
  type Transaction,
} from '#src/storage/store.ts'
import { PAGE } from './apply-migrations.ts'
import { checkpointer } from './checkpoint.ts'
import { groupCommit } from './group-commit.ts'
import { migrate, needsUpgrade } from './migrate.ts'
import { sqliteQueries } from './queries.ts'
import { readConnection } from './reads.ts'
import { copyForRehearsal } from './rehearsal.ts'

/** Thrown to roll back a rehearsal. Contains the result of the rehearsal. */
class Rehearsed<T> extends Error {
  readonly value: T
  constructor(value: T) {
    super('rehearsed')
    this.value = value
  }
}

/** Runs a write on a copy in memory, rolls the write back and returns its result. */
const rehearsed = async <T>(
  path: string,
  body: (tx: Transaction) => Promise<T>,
  users: RehearsedUsers,
): Promise<T> => {
  using db = copyForRehearsal(path, users)
  const queries = sqliteQueries(db, () => {})
  const { write, close } = groupCommit(db, queries, {
    metrics: commitMetrics(openMetrics()),
    pause: () => undefined,
    committed: () => {},
  })
  try {
    return await write(async tx => {
      throw new Rehearsed(await body(tx))
    })
  } catch (error) {
    if (error instanceof Rehearsed) return error.value
    throw error
  } finally {
    await close()
    queries.finalize()
  }
}

interface SqliteOptions {
  path: string
  /** If false, pending migrations are not applied but cause an error. */
  migrate?: boolean
  beforeUpgrade?: BeforeUpgrade
  /** If false, commits do not wait for the disk, and a power failure can destroy the data. */
  durable?: boolean
  /**
   * Database (`imageOf`) that is written into an empty file when `durable` is false. Default: a database
   * without rows.
   */
  image?: string | undefined
  /** Maximum pages of the file, to simulate a full disk in tests. */
  max_pages?: number
}

/**
 * Page cache per connection in KiB: eight times SQLite's default. With this size the pages that most
 * statements read, such as the inner pages of indexes, stay in memory.
 */
const CACHE = 16_384
/**
 * Interval in ms at which commits of other processes are detected. It is so short that a change by a command
 * seems immediate. Each check reads only one number.
 */
const WATCH_INTERVAL = 250

const probeRead = preparedForStart('probe', (q, { settings }) =>
  q.select({ one: sql`1` }).from(settings).limit(1),
)

const openWriter = async (options: SqliteOptions): Promise<Database> => {
  const { path, migrate: apply, beforeUpgrade, durable = true, max_pages } = options
  let db: Database | undefined
  try {
    db = new Database(path, { create: true })
    // During the start a wait for another process blocks the event loop, which does no harm.
    db.run('PRAGMA busy_timeout = 5000')
    db.run('PRAGMA trusted_schema = OFF')
    if (!durable) db.run('PRAGMA synchronous = OFF')
    db.run(`PRAGMA page_size = ${PAGE}`)
    if (apply !== false && beforeUpgrade && needsUpgrade(db)) {
      const queries = sqliteQueries(db, () => {})
      await beforeUpgrade(queries).finally(queries.finalize)
    }
    migrate(db, undefined, apply)
    db.run('PRAGMA journal_mode = WAL')
    // NORMAL syncs the log only at checkpoints, so a power failure would lose commits whose answers were
    // sent.
    if (durable) db.run('PRAGMA synchronous = FULL')
    db.run('PRAGMA foreign_keys = ON')
    db.run(`PRAGMA cache_size = -${CACHE}`)
    // SQLite keeps copies of the pages that a savepoint changes. By default it would move copies of more than
    // 64 KiB to a file.
    db.run('PRAGMA temp_store = MEMORY')
    if (max_pages) db.run(`PRAGMA max_page_count = ${max_pages}`)
    // From here on, a wait must not block the event loop, so group-commit.ts retries instead.
    db.run('PRAGMA busy_timeout = 0')
    return db
  } catch (error) {
    db?.close()
    throw unusable(path, error)
  }
}

const openReader = (path: string): Database => {
  try {
    const db = new Database(path, { readonly: true })
    // A lock rarely blocks a read. The timeout is short, because a wait blocks the event loop.
    db.run('PRAGMA busy_timeout = 40')
    db.run('PRAGMA trusted_schema = OFF')
    db.run(`PRAGMA cache_size = -${CACHE}`)
    return db
  } catch (error) {
    throw unusable(path, error)
  }
}

const unusable = (path: string, error: unknown): StorageError =>
  error instanceof StorageError
    ? error
    : new StorageError(`${path} cannot be used as a database: ${failureText(error)}.`)

/** Calls `notify` after commits of other processes. */
const watchOthers = (db: Database, notify: () => void) => {
  // Only commits of other connections change this version:
  // https://www.sqlite.org/pragma.html#pragma_data_version
  const dataVersion = db.prepare('PRAGMA data_version')
  const version = () => {
    try {
      return dataVersion.values()[0]?.[0]
    } catch {
      return undefined
    }
  }
  let seen = version()
  const timer = setInterval(() => {
    const now = version()
    if (now !== seen) notify()
    seen = now
  }, WATCH_INTERVAL)
  timer.unref()
  return { stop: () => clearInterval(timer), finalize: () => dataVersion.finalize() }
}

/**
 * Opens a database file as a store. Creates a missing file. Applies pending migrations, except when `migrate`
 * is false.
 *
 * @throws StorageError when the file belongs to another program, is damaged, comes from a newer version or
 *   cannot be accessed. If `migrate` is false, also when migrations are pending
 */
export const openSqlite = async (options: SqliteOptions): Promise<Store> => {
  if (options.durable === false)
    (await import('./temporary.ts')).prepareTemporary(options.path, options.image)
  const writer = await openWriter(options)
  const reader = readConnection(writer, () => openReader(options.path))
  const reads = sqliteQueries(reader, () => {})
  // A statement is refused while no transaction is open, because SQLite would commit it at once. This happens
  // when the transaction was lost, or when a body that has returned still runs a statement.
  const writes = sqliteQueries(writer, () => {
    if (!writer.inTransaction) throw unavailable(new Error('There is no transaction.'))
  })

  const listeners: ((topics?: ReadonlySet<Topic>) => void)[] = []
  const notify = (topics?: ReadonlySet<Topic>) => {
    for (const listener of listeners) listener(topics)
  }
  const checkpoints = checkpointer(writer)
  const metrics = openMetrics()
  const probe = openProbe('sqlite', commitMetrics(metrics))
  const { write, leaveTurn, close } = groupCommit(writer, writes, {
    metrics: probe.metrics,
    pause: checkpoints.pause,
    committed: topics => {
      checkpoints.committed()
      if (topics.size > 0) notify(topics)
    },
  })

  const watch = watchOthers(writer, notify)

  return {
    engine: 'sqlite',
    metrics,
    caches: new Map(),
    read: body => body(reads),
    write,
    drained: async () => {
      await checkpoints.idle()
      await leaveTurn()
    },
    rehearse: (body, users) => rehearsed(options.path, body, users),
    // The instance lock (lock.ts) already excludes other servers.
    exclusively: (_, body) => body(),
    onChange: listener => void listeners.push(listener),
    ready: async () => {
      try {
        await probeRead(reads, {})
        await probe.requireWrites(write)
        return true
      } catch {
        return false
      }
    },
    close: async () => {
      watch.stop()
      await close()
      await checkpoints.close()
      watch.finalize()
      for (const queries of [reads, writes]) queries.finalize()
      for (const db of [reader, writer]) db.close()
    },
  }
}
