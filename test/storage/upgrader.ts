import { Database } from 'bun:sqlite'
import { migrate } from '#src/storage/sqlite/migrate.ts'
import { migrationsThatTake } from './upgrade-migrations.ts'

/**
 * Upgrades the database at the given path by a migration that takes minutes. The test kills this process
 * during the migration.
 */
using db = new Database(process.argv[2])
console.log('begun')
migrate(db, migrationsThatTake(10_000_000))
