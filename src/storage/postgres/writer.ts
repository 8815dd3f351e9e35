import type { ReservedSQL, SQL } from 'bun'
import type { CommitMetrics } from '#src/storage/commit-metrics.ts'
import {
  isConflict,
  isHeldUp,
  isLost,
  isStorageFailure,
  isUniqueViolation,
  unavailable,
} from '#src/storage/errors.ts'
import type { Queries, Topic, Transaction } from '#src/storage/store.ts'
import { answered, reserve } from './connect.ts'
import { type Answer, postgresQueries } from './queries.ts'

/** How long a write is tried again, and the longest pause between two tries, ms. */
const PATIENCE = 5_000
const PAUSE = 10
/** A write that others have kept from committing so many times goes on alone. */
const TRIES = 4

/** With others, alone, or only to see what would happen. */
type Turn = 'together' | 'alone' | 'rehearsal'

/**
 * Every transaction takes the table `turns` in a mode that admits others like it, or, alone, in one that admits none. LOCK
 * takes no snapshot: what a lone transaction sees is what those before it have left. Sent together with the first
 * statement, since both are prepared: Bun waits for the answer of what is not, as it does for several in one text.
 * Behind one that waits to be alone all others queue: it gives up soon, and lets them pass. A rehearsal, of which nothing
 * is kept, need not be serializable: nobody conflicts with it, nor waits for its turn.
 */
const begin = (connection: SQL, turn: Turn) =>
  turn === 'rehearsal'
    ? [
        connection`BEGIN ISOLATION LEVEL READ COMMITTED`.execute(),
        connection`SELECT set_config('gatehouse.rehearsal', 'on', true)`.execute(),
      ]
    : [
        connection`BEGIN ISOLATION LEVEL SERIALIZABLE`.execute(),
        ...(turn === 'alone'
          ? [
              connection`SET LOCAL lock_timeout = '500ms'`.execute(),
              connection`LOCK TABLE turns IN EXCLUSIVE MODE`.execute(),
            ]
          : [connection`LOCK TABLE turns IN ROW EXCLUSIVE MODE`.execute()]),
      ]

/** The lowest number that no other connection of any copy has: `counter_slots` has a row for each. */
const TAKE_SLOT = `SELECT set_config('gatehouse.slot', n::text, false) FROM generate_series(0, 4095) AS n
  WHERE pg_try_advisory_lock(1197766765, n) LIMIT 1`

type Body<T> = (tx: Transaction) => Promise<T>

interface Done<T> {
  value: T
  topics: ReadonlySet<Topic>
  effects: (() => void)[]
}
/** What the body threw, and what the server had said: mostly the same. `unsure`: whether it was committed is not known. */
interface Failed {
  error: unknown
  cause: unknown
  unsure: boolean
}

const takeSlot = async (connection: ReservedSQL, stall: number): Promise<void> => {
  await answered(connection.unsafe(TAKE_SLOT), () => connection.close(), stall)
}

/** The transaction under way; each begins with a new one. */
interface State {
  /** The first error that the server answered in it: nothing of it can be committed any more. */
  failure: unknown
  topics: Set<Topic>
  effects: (() => void)[]
  /** Statements that the body has not waited for. */
  sent: Promise<unknown>[]
  savepoints: number
}

const settle = (state: State) => Promise.all(state.sent.splice(0))

const transactionOf = (
  queries: Queries,
  run: (statement: string) => Promise<unknown>,
  state: State,
): Transaction =>
  Object.assign(queries, {
    changed: (topic: Topic) => void state.topics.add(topic),
    after: (effect: () => void) => void state.effects.push(effect),
    later: (statement: Promise<unknown>) => {
      const settled = statement.catch(error => {
        state.failure ??= error
      })
      state.sent.push(settled)
      return undefined
    },
    nested: async <T>(body: () => Promise<T>): Promise<T> => {
      const name = `nested_${++state.savepoints}`
      await run(`SAVEPOINT ${name}`)
      const before = { topics: new Set(state.topics), effects: state.effects.length }
      try {
        const value = await body()
        await settle(state)
        if (state.failure) throw state.failure
        await run(`RELEASE ${name}`)
        return value
      } catch (error) {
        await settle(state)
        if (isConflict(state.failure) || isLost(state.failure)) throw state.failure
        await run(`ROLLBACK TO ${name}`)
        await run(`RELEASE ${name}`)
        state.failure = undefined
        state.topics = before.topics
        state.effects.length = before.effects
        throw error
      } finally {
        state.savepoints--
      }
    },
  })

