import * as pg from 'drizzle-orm/pg-core'
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

const pgJson = pg.customType<{ data: unknown; driverData: string }>({
  dataType: () => 'text',
  toDriver: value => JSON.stringify(value),
  fromDriver: text => JSON.parse(text),
})

const pgBytes = pg.customType<{ data: Buffer; driverData: Buffer }>({
  dataType: () => 'bytea',
  fromDriver: value => Buffer.from(value),
})

// COLLATE "C" makes PostgreSQL sort as SQLite does: by code point, the same on every machine.
const pgText = pg.customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' })

/** The same words for PostgreSQL, seen by the rest of the code under the types of SQLite's. */
export const pgKit = {
  table: pg.pgTable,
  text: (name: string) => pgText(name),
  bool: (name: string) => pg.boolean(name),
  int: (name: string) => pg.integer(name),
  ms: (name: string) => pg.bigint(name, { mode: 'number' }),
  json: (name: string) => pgJson(name),
  serial: (name: string) => pg.bigserial(name, { mode: 'number' }).primaryKey(),
  bytes: (name: string) => pgBytes(name),
  index: pg.index,
  uniqueIndex: pg.uniqueIndex,
  primaryKey: pg.primaryKey,
} as unknown as Kit
