import type { BaseSQLiteDatabase } from 'drizzle-orm/sqlite-core'
import type { Tables } from './tables.ts'

/**
 * What a query is written against, on both engines: drizzle's builder, always awaited, always yielding arrays
 * (`.get()`, `.all()` and `.run()` exist on one engine only), with the tables of this engine beside it, so that a
 * store's functions are plain functions of `q`.
 */
export type Queries = Pick<
  BaseSQLiteDatabase<'async', unknown>,
  'select' | 'selectDistinct' | 'insert' | 'update' | 'delete' | '$count'
> & { readonly tables: Tables }

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

export type Transaction = Queries & { changed(topic: Topic): void }

export interface Store {
  readonly engine: 'sqlite' | 'postgres'
  /** Reads from the latest committed state. */
  read<T>(body: (q: Queries) => Promise<T>): Promise<T>
  /**
   * One transaction. The body does no I/O but `tx`; when it throws, nothing of it has happened. A refusal that must
   * record something is returned from the body and thrown after the commit. Rejects with AppError
   * `temporarily_unavailable` when the store cannot write.
   */
  write<T>(body: (tx: Transaction) => Promise<T>): Promise<T>
  /** Calls `listener` after each commit that named topics, before its writer is answered; without topics after another process has committed: then anything may have changed. */
  onChange(listener: (topics?: ReadonlySet<Topic>) => void): void
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
