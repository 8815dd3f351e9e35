import type { Database } from 'bun:sqlite'
import type { CommitMetrics } from '#src/storage/commit-metrics.ts'
import { isBusy, isStorageFailure, unavailable } from '#src/storage/errors.ts'
import type { Queries, Topic, Transaction } from '#src/storage/store.ts'

/** Bodies in one transaction at most: bounds how long the event loop is held. */
const BATCH = 64
/** How long BEGIN is tried again while another process writes, and the longest pause between two tries, ms. */
const PATIENCE = 5_000
const PAUSE = 20

interface Waiting {
  body: (tx: Transaction) => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
}

interface Hooks {
  /** Holds back the next transaction. */
  pause(): Promise<void> | undefined
  /** After a commit, before its writers hear of it. */
  committed(topics: ReadonlySet<Topic>): void
  /** After a failed one. */
  failed(): void
  metrics: CommitMetrics
}

const sleep = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))
const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** The one transaction of the connection, whose bodies stand in a savepoint each. */
const openTransaction = (db: Database, queries: Queries) => {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const rollback = db.prepare('ROLLBACK')
  const savepoint = db.prepare('SAVEPOINT body')
  const release = db.prepare('RELEASE body')
  const undo = db.prepare('ROLLBACK TO body')

  let changed = new Set<Topic>()
  let effects: (() => void)[] = []
  const tx: Transaction = Object.assign(queries, {
    changed: (topic: Topic) => void changed.add(topic),
    after: (effect: () => void) => void effects.push(effect),
    later: (statement: Promise<unknown>) => statement,
    nested: async <T>(body: () => Promise<T>): Promise<T> => {
      db.run('SAVEPOINT nested')
      const before = { changed: new Set(changed), effects: effects.length }
      try {
        return await body()
      } catch (error) {
        if (db.inTransaction) db.run('ROLLBACK TO nested')
        changed = before.changed
        effects.length = before.effects
        throw error
      } finally {
        if (db.inTransaction) db.run('RELEASE nested')
      }
    },
  })

  const beginPatiently = async (): Promise<void> => {
    for (let waited = 0, pause = 1; ; waited += pause, pause = Math.min(pause * 2, PAUSE)) {
      try {
        return void begin.run()
      } catch (error) {
        if (!isBusy(error) || waited >= PATIENCE) throw error
      }
      await sleep(pause)
    }
  }

  /** Runs one body in its savepoint; gives how to answer it. Throws when the transaction is lost. */
  const runBody = async ({ body, resolve, reject }: Waiting, topics: Set<Topic>): Promise<() => void> => {
    changed = new Set()
    effects = []
    savepoint.run()
    try {
      const value = await body(tx)
      release.run()
      for (const topic of changed) topics.add(topic)
      const done = effects
      return () => {
        for (const effect of done) effect()
        resolve(value)
      }
    } catch (error) {
      // A full disk ends the whole transaction, released savepoints included.
      if (!db.inTransaction) throw error
      undo.run()
      release.run()
      return () => reject(isStorageFailure(error) ? unavailable(error) : error)
    }
  }

  return {
    begin: beginPatiently,
    runBody,
    commit: () => void commit.run(),
    rollback: (): void => {
      if (db.inTransaction) rollback.run()
    },
    finalize: (): void => {
      for (const statement of [begin, commit, rollback, savepoint, release, undo]) statement.finalize()
    },
  }
}

/**
 * Group commit: writes queue, one BEGIN IMMEDIATE … COMMIT carries all that wait, each in a savepoint of its own, and
 * the answers go out after the COMMIT: the disk is waited for once. A batch begins when a turn of the event loop has
 * brought no further write: requests that arrive together share it, a lone one waits some microseconds.
 */
export const groupCommit = (db: Database, queries: Queries, hooks: Hooks) => {
  const transaction = openTransaction(db, queries)
  const { queued, committed } = hooks.metrics
  let open = true
  let queue: Waiting[] = []
  let draining: Promise<void> | undefined

  const runBatch = async (batch: Waiting[]): Promise<void> => {
    const topics = new Set<Topic>()
    const answers: (() => void)[] = []
    try {
      await transaction.begin()
      for (const waiting of batch) answers.push(await transaction.runBody(waiting, topics))
      transaction.commit()
    } catch (error) {
      transaction.rollback()
      hooks.failed()
      committed('failed')
      for (const { reject } of batch) reject(unavailable(error))
      return
    }
    committed('done')
    hooks.committed(topics)
    for (const answer of answers) answer()
  }

  /** Turns of the event loop until one brings nothing more. */
  const gather = async (): Promise<void> => {
    for (let seen = 0; seen < queue.length && seen < BATCH; ) {
      seen = queue.length
      await nextTurn()
    }
  }

  const drain = async (): Promise<void> => {
    while (queue.length > 0) {
      await gather()
      await hooks.pause()
      const batch = queue.slice(0, BATCH)
      queue = queue.slice(BATCH)
      await runBatch(batch)
      queued(-batch.length)
    }
    draining = undefined
  }

  return {
    write: <T>(body: (tx: Transaction) => Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        if (!open) return reject(unavailable(new Error('The store is closed.')))
        queue.push({ body, resolve: resolve as (value: unknown) => void, reject })
        queued(1)
        draining ??= drain()
      }),
    /** Refuses new writes; settles once those that wait are answered. */
    close: async (): Promise<void> => {
      open = false
      await draining
      transaction.finalize()
    },
  }
}
