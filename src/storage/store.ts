import type { BaseSQLiteDatabase } from 'drizzle-orm/sqlite-core'
import type { Metrics } from '#src/lib/metrics.ts'
import type { Tables } from './tables.ts'

export type Engine = 'sqlite' | 'postgres'

/**
 * What a query is written against, on both engines: drizzle's builder, always awaited, always yielding arrays
 * (`.get()`, `.all()` and `.run()` exist on one engine only), with the tables of this engine beside it, so that a
 * store's functions are plain functions of `q`.
 */
export type Queries = Pick<
  BaseSQLiteDatabase<'async', unknown>,
  'select' | 'selectDistinct' | 'insert' | 'update' | 'delete' | '$count'
> & { readonly tables: Tables; readonly engine: Engine }

/** What caches hold: a write names the topics that it touches, and caches of them are dropped after its commit. */
export type Topic =
  | 'organizations'
  | 'throttles'
  /** Removed, or hidden; not: written. */
  | 'events'
  | 'users'
  | 'roles'
  | 'clients'
  | 'keys'
  | 'settings'
  | 'identity_providers'
  | 'mails'

export type Transaction = Queries & {
  changed(topic: Topic): void
  /** Done once, after the commit: a body itself may run again, and must leave nothing behind but what `tx` undoes. */
  after(effect: () => void): void
  /** For a `prepared` statement whose answer nobody needs: PostgreSQL is not waited for, and the transaction fails with it. */
  later(statement: Promise<unknown>): Promise<unknown> | undefined
  /** Part of the body: what it wrote is undone when it throws, and the rest may go on. */
  nested<T>(body: () => Promise<T>): Promise<T>
}

export interface Store {
  readonly engine: Engine
  /** Of the server that has this store. */
  readonly metrics: Metrics
  /** What `cached` keeps, by the cache. */
  readonly caches: Map<object, unknown>
  /** Reads from the latest committed state. */
  read<T>(body: (q: Queries) => Promise<T>): Promise<T>
  /**
   * One transaction, as if nobody else wrote. The body does no I/O but `tx`; when it throws, nothing of it has happened.
   * It runs again when another copy of the server came between. A refusal that must record something is returned from the
   * body and thrown after the commit. Rejects with AppError `temporarily_unavailable` when the store cannot write.
   */
  write<T>(body: (tx: Transaction) => Promise<T>): Promise<T>
  /**
   * To be awaited before each of many large writes: settles once what the earlier ones left behind is put away, which all
   * others would have to wait for.
   */
  calm(): Promise<void>
  /** As `write`, and nothing of it is kept. Other writes may come between the statements of a rehearsal on PostgreSQL. */
  rehearse<T>(body: (tx: Transaction) => Promise<T>): Promise<T>
  /**
   * Calls `listener` after each commit that named topics, before its writer is answered; without topics after another
   * process has committed: then anything may have changed.
   */
  onChange(listener: (topics?: ReadonlySet<Topic>) => void): void
  /**
   * Runs the body while no other copy of the server runs one of this name; unless `wait`, it is left out (undefined) when
   * another copy is at it. A copy that loses its connection loses its right: bodies must be correct without it too.
   */
  exclusively<T>(name: string, body: () => Promise<T>, wait?: 'wait'): Promise<T | undefined>
  /** Whether reads and writes work at present, for /readyz. */
  ready(): Promise<boolean>
  close(): Promise<void>
}

/**
 * A statement built once per connection and executed many times: building a drizzle query costs seven times what
 * running a prepared one does. `build` uses `sql.placeholder(name)` for its parameters.
 */
export const prepared = <P extends Record<string, unknown>, R>(
  build: (
    q: Queries,
    tables: Tables,
  ) => { prepare(): { execute(params?: Record<string, unknown>): Promise<R> } },
): ((q: Queries, params: P) => Promise<R>) => {
  const statements = new WeakMap<Queries, { execute(params?: Record<string, unknown>): Promise<R> }>()
  return (q, params) => {
    let statement = statements.get(q)
    if (!statement) {
      statement = build(q, q.tables).prepare()
      statements.set(q, statement)
    }
    return statement.execute(params)
  }
}
