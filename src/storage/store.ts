import type { BaseSQLiteDatabase } from 'drizzle-orm/sqlite-core'
import type { Tables } from './tables.ts'

/**
 * What a query is written against, on both engines: drizzle's builder, always awaited, always yielding arrays
 * (`.get()`, `.all()` and `.run()` exist on one engine only).
 */
export type Queries = Pick<
  BaseSQLiteDatabase<'async', unknown>,
  'select' | 'selectDistinct' | 'insert' | 'update' | 'delete' | '$count'
>

export interface Store {
  readonly tables: Tables
  readonly engine: 'sqlite' | 'postgres'
  /** Reads from the latest committed state. */
  read<T>(body: (q: Queries) => Promise<T>): Promise<T>
  /**
   * One transaction. The body does no I/O but `tx`; when it throws, nothing of it has happened. A refusal that must
   * record something is returned from the body and thrown after the commit. Rejects with AppError
   * `temporarily_unavailable` when the store cannot write.
   */
  write<T>(body: (tx: Queries) => Promise<T>): Promise<T>
  /** Calls `listener` after another process has committed: caches are dropped then. */
  onForeignCommit(listener: () => void): void
  /** Whether reads and writes work at present, for /readyz. */
  ready(): Promise<boolean>
  close(): Promise<void>
}

/**
 * A statement built once per connection and executed many times: building a drizzle query costs seven times what
 * running a prepared one does. `build` uses `sql.placeholder(name)` for its parameters.
 */
export const prepared = <P extends Record<string, unknown>, R>(
  build: (q: Queries) => { prepare(): { execute(params?: Record<string, unknown>): Promise<R> } },
): ((q: Queries, params: P) => Promise<R>) => {
  const statements = new WeakMap<Queries, { execute(params?: Record<string, unknown>): Promise<R> }>()
  return (q, params) => {
    let statement = statements.get(q)
    if (!statement) {
      statement = build(q).prepare()
      statements.set(q, statement)
    }
    return statement.execute(params)
  }
}
