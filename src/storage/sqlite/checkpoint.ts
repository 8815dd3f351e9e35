import type { Database, Statement } from 'bun:sqlite'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import { PAGE } from './apply-migrations.ts'

/**
 * Number of pages in the log at which a checkpoint starts (32 MiB). With a smaller limit, pages that change
 * often would be copied more often.
 */
const LIMIT = 16_384
/**
 * Number of pages by which the log may grow during a checkpoint (16 MiB). After this growth writes wait for
 * the checkpoint, so that the log stays below 64 MiB even if the thread gets little processor time.
 */
const GROWTH = 8_192
/**
 * Number of commits between two checks of the log's length. A check after each commit would be slow before
 * SQLite 3.51, for example with the SQLite of macOS, because each check runs a checkpoint.
 */
const CHECK_INTERVAL = 8

const [source = ''] = Object.values(embed('src/storage/sqlite', ['checkpoint-worker.ts']))

/** Returns the number of pages in the log and the number of pages that are already copied. */
const logStateOf = (state: Statement): [log: number, copied: number] => {
  try {
    const [, log, copied] = state.values()[0] as [busy: number, log: number, copied: number]
    return [log, copied]
  } catch {
    return [0, 0]
  }
}

/**
 * Copies the log into the database in a thread, because SQLite's automatic checkpoint would delay a commit.
 * Only after a complete checkpoint do writes overwrite the log from its start, which takes half as long as
 * growing it. Under constant writes a checkpoint would never complete. The last part of the log is therefore
 * copied while writes pause for some milliseconds (`pause`).
 */
export const checkpointer = (db: Database) => {
  db.run('PRAGMA wal_autocheckpoint = 0')
  db.run(`PRAGMA journal_size_limit = ${LIMIT * PAGE}`)
  const state = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  const logState = () => logStateOf(state)
  let worker: Worker | undefined
  let commits = 0
  let limit = LIMIT
  let running: PromiseWithResolvers<void> | undefined
  let paused = false
  let last = false

  const answered = (): void => {
    const [log, copied] = logState()
    if (copied < log && !last) {
      last = true
      paused = true
      worker?.postMessage(db.filename)
      return
    }
    // A long read of another process can prevent a complete checkpoint. In this case the next attempt follows
    // when the log has grown by another LIMIT pages.
    limit = copied < log ? log + LIMIT : LIMIT
    last = false
    paused = false
    running?.resolve()
    running = undefined
  }

  const start = (): Worker => {
    const url = URL.createObjectURL(new Blob([source], { type: 'application/typescript' }))
    const thread = new Worker(url, { ref: false })
    thread.onmessage = answered
    // A thread that has failed to start or has ended with an error is replaced at the next checkpoint.
    thread.onerror = event => {
      event.preventDefault()
      worker = undefined
      last = true
      answered()
    }
    return thread
  }

  const copyIfLong = (): void => {
    const [log] = logState()
    if (running) paused ||= log >= limit + GROWTH
    if (running || log < limit) return
    running = Promise.withResolvers()
    worker ??= start()
    worker.postMessage(db.filename)
  }

  return {
    /**
     * Returns a promise that a write must await before its transaction begins. Returns undefined when writes
     * need not pause.
     */
    pause: (): Promise<void> | undefined => (paused ? running?.promise : undefined),
    committed: (): void => {
      if (++commits % CHECK_INTERVAL === 0) copyIfLong()
    },
    /** Starts a checkpoint if the log is long. Waits for the end of a running checkpoint. */
    idle: async (): Promise<void> => {
      copyIfLong()
      await running?.promise
    },
    close: async (): Promise<void> => {
      await running?.promise
      worker?.terminate()
      state.finalize()
      // PASSIVE copies most of the log while other processes write, for example the server while a command
      // closes its store. TRUNCATE makes other processes wait, but has little left to copy.
      try {
        for (const mode of ['PASSIVE', 'TRUNCATE']) db.run(`PRAGMA wal_checkpoint(${mode})`)
      } catch {
        // The disk is full or faulty. The log stays, and the next start reads it.
      }
    },
  }
}
