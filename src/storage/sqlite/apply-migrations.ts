import type { Database } from 'bun:sqlite'
import { hash } from 'node:crypto'
import { StorageError } from '#src/storage/errors.ts'

// This file imports no macro, because it runs inside the macro of empty-image.ts.

/** SQL by file name. Files are applied in the order of their names. */
export type Migrations = Record<string, string>

/** `Gate`, in the header of database files: https://www.sqlite.org/pragma.html#pragma_application_id */
export const APPLICATION_ID = 0x47617465

/**
 * Page size in bytes of new files. A commit makes small changes to many pages, and SQLite writes whole pages.
 * Compared with SQLite's default of 4096, commits write a third fewer bytes and take an eighth less CPU time.
 */
export const PAGE = 2048

const MIGRATIONS = 'CREATE TABLE migrations (name TEXT PRIMARY KEY, hash TEXT NOT NULL) STRICT'

/** Runs migrations and records them. */
export const applyMigrations = (db: Database, migrations: [name: string, text: string][]): void => {
  if (!hasMigrations(db)) db.run(MIGRATIONS)
  for (const [name, text] of migrations) {
    db.run(text)
    db.run('INSERT INTO migrations (name, hash) VALUES (?, ?)', [name, hashOf(text)])
  }
}

/**
 * True when the table of migrations exists.
 *
 * @throws StorageError when `migrations` is not the table that Gatehouse creates. A view with this name is
 *   not read,   because a view would run SQL from the file
 */
export const hasMigrations = (db: Database): boolean => {
  const [found] = db.query("SELECT type, sql FROM sqlite_schema WHERE lower(name) = 'migrations'").values()
  if (found && (found[0] !== 'table' || found[1] !== MIGRATIONS))
    throw new StorageError(
      `${db.filename} is damaged: its table "migrations" is not the one that Gatehouse creates.`,
    )
  return found !== undefined
}

/** Returns the SHA-256 of a migration's text in hexadecimal digits. */
export const hashOf = (text: string): string => hash('sha256', text)
