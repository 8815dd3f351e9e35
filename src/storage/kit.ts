import * as sqlite from 'drizzle-orm/sqlite-core'

const sqliteJson = sqlite.customType<{ data: unknown; driverData: string }>({
  dataType: () => 'text',
  toDriver: value => JSON.stringify(value),
  fromDriver: text => JSON.parse(text),
})

/**
 * Column types of the data model. With them tables.ts defines each table once for both engines. Times are
 * integer milliseconds and JSON is text, because drizzle's columns for timestamps and JSON differ between the
 * engines.
 */
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
