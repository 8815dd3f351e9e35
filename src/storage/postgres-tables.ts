import { postgresKit } from './postgres-kit.ts'
import { tables } from './tables.ts'

/** The tables as PostgreSQL has them. */
export const postgresTables = tables(postgresKit)
