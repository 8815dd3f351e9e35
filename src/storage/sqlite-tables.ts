import { sqliteKit } from './kit.ts'
import { tables } from './tables.ts'

/** The tables as SQLite has them, in a module without an engine: drizzle-kit reads them under node. */
export const sqliteTables = tables(sqliteKit)