/** One connection that runs one transaction after the other. It is opened when it is needed, and again when it was lost. */
const openWriter = (
  sql: SQL,
  pooled: number,
  stall: number,
  notice: (topics: ReadonlySet<Topic>) => string,
) => {
  let connection: ReservedSQL | undefined
  let inTransaction = false
  const state: State = { failure: undefined, topics: new Set(), effects: [], sent: [], savepoints: 0 }

  const hangUp = () => connection?.close()
  const run = async (text: string, values?: unknown[]): Promise<Answer> => {
    if (!inTransaction || !connection) throw unavailable(new Error('There is no transaction.'))
    try {
      // Sent now and not when it is awaited: what follows must not overtake it.
      const asked = connection.unsafe(text, values).values().execute()
      return (await answered(asked, hangUp, stall)) as Answer
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

  /** One try: nothing of it has happened when it fails, unless the connection was lost during the commit. */
  const attempt = async <T>(body: Body<T>, turn: Turn): Promise<Done<T> | Failed> => {
    Object.assign(state, { failure: undefined, topics: new Set(), effects: [], sent: [], savepoints: 0 })
    let began: Promise<unknown> | undefined
    let ending = false
    try {
      connection ??= (await reserve(sql, pooled, reserved => takeSlot(reserved, stall))).connection
      // Its answer is looked at in the end.
      began = Promise.all(begin(connection, turn)).then(
        () => undefined,
        (error: unknown) => error,
      )
      inTransaction = true
      const value = await body(tx)
      if (state.failure) throw state.failure
      if (turn === 'rehearsal') {
        await settle(state)
        if (state.failure) throw state.failure
        inTransaction = false
        await answered(connection`ROLLBACK`.execute(), hangUp, stall)
        return { value, topics: new Set(), effects: [] }
      }
      const { topics, effects, sent } = state
      const told = topics.size > 0 ? run(notice(topics)) : undefined
      ending = true
      inTransaction = false
      const commit = answered(connection`COMMIT`.execute(), hangUp, stall)
      const [ended] = await Promise.all([commit, told, ...sent])
      if (state.failure) throw state.failure
      // A transaction in which something failed ends so, without an error.
      if (ended.command !== 'COMMIT') throw new Error('The transaction was lost.')
      return { value, topics, effects }
    } catch (error) {
      const cause = (await began) ?? state.failure ?? error
      if (isLost(cause)) await drop()
      else await connection?.unsafe('ROLLBACK').catch(drop)
      // What they fail with is not the next transaction's.
      await Promise.all(state.sent)
      return { error, cause, unsure: ending && isLost(cause) }
    } finally {
      inTransaction = false
    }
  }
  return { attempt, drop }
}

/**
 * Write transactions, `count` at once. Each is serializable: the server refuses to commit what could not have happened one
 * after the other, and the body runs again. https://www.postgresql.org/docs/current/transaction-iso.html#XACT-SERIALIZABLE
 */
export const postgresWriter = (
  sql: SQL,
  count: number,
  {
    stall,
    notice,
    done,
    metrics: { queued, committed },
  }: {
    /** How long an answer may take, ms. */
    stall: number
    /** The statement that tells other copies of these topics when the transaction commits. */
    notice(topics: ReadonlySet<Topic>): string
    /** After a commit, before its writer hears of it. */
    done(topics: ReadonlySet<Topic>): void
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
    else idle.push(writer)
  }

  const persist = async <T>(writer: (typeof all)[number], body: Body<T>, first: Turn): Promise<Done<T>> => {
    const end = performance.now() + PATIENCE
    let turn = first
    let lost = false
    for (let tries = 1; ; tries++) {
      const result: Done<T> | Failed = await writer.attempt(body, turn)
      if ('value' in result) return result
      const { error, cause, unsure } = result as Failed
      // A row that came between looks like one that was there: alone it shows which.
      const isTaken: boolean = isUniqueViolation(cause) && turn !== 'alone'
      const isGone: boolean = isLost(cause) && !unsure && !lost
      if (!isTaken && !isStorageFailure(cause)) throw error
      const heldUp: boolean = turn === 'alone' && isHeldUp(cause)
      const isLate = performance.now() > end
      // However long the others have kept it from committing, it has not failed before it had the place to itself.
      if (!(isTaken || isGone || heldUp || isConflict(cause)) || (isLate && turn !== 'together')) {
        committed('failed')
        throw unavailable(cause)
      }
      committed('retried')
      lost ||= isGone
      if (turn !== 'rehearsal') turn = !heldUp && (isTaken || isLate || tries >= TRIES) ? 'alone' : 'together'
      if (turn !== 'alone') await Bun.sleep(Math.random() * Math.min(PAUSE, 2 ** tries))
    }
  }

  const run = async <T>(body: Body<T>, first: Turn): Promise<T> => {
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
    /** Refuses new writes; settles once those that run are answered. */
    close: async (): Promise<void> => {
      open = false
      if (running > 0) await ended.promise
      await Promise.all(all.map(({ drop }) => drop()))
    },
  }
}
