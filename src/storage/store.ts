import type { BaseSQLiteDatabase } from 'drizzle-orm/sqlite-core'
import type { UserId } from '#src/lib/ids.ts'
import type { Metrics } from '#src/lib/metrics.ts'
import type { Tables } from './tables.ts'

/** The supported database engines. */
export type Engine = 'sqlite' | 'postgres'

/**
 * The query interface of both engines: drizzle's builder and the engine's tables. Functions with queries thus
 * depend only on `q`. A query is awaited and gives an array. Do not use `.get()`, `.all()` and `.run()`,
 * because only one engine has them.
 */
export type Queries = Pick<
  BaseSQLiteDatabase<'async', unknown>,
  'select' | 'selectDistinct' | 'insert' | 'update' | 'delete' | '$count'
> & {
  readonly tables: Tables
  readonly engine: Engine
  /** Returns a statement whose SQL was made at build time. Only SQLite has this member. */
  made?(name: string): Executable
}

/**
 * Topics of changes. A write names the topics that it changes. After the commit of the write, the caches of
 * these topics are dropped, and the delivery queues of these topics look for due work.
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

/** Reads a database that has an older schema, before the upgrade. If it throws, the schema stays as it is. */
export type BeforeUpgrade = (q: Queries) => Promise<void>

/** Numbers to add, by column. */
export type Amounts = Readonly<Record<string, number>>

/** Adds the amounts of one commit to the row `key`. */
export type Sum = (tx: Transaction, key: string, amounts: Amounts) => Promise<unknown>

/** Queries inside a write. Either all changes of the write are committed, or none. */
export type Transaction = Queries & {
  changed(topic: Topic): void
  /**
   * Registers an effect that runs once, after the commit. The body itself can run several times and must have
   * no effects outside `tx`.
   */
  after(effect: () => void): void
  /**
   * Runs an effect that a rollback cannot undo, such as a charge to a limit, and returns the result of the
   * effect. When the body runs again, the effect does not run again, and its first result or error is used.
   * `name` identifies the effect within the write.
   */
  once<T>(name: string, effect: () => T): T
  /**
   * Runs a `prepared` statement whose result is not needed. On PostgreSQL the body does not wait for the
   * statement. If the statement fails, the transaction fails.
   */
  later(statement: Promise<unknown>): Promise<void>
  /**
   * Adds amounts to the row `key`. The amounts of all bodies of a commit are summed and written once, before
   * the commit. A body that fails adds nothing.
   */
  add(sum: Sum, key: string, amounts: Amounts): void
  /**
   * Runs part of the body in a savepoint. If this part throws, its writes are undone, and the transaction can
   * continue. On PostgreSQL the transaction cannot continue after a conflict or a lost connection. In this
   * case the whole body must run again in a new transaction.
   */
  nested<T>(body: () => Promise<T>): Promise<T>
}

/** The users that a rehearsal can read. */
export type RehearsedUsers =
  | 'all'
  | {
      /**
       * A user is named by the organization (id or slug), and by the folded user name or the folded address.
       */
      named: { organization: string; username?: string; email?: string }[]
      ids: UserId[]
      /** Ids and names of groups whose members the rehearsal can read. */
      groups: string[]
    }

/** The database of one instance. */
export interface Store {
  readonly engine: Engine
  /** Metrics of the server that uses this store. */
  readonly metrics: Metrics
  /** The results of each cache that `cached` has made, and other values that belong to this store. */
  readonly caches: Map<object, unknown>
  /**
   * Reads from the latest committed state.
   *
   * @throws AppError `temporarily_unavailable` when PostgreSQL cannot be reached or does not answer. An error
   *   of SQLite is thrown unchanged
   */
  read<T>(body: (q: Queries) => Promise<T>): Promise<T>
  /**
   * Runs one isolated transaction. The body must do no I/O except through `tx`. If the body throws, nothing
   * is stored. On PostgreSQL the body can run again after a lost connection, or after a conflict with another
   * write of any copy. A refusal that must store something is returned by the body. The caller throws it
   * after the commit.
   *
   * @throws AppError `temporarily_unavailable` when the store cannot write
   */
  write<T>(body: (tx: Transaction) => Promise<T>): Promise<T>
  /**
   * On SQLite, waits for a checkpoint if one is running or due, and then for about as long as the last
   * transaction took (5 to 100 ms). On PostgreSQL, returns at once. A job of many large writes must call this
   * before each write, so that other writes of this and other processes can run in between.
   */
  drained(): Promise<void>
  /**
   * Runs a write whose changes are dropped. On SQLite the body sees a copy of the objects that administrators
   * make, and of the users in `users`, so no other write waits. On PostgreSQL other writes can commit between
   * the statements of the body. They wait only for rows that the body has changed.
   */
  rehearse<T>(body: (tx: Transaction) => Promise<T>, users: RehearsedUsers): Promise<T>
  /**
   * Calls `listener` with the topics of each commit that has topics. The writer gets its result after this
   * call. On PostgreSQL the listener is also called with the topics of commits of other copies. The listener
   * is called without topics when any topic may have changed: on SQLite after a commit of another process, on
   * PostgreSQL when notices may be lost.
   */
  onChange(listener: (topics?: ReadonlySet<Topic>) => void): void
  /**
   * Runs the body under a lock, so that no other copy of the server runs a body with this name meanwhile.
   * With `wait` a copy waits up to a minute for the lock, otherwise not at all. A copy that does not get the
   * lock returns undefined and does not run the body. A copy that loses its connection loses the lock, so
   * bodies must be correct even without the lock. On SQLite the body runs at once, because `lockInstance`
   * admits only one server.
   *
   * @throws AppError `temporarily_unavailable` when PostgreSQL cannot be reached
   */
  exclusively<T>(name: string, body: () => Promise<T>, wait?: 'wait'): Promise<T | undefined>
  /**
   * Resolves to true when a read succeeds and the database accepts writes. The route /readyz returns the
   * result. A write is attempted only after a failed commit. PostgreSQL is also asked whether it is a
   * standby.
   */
  ready(): Promise<boolean>
  close(): Promise<void>
}

interface Executable<R = unknown> {
  execute(params?: Record<string, unknown>): Promise<R>
}

type Build<R = unknown> = (q: Queries, tables: Tables) => { prepare(): Executable<R> }

/**
 * Builds a statement once per connection and executes it many times. Building a drizzle query takes seven
 * times as long as executing a prepared statement. `build` uses `sql.placeholder(name)` for parameters.
 */
export const prepared = <P extends Record<string, unknown>, R>(
  build: Build<R>,
): ((q: Queries, params: P) => Promise<R>) => once(q => build(q, q.tables).prepare())

/** The statements of {@link preparedForStart}, from which .ci/statements.ts makes the SQL. */
export const startStatements = new Map<string, Build>()

/**
 * Does the same as {@link prepared} for statements that a start or a short command executes. On SQLite the
 * SQL of `build` was made at build time. Otherwise building the statements of a start and their tables would
 * take a third of the CPU time of the start.
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
 * Returns a prepared INSERT, UPDATE or DELETE without RETURNING, with the type of its result: the number of
 * changed rows. For RETURNING, SQLite would make a temporary table, which takes as long as a short UPDATE.
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
