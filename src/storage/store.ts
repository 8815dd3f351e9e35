import type { BaseSQLiteDatabase } from 'drizzle-orm/sqlite-core'
import type { UserId } from '#src/lib/ids.ts'
import type { Metrics } from '#src/lib/metrics.ts'
import type { Tables } from './tables.ts'

/** The supported database engines. */
export type Engine = 'sqlite' | 'postgres'

/**
 * The query interface of both engines: drizzle's builder plus the engine's tables, so that functions of a
 * store depend only on `q`. A query is awaited and returns an array; `.get()`, `.all()` and `.run()` exist on
 * one engine only.
 */
export type Queries = Pick<
  BaseSQLiteDatabase<'async', unknown>,
  'select' | 'selectDistinct' | 'insert' | 'update' | 'delete' | '$count'
> & {
  readonly tables: Tables
  readonly engine: Engine
  /** SQLite: returns a statement whose SQL was made at build time. */
  made?(name: string): Executable
}

/**
 * Topics of changes. A write names the topics that it changes. After its commit the caches of these topics
 * are dropped, and each delivery queue of one of these topics looks for due work.
 */
export type Topic =
  | 'organizations'
  | 'throttles'
  /** Changed when events are removed or hidden, not when they are written. */
  | 'events'
  | 'users'
  | 'roles'
  | 'clients'
  | 'keys'
  | 'settings'
  | 'identity_providers'
  | 'apis'
  | 'webhooks'
  /** Changed when a webhook may have become due for delivery. */
  | 'webhook_turns'
  | 'mails'
  | 'logouts'

/** Numbers to add, by column. */
export type Amounts = Readonly<Record<string, number>>

/** Adds the amounts of one commit to the row `key`. */
export type Sum = (tx: Transaction, key: string, amounts: Amounts) => Promise<unknown>

/** Queries inside a write. Either all of them are committed or none. */
export type Transaction = Queries & {
  changed(topic: Topic): void
  /**
   * Registers an effect to run once after the commit. The body itself may run several times and must have no
   * effects outside `tx`.
   */
  after(effect: () => void): void
  /**
   * Runs an effect that a rollback cannot undo, such as a charge to a limit, and returns its result. When the
   * body runs again, the effect does not: its first result or error counts. `name` identifies the effect
   * within the write.
   */
  once<T>(name: string, effect: () => T): T
  /**
   * Runs a `prepared` statement whose result is not needed. On PostgreSQL the body does not wait for it; if
   * the statement fails, the transaction fails.
   */
  later(statement: Promise<unknown>): Promise<void>
  /**
   * Adds amounts to the row `key`. The amounts of all bodies of a commit are summed and written once, at its
   * end; a body that fails adds nothing.
   */
  add(sum: Sum, key: string, amounts: Amounts): void
  /**
   * Runs part of the body in a savepoint. If this part throws, its writes are undone and the transaction may
   * continue. On PostgreSQL the transaction cannot continue after a conflict or a lost connection: only the
   * whole body can then succeed, in a new transaction.
   */
  nested<T>(body: () => Promise<T>): Promise<T>
}

/** The users that a rehearsal may read. */
export type RehearsedUsers =
  | 'all'
  | {
      /** Each user is named by organization (id or slug) and by folded user name or address. */
      named: { organization: string; username?: string; email?: string }[]
      ids: UserId[]
      /** Ids and names of groups whose members may be read. */
      groups: string[]
    }

