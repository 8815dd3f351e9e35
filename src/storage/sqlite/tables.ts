import { sqliteKit } from '#src/storage/kit.ts'
import { tables } from '#src/storage/tables.ts'

/** The tables with SQLite's column types. */
export const sqliteTables = tables(sqliteKit)
