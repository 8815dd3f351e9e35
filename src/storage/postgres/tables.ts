import { tables } from '#src/storage/tables.ts'
import { postgresKit } from './kit.ts'

/** The tables as PostgreSQL has them. */
export const postgresTables = tables(postgresKit)
