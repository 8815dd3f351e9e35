import * as postgres from 'drizzle-orm/pg-core'
import type { Kit } from '#src/storage/kit.ts'

const postgresJson = postgres.customType<{ data: unknown; driverData: string }>({
  dataType: () => 'text',
  toDriver: value => JSON.stringify(value),
  fromDriver: text => JSON.parse(text),
})
const bytea = postgres.customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' })
const bigint = (name: string) => postgres.bigint(name, { mode: 'number' })

/**
 * The counterpart of `sqliteKit`. The columns of both kits return the same values, so both kits have the type
 * `Kit`.
 */
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
