import type { Database } from 'bun:sqlite'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }

/**
 * Bytes of a page, for files made anew. A commit changes many pages and little of each, and whole pages are what it writes:
 * half of SQLite's usual 4096 make a third less to write, and an eighth less work.
 */
export const PAGE = 2048
/** Pages in the log from which it is copied into the database: 32 MiB, half of what it may grow to. */
const LIMIT = 16_384
/** Commits between two looks at the log: SQLite before 3.51, as macOS brings it, copies the log to answer. */
const LOOK = 8

const [source = ''] = Object.values(embed('src/storage/sqlite', ['checkpoint-worker.ts']))

/**
 * Copies the log into the database from a thread, where SQLite's automatic checkpoint makes some unlucky commit pay.
 * Under constant writes a copy is never complete, and only a complete one lets the log begin anew: the rest is copied
 * while writes wait for some milliseconds (`pause`). A log that is overwritten in place costs half of one that grows.
 */
export const checkpointer = (db: Database) => {
  db.run('PRAGMA wal_autocheckpoint = 0')
  db.run(`PRAGMA journal_size_limit = ${LIMIT * PAGE}`)
  const state = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  /** Pages in the log, and how many of them the database has. */
  const look = (): [log: number, copied: number] => {
    try {
      const [, log, copied] = state.values()[0] as [busy: number, log: number, copied: number]
      return [log, copied]
    } catch {
      return [0, 0]
    }
  }
  let worker: Worker | undefined
  let commits = 0
  let limit = LIMIT
  let running: PromiseWithResolvers<void> | undefined
  let paused = false

  const answered = (): void => {
    const [log, copied] = look()
    if (copied < log && !paused) {
      paused = true
      worker?.postMessage(db.filename)
      return
    }
    // A log that a long read of another process keeps is tried again when it has grown by as much again.
    limit = copied < log ? log + LIMIT : LIMIT
    paused = false
    running?.resolve()
    running = undefined
  }

  const start = (): Worker => {
    const url = URL.createObjectURL(new Blob([source], { type: 'application/typescript' }))
    const thread = new Worker(url, { ref: false })
    thread.onmessage = answered
    // A thread that could not start or died is replaced in the next round.
    thread.onerror = event => {
      event.preventDefault()
      worker = undefined
      paused = true
      answered()
    }
    return thread
  }

  const copyIfLong = (): void => {
    if (running || look()[0] < limit) return
    running = Promise.withResolvers()
    worker ??= start()
    worker.postMessage(db.filename)
  }

  return {
    /** To be awaited before a transaction begins. */
    pause: (): Promise<void> | undefined => (paused ? running?.promise : undefined),
    committed: (): void => {
      if (++commits % LOOK === 0) copyIfLong()
    },
    /** Copies the log if it is long; settles when it is not being copied. */
    calm: async (): Promise<void> => {
      copyIfLong()
      await running?.promise
    },
    close: async (): Promise<void> => {
      await running?.promise
      worker?.terminate()
      state.finalize()
      db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    },
  }
}
