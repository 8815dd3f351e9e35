import type { ReservedSQL, SQL } from 'bun'
import type { CommitMetrics } from '#src/storage/commit-metrics.ts'
import {
  isConflict,
  isEnded,
  isHeldUp,
  isLost,
  isStorageFailure,
  isUniqueViolation,
  needsNewConnection,
  unavailable,
} from '#src/storage/errors.ts'
import type { Topic, Transaction } from '#src/storage/store.ts'
import { writeSums } from '#src/storage/sums.ts'
import { reserve, withTimeout } from './connect.ts'
import { postgresQueries, type QueryResult } from './queries.ts'
import { begun, settleSent, type TransactionState, transactionOf } from './transaction.ts'

/**
 * Time for retries of a write, and longest pause between two retries, in ms. Clients wait for some seconds. A
 * conflicting write takes a few ms.
 */
const RETRY_FOR = 5_000
const MAX_PAUSE = 10
/**
 * Number of failed attempts after which a write runs alone. Otherwise short concurrent writes could make a
 * long write fail again and again.
 */
const MAX_CONCURRENT_TRIES = 4

/** Mode of a transaction: concurrent, exclusive, or rolled back at the end. */
type Mode = 'together' | 'alone' | 'rehearsal'

/**
 * Returns the statements that begin a transaction. The transaction is serializable, because a write depends
 * on rows that it has read: permissions, limits, single use. Without this, two concurrent writes could
 * contradict each other (write skew). Each write locks the table `write_lock`. A write that runs alone takes
 * an exclusive lock. Any other write takes a lock that admits other writes. LOCK takes no snapshot, so a
 * transaction sees all commits that were made while it waited for the lock. A wait for the exclusive lock
 * blocks all later transactions, so the lock timeout is short. The statements are prepared, so Bun sends them
 * together with the first statement of the body.
 *
 * A rehearsal is rolled back and therefore need not be serializable. It conflicts with no other write and
 * does not wait for `write_lock`.
 */
const begin = (connection: SQL, mode: Mode) =>
  mode === 'rehearsal'
    ? [
        connection`BEGIN ISOLATION LEVEL READ COMMITTED`.execute(),
        connection`SELECT set_config('gatehouse.rehearsal', 'on', true)`.execute(),
      ]
    : [
        connection`BEGIN ISOLATION LEVEL SERIALIZABLE`.execute(),
        ...(mode === 'alone'
          ? [
              connection`SET LOCAL lock_timeout = '500ms'`.execute(),
              connection`LOCK TABLE write_lock IN EXCLUSIVE MODE`.execute(),
            ]
          : [connection`LOCK TABLE write_lock IN ROW EXCLUSIVE MODE`.execute()]),
      ]

/**
 * Takes the lowest slot that no other connection of any copy uses. A connection changes only the rows of
 * `counter_slots` that have its slot.
 */
const TAKE_SLOT = `SELECT set_config('gatehouse.slot', n::text, false) FROM generate_series(0, 4095) AS n
  WHERE pg_try_advisory_lock(1197766765, n) LIMIT 1`

type Body<T> = (tx: Transaction) => Promise<T>

interface Done<T> {
  value: T
  topics: ReadonlySet<Topic>
  effects: (() => void)[]
}
/**
 * A failed attempt. `error` is the error of the body. `cause` is the error of PostgreSQL that caused `error`;
 * often they are the same error. `unsure` is true when the connection was lost during the commit. Such a
 * write is not repeated, because PostgreSQL may have committed it, or may still commit it.
 */
interface Failed {
  error: unknown
  cause: unknown
  unsure: boolean
  topics: ReadonlySet<Topic>
}

/** If PostgreSQL ended the session at a statement before COMMIT (`failure`), it has not executed COMMIT. */
const isUnsure = (cause: unknown, failure: unknown): boolean => isLost(cause) && !isEnded(failure)

