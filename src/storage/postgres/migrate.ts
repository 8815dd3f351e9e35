import type { ReservedSQL, SQL } from 'bun'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import { NotMigrated, StorageError } from '#src/storage/errors.ts'
import { hashOf, type Migrations } from '#src/storage/sqlite/apply-migrations.ts'
import { BEFORE_FIRST_RELEASE, isBeforeFirstRelease } from '#src/storage/sqlite/migrate.ts'
import type { BeforeUpgrade } from '#src/storage/store.ts'
import { postgresQueries, type QueryResult } from './queries.ts'

const postgresMigrations: Migrations = Object.freeze(embed('migrations/postgres', ['.sql']))

/** Key of the advisory lock that a migration holds. */
const LOCK = 0x47617465

type Row = Record<string, unknown>

/**
 * Applies pending migrations to the default schema in one transaction, so that a failed or interrupted
 * upgrade changes nothing.
 *
 * @throws StorageError when the schema has tables of another program or of a version that cannot be upgraded,
 *   when another schema has the instance, or when an extension is missing. If `apply` is false, also when
 *   migrations are pending
 */
export const migratePostgres = async (
  sql: SQL,
  where: string,
  {
    apply = true,
    beforeUpgrade,
    migrations = postgresMigrations,
  }: {
    apply?: boolean | undefined
    beforeUpgrade?: BeforeUpgrade | undefined
    migrations?: Migrations
  } = {},
): Promise<void> => {
  using connection = await sql.reserve()
  const pending = await pendingIn(connection, where, migrations)
  if (pending.length === 0) return
  const isEmpty = pending.length === Object.keys(migrations).length
  if (!apply)
    throw new NotMigrated(
      isEmpty
        ? `${where} has no instance. Start the server to create it.`
        : `${where} has an older version. Start the server to upgrade it.`,
      isEmpty,
    )
  if (!isEmpty)
    await beforeUpgrade?.(
      postgresQueries((text, values) => connection.unsafe(text, values).values() as Promise<QueryResult>),
    )
  await connection.unsafe('BEGIN ISOLATION LEVEL READ COMMITTED')
  try {
    await applyPending(connection, where, migrations)
    await connection.unsafe('COMMIT')
  } catch (error) {
    await connection.unsafe('ROLLBACK').catch(() => {})
    throw error
  }
}

/**
 * Applies pending migrations in the transaction of the connection. A lock makes other copies wait until the
 * transaction ends. The transaction is READ COMMITTED, so that a copy that has waited sees the migrations
 * that another copy has applied.
 *
 * @throws StorageError like {@link migratePostgres}
 */
export const applyPending = async (
  connection: ReservedSQL,
  where: string,
  migrations = postgresMigrations,
): Promise<void> => {
  await connection.unsafe(`SELECT pg_advisory_xact_lock(${LOCK})`)
  const pending = await pendingIn(connection, where, migrations)
  if (pending.length === 0) return
  await connection.unsafe('CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, hash text NOT NULL)')
  for (const [name, text] of pending) {
    await connection.unsafe(text).catch(error => {
      const message = error instanceof Error ? error.message : ''
      throw /pg_trgm|gin_trgm_ops/.test(message) ? needsExtension(where) : error
    })
    await connection.unsafe('INSERT INTO migrations (name, hash) VALUES ($1, $2)', [name, hashOf(text)])
  }
}

const needsExtension = (where: string): StorageError =>
  new StorageError(
    `${where}: the extension pg_trgm is missing and this user cannot create it, or its schema is not in search_path. Have an administrator run \`CREATE EXTENSION pg_trgm\` in the database (package postgresql-contrib), or add the schema to search_path.`,
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
    throw new StorageError(
      `${where}: contains tables of another program. Use a separate database for Gatehouse.`,
    )
  if (tables.length === 0) await requireNoInstanceBeside(sql, where)
  const applied: Row[] = isOurs ? await appliedIn(sql, where) : []
  for (const { name, hash } of applied) {
    const text = migrations[String(name)]
    if (isBeforeFirstRelease(String(name))) throw new StorageError(`${where}: ${BEFORE_FIRST_RELEASE}`)
    if (text === undefined)
      throw new StorageError(
        `${where}: was upgraded by a newer version (${name}). Use that version, or restore a backup from before the upgrade into an empty database.`,
      )
    if (hashOf(text) !== hash)
      throw new StorageError(
        `${where}: its migration ${name} differs from the migration of this version. Restore a backup.`,
      )
  }
  return Object.entries(migrations).sort().slice(applied.length)
}

/**
 * Refuses an empty schema if another schema has an instance of this user. Such a schema usually got into
 * `search_path` by accident: a schema with the name of the user comes first. A new instance in it would take
 * the place of the old one, also at running copies.
 */
const requireNoInstanceBeside = async (sql: SQL, where: string): Promise<void> => {
  const [found]: Row[] = await sql.unsafe(
    "SELECT schemaname, current_schema() AS empty FROM pg_tables WHERE tablename = 'write_lock' AND tableowner = current_user",
  )
  if (!found) return
  const place = found.empty === null ? 'no schema that exists' : `the empty schema ${found.empty}`
  throw new StorageError(
    `${where}: the instance of this user is in schema ${found.schemaname}, but search_path leads to ${place}. Correct search_path, or use a separate database for another instance.`,
  )
}

/** Reads the applied migrations. A table `migrations` with other columns belongs to another program. */
const appliedIn = async (sql: SQL, where: string): Promise<Row[]> => {
  try {
    return await sql.unsafe('SELECT name, hash FROM migrations ORDER BY name COLLATE "C"')
  } catch (error) {
    if (Reflect.get(Object(error), 'errno') !== '42703') throw error
    throw new StorageError(
      `${where}: contains tables of another program. Use a separate database for Gatehouse.`,
    )
  }
}
