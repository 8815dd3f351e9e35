import { Database, type SQLQueryBindings } from 'bun:sqlite'
import { gzipSync } from 'node:zlib'
import { embed } from '#src/lib/embed.ts'
import { APPLICATION_ID, applyMigrations, PAGE } from './apply-migrations.ts'

/** Rows by table, parents first. */
export type ImageRows = Record<string, Record<string, SQLQueryBindings>[]>

/**
 * Returns a database file as gzip in base64. It has the tables of this version and the given rows. The same
 * sources and rows give the same bytes.
 */
export const imageOf = (rows: ImageRows): string => {
  using db = new Database(':memory:')
  db.run(`PRAGMA page_size = ${PAGE}`)
  db.run(`PRAGMA application_id = ${APPLICATION_ID}`)
  applyMigrations(db, Object.entries(embed('migrations/sqlite', ['.sql'])))
  for (const [table, all] of Object.entries(rows))
    for (const row of all) {
      const columns = Object.keys(row)
      const values = columns.map(() => '?').join(', ')
      db.run(`INSERT INTO "${table}" ("${columns.join('", "')}") VALUES (${values})`, Object.values(row))
    }
  return gzipSync(db.serialize()).toString('base64')
}

/** Returns an image without rows (see {@link imageOf}). The function is a Bun macro (lib/embed.ts). */
export const emptyImage = (): string => imageOf({})
