import { tables } from '#src/storage/tables.ts'
import { postgresKit } from './kit.ts'

/** The tables with PostgreSQL's column types. */
export const postgresTables = tables(postgresKit)
