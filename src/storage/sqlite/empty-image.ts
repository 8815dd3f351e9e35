import { Database } from 'bun:sqlite'
import { gzipSync } from 'node:zlib'
import { embed } from '#src/lib/embed.ts'
import { APPLICATION_ID, applyMigrations, PAGE } from './apply-migrations.ts'

/**
 * Returns a database file with the tables of this version and no rows, as gzip in base64. This is a Bun macro
 * (lib/embed.ts). The same sources give the same bytes.
 */
export const emptyImage = (): string => {
  using db = new Database(':memory:')
  db.run(`PRAGMA page_size = ${PAGE}`)
  db.run(`PRAGMA application_id = ${APPLICATION_ID}`)
  applyMigrations(db, Object.entries(embed('migrations/sqlite', ['.sql'])))
  return gzipSync(db.serialize()).toString('base64')
}
