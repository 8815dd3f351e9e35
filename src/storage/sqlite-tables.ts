import { sqliteKit } from './kit.ts'
import { tables } from './tables.ts'

/** The tables as SQLite has them. */
export const sqliteTables = tables(sqliteKit)
