import { Database } from 'bun:sqlite'
import { migrate } from '#src/storage/sqlite/migrate.ts'
import { migrationsThatTake } from './upgrade-migrations.ts'

/** Upgrades the database of its argument by a migration that takes minutes: the test kills it on the way. */
using db = new Database(process.argv[2])
console.log('begun')
migrate(db, migrationsThatTake(10_000_000))
