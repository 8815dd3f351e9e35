/** Tests a server of PostgreSQL whose synchronous standby is away. */

import { expect } from 'bun:test'
import { openPostgres } from '#src/storage/postgres/store.ts'
import { putSetting } from '#src/storage/settings.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { startPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { ask } from './copies.ts'

testOnPostgres(
  'a write that changes no row does not make the server ready while all others fail',
  async () => {
    const server = startPostgres()
    const run = (...statements: string[]) => ask(`${server.url}/postgres`, ...statements)
    try {
      await run('CREATE DATABASE house')
      const store = await openPostgres({ url: `${server.url}/house`, stall: 300 })
      const isWritten = () =>
        store
          .write(tx => putSetting(tx, 'standby', 'away', 0))
          .then(
            () => true,
            () => false,
          )
      await run("ALTER SYSTEM SET synchronous_standby_names = 'away'", 'SELECT pg_reload_conf()')
      await until(async () => !(await isWritten()))
      expect(await store.ready()).toBe(false)
      await store.write(async tx => void (await tx.select().from(tx.tables.settings).limit(1)))
      expect(await store.ready()).toBe(false)
      await run('ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()')
      await until(() => store.ready())
      expect(await isWritten()).toBe(true)
      await store.close()
    } finally {
      server.remove()
    }
  },
)
