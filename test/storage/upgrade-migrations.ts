import type { Migrations } from '#src/storage/sqlite/apply-migrations.ts'
import { sqliteMigrations } from '#src/storage/sqlite/migrate.ts'

/**
 * Returns the migrations of a later version. The additional migration adds a column. Setting the column takes
 * `steps` steps for each user.
 */
export const migrationsThatTake = (steps: number): Migrations => ({
  ...sqliteMigrations,
  '9999_next.sql': `ALTER TABLE users ADD COLUMN next INTEGER;
    UPDATE users SET next = (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${steps} + 0 * users.created_at) SELECT max(i) FROM n);`,
})
