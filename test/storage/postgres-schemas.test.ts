/** Tests starts on a PostgreSQL database that has several schemas. */

import { expect } from 'bun:test'
import { openPostgres } from '#src/storage/postgres/store.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { ask } from './copies.ts'

const TABLES = "SELECT schemaname FROM pg_tables WHERE tablename = 'events'"

/** Runs statements that can name the database, then opens a store, and returns its refusal. */
const refusalAfter = async (url: string, statements: (database: string) => string): Promise<string> => {
  await ask(url, statements(new URL(url).pathname.slice(1)))
  const opened = await openPostgres({ url }).catch(error => error)
  expect(opened).toMatchObject({ name: 'StorageError', exit_code: 78 })
  return opened.message
}

testOnPostgres('a new schema that comes first in search_path does not become a second instance', async () => {
  const { url, drop } = await temporaryPostgres()
  expect(await refusalAfter(url, () => 'CREATE SCHEMA gatehouse AUTHORIZATION gatehouse')).toContain(
    'the instance of this user is in schema public, but search_path leads to the empty schema gatehouse',
  )
  expect([...(await ask(url, TABLES))]).toEqual([{ schemaname: 'public' }])
  await ask(url, 'DROP SCHEMA gatehouse')
  await (await openPostgres({ url })).close()
  await drop()
})

testOnPostgres('a search_path without a schema that exists is named', async () => {
  const { url, drop } = await temporaryPostgres(true)
  await (await openPostgres({ url })).close()
  const misspelt = (database: string) => `ALTER DATABASE ${database} SET search_path = nowhere`
  expect(await refusalAfter(url, misspelt)).toContain('search_path leads to no schema that exists')
  await drop()
})

testOnPostgres('an instance of another user in another schema is left alone', async () => {
  const { url, drop } = await temporaryPostgres(true)
  const role = new URL(url).pathname.slice(1)
  await ask(
    url,
    `CREATE ROLE ${role}; CREATE SCHEMA other; CREATE TABLE other.write_lock ()`,
    `ALTER TABLE other.write_lock OWNER TO ${role}`,
  )
  await (await openPostgres({ url })).close()
  expect([...(await ask(url, TABLES))]).toEqual([{ schemaname: 'public' }])
  await ask(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`)
  await drop()
})

testOnPostgres('pg_trgm in a schema that is not in search_path is named', async () => {
  const { url, drop } = await temporaryPostgres(true)
  const said = await refusalAfter(
    url,
    database =>
      `CREATE EXTENSION pg_trgm; CREATE SCHEMA idp; ALTER DATABASE ${database} SET search_path = idp`,
  )
  expect(said).toContain('the extension pg_trgm is missing')
  expect(said).toContain('or add the schema to search_path')
  await drop()
})