const takeSlot = async (connection: ReservedSQL, stall: number): Promise<void> => {
  await withTimeout(connection.unsafe(TAKE_SLOT), () => connection.close(), stall)
}

/**
 * Returns one connection for consecutive transactions. The connection is opened at the first use, and again
 * after a loss.
 */
const openWriter = (
  sql: SQL,
  pooled: number,
  stall: number,
  notice: (topics: ReadonlySet<Topic>) => string,
) => {
  let connection: ReservedSQL | undefined
  let inTransaction = false
  const state = begun()

  const closeConnection = () => connection?.close()
  const run = async (text: string, values?: unknown[]): Promise<QueryResult> => {
    if (!inTransaction || !connection) throw unavailable(new Error('There is no transaction.'))
    try {
      // `execute` sends the statement before the `await`, so that the next statement cannot overtake it.
      const answer = connection.unsafe(text, values).values().execute()
      return (await withTimeout(answer, closeConnection, stall)) as QueryResult
    } catch (error) {
      state.failure ??= error
      throw error
    }
  }
  const tx = transactionOf(postgresQueries(run), run, state)

  const drop = async (): Promise<void> => {
    const dropped = connection
    connection = undefined
    await dropped?.close().catch(() => {})
  }

  /** Runs one attempt. A failed attempt stores nothing, unless the connection is lost during the commit. */
  const attempt = async <T>(
    body: Body<T>,
    mode: Mode,
    outcomes: TransactionState['outcomes'],
  ): Promise<Done<T> | Failed> => {
    Object.assign(state, begun(outcomes))
    let began: Promise<unknown> | undefined
    let ending = false
    try {
      connection ??= (await reserve(sql, pooled, reserved => takeSlot(reserved, stall))).connection
      // If BEGIN is refused (for example by a standby), `run` sends no further statement: without a
      // transaction it would be committed at once. The catch block below gets the first error from `began`.
      began = Promise.all(begin(connection, mode)).then(
        () => undefined,
        (error: unknown) => {
          inTransaction = false
          state.failure ??= error
          return error
        },
      )
      inTransaction = true
      const value = await body(tx)
      await writeSums(tx, state.added)
      if (state.failure) throw state.failure
      if (mode === 'rehearsal') {
        await settleSent(state)
        if (state.failure) throw state.failure
        inTransaction = false
        await withTimeout(connection`ROLLBACK`.execute(), closeConnection, stall)
        return { value, topics: new Set(), effects: [] }
      }
      const { topics, effects, sent } = state
      const notified = topics.size > 0 ? run(notice(topics)) : undefined
      ending = true
      inTransaction = false
      const commit = withTimeout(connection`COMMIT`.execute(), closeConnection, stall)
      const [ended] = await Promise.all([commit, began, notified, ...sent])
      if (state.failure) throw state.failure
      // COMMIT of a failed transaction rolls back without an error.
      if (ended.command !== 'COMMIT') throw new Error('The transaction was lost.')
      return { value, topics, effects }
    } catch (error) {
      const cause = (await began) ?? state.failure ?? error
      if (isLost(cause) || needsNewConnection(cause)) await drop()
      else await connection?.unsafe('ROLLBACK').catch(drop)
      // A statement of this attempt that fails late must not make the next transaction fail.
      await Promise.all(state.sent)
      return { error, cause, unsure: ending && isUnsure(cause, state.failure), topics: state.topics }
    } finally {
      inTransaction = false
    }
  }
  return { attempt, drop, isConnected: () => connection !== undefined }
}

/**
 * Runs up to `count` serializable write transactions at once. PostgreSQL refuses to commit a transaction that
 * conflicts with other transactions. The body of a refused transaction runs again.
 * https://www.postgresql.org/docs/current/transaction-iso.html#XACT-SERIALIZABLE
 */
