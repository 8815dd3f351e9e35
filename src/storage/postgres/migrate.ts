import type { SQL } from 'bun'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import { StorageError } from '#src/storage/errors.ts'
import {
  BEFORE_FIRST_RELEASE,
  hashOf,
  isBeforeFirstRelease,
  type Migrations,
} from '#src/storage/sqlite/migrate.ts'

const postgresMigrations: Migrations = embed('migrations/postgres', ['.sql'])

/** Of the advisory lock that one copy holds while it migrates. */
const LOCK = 0x47617465

type Row = Record<string, unknown>

/**
 * Brings the default schema of the connection up to date. One copy at a time does, each migration in a transaction of its
 * own. Throws StorageError when the tables there are of another program, or of another version that cannot be brought up.
 */
export const migratePostgres = async (
  sql: SQL,
  where: string,
  { apply = true, migrations = postgresMigrations }: { apply?: boolean; migrations?: Migrations } = {},
): Promise<void> => {
  // One connection alone: the lock is the session's.
  using connection = await sql.reserve()
  const pending = () => pendingIn(connection, where, migrations)
  if ((await pending()).length === 0) return
  if (!apply)
    throw new StorageError(
      `${where}: there is no instance of this version yet. Start the server to make or upgrade it.`,
    )
  await connection.unsafe(`SELECT pg_advisory_lock(${LOCK})`)
  try {
    for (const [name, text] of await pending()) {
      await connection.unsafe('BEGIN')
      try {
        await connection.unsafe(
          'CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, hash text NOT NULL)',
        )
        await connection.unsafe(text)
        await connection.unsafe('INSERT INTO migrations (name, hash) VALUES ($1, $2)', [name, hashOf(text)])
        await connection.unsafe('COMMIT')
      } catch (error) {
        await connection.unsafe('ROLLBACK').catch(() => {})
        throw missingExtension(error) ? needsExtension(where) : error
      }
    }
  } finally {
    await connection.unsafe(`SELECT pg_advisory_unlock(${LOCK})`).catch(() => {})
  }
}

const missingExtension = (error: unknown): boolean =>
  /pg_trgm/.test(error instanceof Error ? error.message : '')

const needsExtension = (where: string): StorageError =>
  new StorageError(
    `${where}: the extension pg_trgm is missing, and this user may not or cannot make it. Let an administrator run \`CREATE EXTENSION pg_trgm\` there (package postgresql-contrib).`,
  )

const pendingIn = async (
  sql: SQL,
  where: string,
  migrations: Migrations,
): Promise<[name: string, text: string][]> => {
  const tables: Row[] = await sql.unsafe(
    'SELECT tablename FROM pg_tables WHERE schemaname = current_schema()',
  )
  const isOurs = tables.some(({ tablename }) => tablename === 'migrations')
  if (tables.length > 0 && !isOurs)
    throw new StorageError(`${where}: has tables of another program. Give Gatehouse a database of its own.`)
  const applied: Row[] = isOurs ? await appliedIn(sql, where) : []
  for (const { name, hash } of applied) {
    const text = migrations[String(name)]
    if (isBeforeFirstRelease(String(name))) throw new StorageError(`${where}: ${BEFORE_FIRST_RELEASE}`)
    if (text === undefined)
      throw new StorageError(`${where}: was upgraded by a newer version (${name}): use that version.`)
    if (hashOf(text) !== hash)
      throw new StorageError(
        `${where}: was made with another ${name} than this version has: restore a backup.`,
      )
  }
  return Object.entries(migrations).sort().slice(applied.length)
}

/** A table of this name is common: ours has these columns, and tables beside it that are ours. */
const appliedIn = async (sql: SQL, where: string): Promise<Row[]> => {
  try {
    return await sql.unsafe('SELECT name, hash FROM migrations ORDER BY name COLLATE "C"')
  } catch (error) {
    if (Reflect.get(Object(error), 'errno') !== '42703') throw error
    throw new StorageError(`${where}: has tables of another program. Give Gatehouse a database of its own.`)
  }
}
