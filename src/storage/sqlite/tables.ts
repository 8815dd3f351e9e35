import { sqliteKit } from '#src/storage/kit.ts'
import { tables } from '#src/storage/tables.ts'

/** The tables as SQLite has them. */
export const sqliteTables = tables(sqliteKit)