export const postgresWriter = (
  sql: SQL,
  count: number,
  {
    stall,
    notice,
    done,
    unsure: onUnsure,
    metrics: { queued, committed },
  }: {
    stall: number
    /** Returns the statement that sends the topics to the other copies. */
    notice(topics: ReadonlySet<Topic>): string
    /** Called after a commit that has topics, before its writer gets the result. */
    done(topics: ReadonlySet<Topic>): void
    /** Called instead of `done` when the outcome of the commit is unknown. */
    unsure(topics: ReadonlySet<Topic>): void
    metrics: CommitMetrics
  },
) => {
  const all = Array.from({ length: count }, () => openWriter(sql, count, stall, notice))
  const idle = [...all]
  const waiting: ((writer: (typeof all)[number]) => void)[] = []
  let open = true
  let running = 0
  const ended = Promise.withResolvers<void>()

  const take = (): Promise<(typeof all)[number]> | (typeof all)[number] =>
    idle.pop() ?? new Promise(resolve => waiting.push(resolve))
  const give = (writer: (typeof all)[number]): void => {
    const next = waiting.shift()
    if (next) next(writer)
    // `take` uses a writer without a connection last. PostgreSQL may refuse further connections.
    else if (writer.isConnected()) idle.push(writer)
    else idle.unshift(writer)
  }

  const persist = async <T>(writer: (typeof all)[number], body: Body<T>, first: Mode): Promise<Done<T>> => {
    const end = performance.now() + RETRY_FOR
    let mode = first
    let lost = false
    const outcomes = new Map()
    for (let tries = 1; ; tries++) {
      const result: Done<T> | Failed = await writer.attempt(body, mode, outcomes)
      if ('value' in result) return result
      const { error, cause, unsure, topics } = result as Failed
      // A unique violation can come from a conflict: a concurrent write has committed a row that the snapshot
      // lacks. The write therefore runs again alone and sees this row. Only a violation in that second run is
      // reported. https://www.postgresql.org/docs/current/mvcc-serialization-failure-handling.html
      const isTaken: boolean = isUniqueViolation(cause) && mode !== 'alone'
      const isGone: boolean = (isLost(cause) || needsNewConnection(cause)) && !unsure && !lost
      if (!isTaken && !isStorageFailure(cause)) throw error
      const heldUp: boolean = mode === 'alone' && isHeldUp(cause)
      const isLate = performance.now() > end
      // A write with conflicts is given up only after it has run alone, a rehearsal after `RETRY_FOR`.
      if (!(isTaken || isGone || heldUp || isConflict(cause)) || (isLate && mode !== 'together')) {
        committed('failed')
        if (unsure && topics.size > 0) onUnsure(topics)
        throw unavailable(cause)
      }
      committed('retried')
      lost ||= isGone
      if (mode !== 'rehearsal')
        mode = !heldUp && (isTaken || isLate || tries >= MAX_CONCURRENT_TRIES) ? 'alone' : 'together'
      if (mode !== 'alone') await Bun.sleep(Math.random() * Math.min(MAX_PAUSE, 2 ** tries))
    }
  }

  const run = async <T>(body: Body<T>, first: Mode): Promise<T> => {
    if (!open) throw unavailable(new Error('The store is closed.'))
    running++
    queued(1)
    const writer = await take()
    try {
      const { value, topics, effects } = await persist(writer, body, first)
      if (first !== 'rehearsal') committed('done')
      if (topics.size > 0) done(topics)
      for (const effect of effects) effect()
      return value
    } finally {
      give(writer)
      queued(-1)
      if (--running === 0 && !open) ended.resolve()
    }
  }

  return {
    write: <T>(body: Body<T>): Promise<T> => run(body, 'together'),
    rehearse: <T>(body: Body<T>): Promise<T> => run(body, 'rehearsal'),
    /** Refuses new writes and waits for running writes. */
    close: async (): Promise<void> => {
      open = false
      if (running > 0) await ended.promise
      await Promise.all(all.map(({ drop }) => drop()))
    },
  }
}
