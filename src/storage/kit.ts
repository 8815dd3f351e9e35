import * as postgres from 'drizzle-orm/pg-core'
import * as sqlite from 'drizzle-orm/sqlite-core'

/**
 * The vocabulary in which tables.ts defines the data model once for both engines. Times are integer milliseconds
 * and JSON is text on both: drizzle's own timestamp and jsonb columns differ between the engines.
 */
const sqliteJson = sqlite.customType<{ data: unknown; driverData: string }>({
  dataType: () => 'text',
  toDriver: value => JSON.stringify(value),
  fromDriver: text => JSON.parse(text),
})

export const sqliteKit = {
  table: sqlite.sqliteTable,
  text: (name: string) => sqlite.text(name),
  bool: (name: string) => sqlite.integer(name, { mode: 'boolean' }),
  int: (name: string) => sqlite.integer(name),
  ms: (name: string) => sqlite.integer(name),
  json: (name: string) => sqliteJson(name),
  serial: (name: string) => sqlite.integer(name).primaryKey(),
  bytes: (name: string) => sqlite.blob(name, { mode: 'buffer' }),
  index: sqlite.index,
  uniqueIndex: sqlite.uniqueIndex,
  primaryKey: sqlite.primaryKey,
}

export type Kit = typeof sqliteKit

const postgresJson = postgres.customType<{ data: unknown; driverData: string }>({
  dataType: () => 'text',
  toDriver: value => JSON.stringify(value),
  fromDriver: text => JSON.parse(text),
})
const bytea = postgres.customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' })
const bigint = (name: string) => postgres.bigint(name, { mode: 'number' })

/** The same words for PostgreSQL. Its columns answer as SQLite's do, so one type, `Kit`, stands for both. */
export const postgresKit = {
  table: postgres.pgTable,
  text: (name: string) => postgres.text(name),
  bool: (name: string) => postgres.boolean(name),
  int: bigint,
  ms: bigint,
  json: (name: string) => postgresJson(name),
  serial: (name: string) => bigint(name).primaryKey().generatedByDefaultAsIdentity(),
  bytes: (name: string) => bytea(name),
  index: postgres.index,
  uniqueIndex: postgres.uniqueIndex,
  primaryKey: postgres.primaryKey,
} as unknown as Kit
