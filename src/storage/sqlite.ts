import { Database } from 'bun:sqlite'
import { unavailable } from './errors.ts'
import { groupCommit } from './group-commit.ts'
import { migrate } from './migrate.ts'
import { sqliteQueries } from './sqlite-queries.ts'
import type { Store, Topic } from './store.ts'

interface SqliteOptions {
  path: string
  /** false: a database that waits for migrations is an error. */
  migrate?: boolean
}

/** How often another process's commits are looked for, ms. */
const WATCH = 250

const open = (path: string, options: { readonly?: boolean; create?: boolean }): Database => {
  const db = new Database(path, options)
  db.run('PRAGMA busy_timeout = 40')
  return db
}

/** Opens a database file, made and migrated when need be. Throws StorageError with one line for people. */
export const openSqlite = async (options: SqliteOptions): Promise<Store> => {
  const writer = open(options.path, { create: true })
  writer.run('PRAGMA journal_mode = WAL')
  writer.run('PRAGMA synchronous = FULL')
  writer.run('PRAGMA foreign_keys = ON')
  migrate(writer, undefined, options.migrate)
  const reader = open(options.path, { readonly: true })

  const listeners: ((topics?: ReadonlySet<Topic>) => void)[] = []
  const tell = (topics?: ReadonlySet<Topic>) => {
    for (const listener of listeners) listener(topics)
  }

  const reads = sqliteQueries(reader, () => {})
  // A statement outside a transaction would be committed at once, alone: after a lost transaction, or after the body.
  const writes = sqliteQueries(writer, () => {
    if (!writer.inTransaction) throw unavailable(new Error('The transaction is over.'))
  })
  const { write, idle } = groupCommit(writer, writes, topics => {
    if (topics.size > 0) tell(topics)
  })

  // It moves with the commits of other connections alone.
  const dataVersion = writer.prepare('PRAGMA data_version')
  const version = () => dataVersion.values()[0]?.[0]
  let seen = version()
  const watch = setInterval(() => {
    const now = version()
    if (now !== seen) tell()
    seen = now
  }, WATCH)
  watch.unref()

  return {
    engine: 'sqlite',
    read: body => body(reads),
    write,
    onChange: listener => void listeners.push(listener),
    ready: async () => true,
    close: async () => {
      clearInterval(watch)
      await idle()
      writer.run('PRAGMA wal_checkpoint(TRUNCATE)')
      reads.finalize()
      writes.finalize()
      reader.close()
      writer.close()
    },
  }
}
