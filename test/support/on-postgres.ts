import { testWith } from './debian.ts'
import { hasPostgres } from './postgres.ts'

const testThere = testWith('postgresql', hasPostgres() ? '/' : '/usr/lib/postgresql')

/** Runs a test if PostgreSQL is installed. The first test waits for the PostgreSQL server to start. */
export const testOnPostgres = (title: string, body: () => Promise<void>, timeout = 30_000): void =>
  testThere(title, body, timeout)