/** The database of one instance. */
export interface Store {
  readonly engine: Engine
  /** Metrics of the server that uses this store. */
  readonly metrics: Metrics
  /** Results that `cached` keeps, by cache. */
  readonly caches: Map<object, unknown>
  /** Reads from the latest committed state. */
  read<T>(body: (q: Queries) => Promise<T>): Promise<T>
  /**
   * Runs one isolated transaction. The body does no I/O except through `tx`, and nothing is stored when it
   * throws. On PostgreSQL the body may run again after a lost connection, or after a conflict with another
   * write of any copy. A refusal that must store something is returned from the body and thrown after the
   * commit.
   *
   * @throws AppError `temporarily_unavailable` when the store cannot write
   */
  write<T>(body: (tx: Transaction) => Promise<T>): Promise<T>
  /**
   * On SQLite, waits for a checkpoint of earlier writes, and then for about as long as the last transaction
   * took. On PostgreSQL it returns at once. A job of many large writes waits before each of them, so that
   * other writes, including those of other processes, run in between.
   */
  drained(): Promise<void>
  /**
   * Runs a write whose changes are dropped. On SQLite the body sees a copy of the objects that administrators
   * make, and of the users in `users`, so no other write waits. On PostgreSQL other writes may commit between
   * the statements of the body, and wait only for rows that the body has changed.
   */
  rehearse<T>(body: (tx: Transaction) => Promise<T>, users: RehearsedUsers): Promise<T>
  /**
   * Calls `listener` with the topics of each commit that has topics. The writer gets its result after this
   * call. On PostgreSQL the listener is also called with the topics of commits of other copies. The listener
   * is called without topics when anything may have changed: on SQLite after a commit of another process, on
   * PostgreSQL when notices may be lost.
   */
  onChange(listener: (topics?: ReadonlySet<Topic>) => void): void
  /**
   * Runs the body while no other copy of the server runs a body with this name. While another copy runs one,
   * this copy waits for up to a minute (`wait`) or not at all. A copy that does not get the lock returns
   * undefined and does not run the body. A copy that loses its connection loses the lock, so bodies must be
   * correct without it.
   */
  exclusively<T>(name: string, body: () => Promise<T>, wait?: 'wait'): Promise<T | undefined>
  /**
   * Resolves to true when a read succeeds and the database accepts writes, for /readyz. A write is tried only
   * after a failed commit. PostgreSQL is also asked whether it is a standby.
   */
  ready(): Promise<boolean>
  close(): Promise<void>
}

interface Executable<R = unknown> {
  execute(params?: Record<string, unknown>): Promise<R>
}

type Build<R = unknown> = (q: Queries, tables: Tables) => { prepare(): Executable<R> }

/**
 * Builds a statement once per connection and executes it many times, because building a drizzle query costs
 * seven times as much as executing a prepared one. `build` uses `sql.placeholder(name)` for parameters.
 */
export const prepared = <P extends Record<string, unknown>, R>(
  build: Build<R>,
): ((q: Queries, params: P) => Promise<R>) => once(q => build(q, q.tables).prepare())

/** The statements of {@link preparedForStart}, from which .ci/statements.ts makes the SQL. */
export const startStatements = new Map<string, Build>()

/**
 * Like {@link prepared}, for statements that a start or a short command executes. On SQLite the SQL of
 * `build` was made at build time. Building the statements of a start and their tables would take a third of
 * the CPU time of the start.
 *
 * @param name identifies the SQL in sqlite/made-statements.json
 */
export const preparedForStart = <P extends Record<string, unknown>, R>(
  name: string,
  build: Build<R>,
): ((q: Queries, params: P) => Promise<R>) => {
  startStatements.set(name, build)
  return once(q => (q.made?.(name) as Executable<R> | undefined) ?? build(q, q.tables).prepare())
}

/**
 * Returns a prepared INSERT, UPDATE or DELETE without RETURNING, typed with its result: the number of changed
 * rows. RETURNING would make a temporary table in SQLite, which takes as long as a short UPDATE.
 */
export const counting = <P extends Record<string, unknown>>(
  statement: (q: Queries, params: P) => Promise<unknown>,
) => statement as (q: Queries, params: P) => Promise<number>

const once = <P extends Record<string, unknown>, R>(make: (q: Queries) => Executable<R>) => {
  const statements = new WeakMap<Queries, Executable<R>>()
  return (q: Queries, params: P): Promise<R> => {
    let statement = statements.get(q)
    if (!statement) {
      statement = make(q)
      statements.set(q, statement)
    }
    return statement.execute(params)
  }
}
