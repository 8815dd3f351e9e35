import type { Database, SQLQueryBindings, Statement } from 'bun:sqlite'
import type { Prepared } from './queries.ts'

/** Beginnings of statements that only read. No write of this server begins with WITH. */
const READS = /^\s*(?:select|with)\b/i

/**
 * Prepares statements that read committed rows. The statements run on the thread of the event loop, because
 * handing rows over from another thread takes longer than reading them. They run on the connection for
 * writes, because the page cache of this connection stays valid. A commit empties the page cache of every
 * other connection, which adds 5 to 15 µs to the next read on that connection. While a transaction is open,
 * reads run on a second connection, which does not see the rows of the transaction. `openReader` opens the
 * second connection for the first such read.
 */
export const readConnection = (writer: Database, openReader: () => Database) => {
  let reader: Database | undefined
  return {
    prepare: (text: string): Prepared => {
      // SQLite would commit a write at once when no transaction is open, and `Store.caches` would keep
      // outdated results.
      if (!READS.test(text)) throw new TypeError('A read has only SELECT statements.')
      const first = writer.prepare<unknown, SQLQueryBindings[]>(text)
      let second: Statement<unknown, SQLQueryBindings[]> | undefined
      const current = () => {
        if (!writer.inTransaction) return first
        reader ??= openReader()
        second ??= reader.prepare<unknown, SQLQueryBindings[]>(text)
        return second
      }
      return {
        columnNames: first.columnNames,
        all: (...params) => current().all(...params),
        values: (...params) => current().values(...params),
        run: (...params) => current().run(...params),
        finalize: () => {
          first.finalize()
          second?.finalize()
        },
      }
    },
    close: () => reader?.close(),
  }
}
