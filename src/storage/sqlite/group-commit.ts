import type { Database, Statement } from 'bun:sqlite'
import { othersRun } from '#src/lib/turn.ts'
import type { CommitMetrics } from '#src/storage/commit-metrics.ts'
import { isBusy, isStorageFailure, unavailable } from '#src/storage/errors.ts'
import type { Queries, Topic, Transaction } from '#src/storage/store.ts'
import { type Added, writeSums } from '#src/storage/sums.ts'

/**
 * Maximum number of bodies per transaction. It limits the time for which a transaction occupies the event
 * loop. More bodies would save little, because 64 bodies already share one sync.
 */
const BATCH = 64
/**
 * Time for retries of BEGIN while another process writes, and pause between two retries, in ms. A command on
 * the host writes for a few ms. A longer pause would add much to the wait.
 */
const BEGIN_TIMEOUT = 5_000
const BEGIN_PAUSE = 1
/**
 * Shortest and longest pause, in ms, between two writes of a job with many writes. Other processes can write
 * during the pause.
 */
const SHORTEST_TURN = 5
const LONGEST_TURN = 100

interface Waiting {
  body: (tx: Transaction) => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
}

interface Hooks {
  /** Returns a promise that delays the next transaction, or undefined. */
  pause(): Promise<void> | undefined
  /** Called after a commit, before its writers get their results. */
  committed(topics: ReadonlySet<Topic>): void
  metrics: CommitMetrics
}

const sleep = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

/** Begins a transaction when no other process writes. */
const beginPatiently = async (begin: Statement): Promise<void> => {
  const end = performance.now() + BEGIN_TIMEOUT
  for (;;) {
    try {
      return void begin.run()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw error
    }
    await sleep(BEGIN_PAUSE)
  }
}

/** Returns the transaction of the connection. Each body runs in its own savepoint. */
const openTransaction = (db: Database, queries: Queries) => {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const rollback = db.prepare('ROLLBACK')
  const savepoint = db.prepare('SAVEPOINT body')
  const release = db.prepare('RELEASE body')
  const undo = db.prepare('ROLLBACK TO body')

  let changed = new Set<Topic>()
  let effects: (() => void)[] = []
  let added: Added[] = []
  const tx: Transaction = Object.assign(queries, {
    changed: (topic: Topic) => void changed.add(topic),
    after: (effect: () => void) => void effects.push(effect),
    // A body runs only once.
    once: <T>(_: string, effect: () => T): T => effect(),
    later: (statement: Promise<unknown>) => statement as Promise<void>,
    add: (...call: Added) => void added.push(call),
    nested: async <T>(body: () => Promise<T>): Promise<T> => {
      db.run('SAVEPOINT nested')
      const before = { changed: new Set(changed), effects: effects.length, added: added.length }
      try {
        return await body()
      } catch (error) {
        if (db.inTransaction) db.run('ROLLBACK TO nested')
        changed = before.changed
        effects.length = before.effects
        added.length = before.added
        throw error
      } finally {
        if (db.inTransaction) db.run('RELEASE nested')
      }
    },
  })

  /**
   * Runs one body in its savepoint. Returns the function that gives the writer the result. Throws when the
   * whole transaction is lost.
   */
  const runBody = async (
    { body, resolve, reject }: Waiting,
    topics: Set<Topic>,
    sums: Added[],
  ): Promise<() => void> => {
    changed = new Set()
    effects = []
    added = []
    savepoint.run()
    try {
      const value = await body(tx)
      release.run()
      for (const topic of changed) topics.add(topic)
      sums.push(...added)
      const done = effects
      return () => {
        for (const effect of done) effect()
        resolve(value)
      }
    } catch (error) {
      // A full disk rolls back the whole transaction, including released savepoints.
      if (!db.inTransaction) throw error
      undo.run()
      release.run()
      return () => reject(isStorageFailure(error) ? unavailable(error) : error)
    }
  }

  return {
    begin: () => beginPatiently(begin),
    runBody,
    writeSums: (sums: readonly Added[]) => writeSums(tx, sums),
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
 * Group commit: one transaction (BEGIN IMMEDIATE … COMMIT) contains up to `BATCH` queued writes, each in its
 * own savepoint. The writes share one wait for the disk. The writers get their results after the COMMIT. The
 * transaction begins when the batch is full, or when one or two turns of the event loop have added no write.
 * Concurrent requests thus share a batch, and a single request waits only some microseconds.
 */
export const groupCommit = (db: Database, queries: Queries, hooks: Hooks) => {
  const transaction = openTransaction(db, queries)
  const { queued, committed } = hooks.metrics
  let open = true
  let queue: Waiting[] = []
  let draining: Promise<void> | undefined
  let took = 0
  /** Number of writes in the last batch. */
  let previous = 0

  const runBatch = async (batch: Waiting[]): Promise<void> => {
    const topics = new Set<Topic>()
    const answers: (() => void)[] = []
    const sums: Added[] = []
    let began = 0
    try {
      await transaction.begin()
      began = performance.now()
      for (const waiting of batch) answers.push(await transaction.runBody(waiting, topics, sums))
      await transaction.writeSums(sums)
      transaction.commit()
    } catch (error) {
      transaction.rollback()
      committed('failed')
      for (const { reject } of batch) reject(unavailable(error))
      return
    }
    took = performance.now() - began
    committed('done')
    hooks.committed(topics)
    for (const answer of answers) answer()
  }

  /**
   * Waits until the batch is full, or until a turn of the event loop adds no further write. While the queue
   * has fewer writes than the last batch had, a second turn must also add no write, because the clients of
   * the last batch have just got their answers and probably send their next requests now.
   */
  const gather = async (): Promise<void> => {
    for (let seen = 0; seen < queue.length && seen < BATCH; ) {
      seen = queue.length
      await othersRun()
      if (seen === queue.length && seen < previous) await othersRun()
    }
  }

  const drain = async (): Promise<void> => {
    while (queue.length > 0) {
      await gather()
      await hooks.pause()
      const batch = queue.slice(0, BATCH)
      queue = queue.slice(BATCH)
      previous = batch.length
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
    /**
     * Waits as long as the last transaction took, but at least 5 and at most 100 ms. Other processes poll for
     * the end of a transaction, and need this time to begin their own.
     */
    leaveTurn: (): Promise<void> => sleep(Math.min(Math.max(took, SHORTEST_TURN), LONGEST_TURN)),
    /** Refuses new writes and waits for queued writes. */
    close: async (): Promise<void> => {
      open = false
      await draining
      transaction.finalize()
    },
  }
}
