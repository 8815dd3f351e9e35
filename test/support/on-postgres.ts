import { testWith } from './debian.ts'
import { hasPostgres } from './postgres.ts'

/** `test`, where there is a PostgreSQL. */
export const testOnPostgres = testWith('postgresql', hasPostgres() ? '/' : '/usr/lib/postgresql')
