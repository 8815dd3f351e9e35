import { testWith } from './debian.ts'
import { hasPostgres } from './postgres.ts'

const testThere = testWith('postgresql', hasPostgres() ? '/' : '/usr/lib/postgresql')

/** `test`, where there is a PostgreSQL. The first of a run waits until its server is made. */
export const testOnPostgres = (title: string, body: () => Promise<void>, timeout = 30_000): void =>
  testThere(title, body, timeout)
