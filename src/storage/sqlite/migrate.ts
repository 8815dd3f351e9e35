import type { Database } from 'bun:sqlite'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import { NotMigrated, StorageError } from '#src/storage/errors.ts'
import {
  APPLICATION_ID,
  applyMigrations,
  hashOf,
  hasMigrations,
  type Migrations,
} from './apply-migrations.ts'

export const sqliteMigrations: Migrations = Object.freeze(embed('migrations/sqlite', ['.sql']))

const value = (db: Database, query: string): unknown => db.query(query).values()[0]?.[0]

/**
 * Checks that the file is a Gatehouse database of this or an older version. Returns the pending migrations.
 *
 * @throws StorageError when the file is any other file
 */
export const requireOurs = (db: Database, migrations = sqliteMigrations): [name: string, text: string][] => {
  if (isEmpty(db)) throw new StorageError(`${db.filename} is empty.`)
  if (value(db, 'PRAGMA application_id') !== APPLICATION_ID)
    throw new StorageError(`${db.filename} is a database of another program. Choose another file.`)
  return pendingIn(db, migrations)
}

const isEmpty = (db: Database): boolean =>
  value(db, 'PRAGMA application_id') === 0 && value(db, 'SELECT count(*) FROM sqlite_schema') === 0

/**
 * True when a database that is not empty has an older schema.
 *
 * @throws StorageError like {@link migrate}
 */
export const needsUpgrade = (db: Database): boolean => !isEmpty(db) && requireOurs(db).length > 0

/**
 * Applies pending migrations in one transaction.
 *
 * @throws StorageError when the file belongs to another program, has a newer version or has changed
 *   migrations. If `upgrade` is false, also when migrations are pending
 */
export const migrate = (db: Database, migrations = sqliteMigrations, upgrade = true): void => {
  const isNew = isEmpty(db)
  if (!isNew && requireOurs(db, migrations).length === 0) return
  if (!upgrade)
    throw new NotMigrated(
      isNew
        ? `${db.filename} has no instance. Start the server to create it.`
        : `${db.filename} has an older version. Start the server to upgrade it.`,
      isNew,
    )
  db.transaction(() => {
    db.run(`PRAGMA application_id = ${APPLICATION_ID}`)
    applyMigrations(db, pendingIn(db, migrations))
  }).immediate()
}

/** Returns the names of the applied migrations in order. */
export const appliedIn = (db: Database): string[] => appliedWithHash(db).map(([name]) => name)

const appliedWithHash = (db: Database): [name: string, hash: string][] =>
  hasMigrations(db)
    ? (db.query('SELECT name, hash FROM migrations ORDER BY name').values() as [string, string][])
    : []

/** True for one of the two migrations of unreleased versions that `0000_schema.sql` replaced. */
export const isBeforeFirstRelease = (name: string): boolean =>
  ['0000_tables.sql', '0001_triggers.sql'].includes(name)

export const BEFORE_FIRST_RELEASE =
  'was made before the first release and cannot be upgraded: export it with the version that made it, and apply the file to a new instance.'

/**
 * Returns the pending migrations. Refuses a database with an unknown or changed migration, because its tables
 * may differ from the tables that the queries of this version expect.
 */
const pendingIn = (db: Database, migrations: Migrations): [name: string, text: string][] => {
  const applied = appliedWithHash(db)
  for (const [name, hash] of applied) {
    const text = migrations[name]
    if (isBeforeFirstRelease(name)) throw new StorageError(`${db.filename} ${BEFORE_FIRST_RELEASE}`)
    if (text === undefined)
      throw new StorageError(
        `${db.filename} was upgraded by a newer version (${name}). Use that version, or restore a backup from before the upgrade.`,
      )
    if (hashOf(text) !== hash)
      throw new StorageError(
        `${db.filename}: its migration ${name} differs from the migration of this version. Restore a backup.`,
      )
  }
  return Object.entries(migrations).sort().slice(applied.length)
}
