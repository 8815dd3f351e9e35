import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectTo, parseUrl, reserve } from '#src/storage/postgres/connect.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import { type PostgresServer, startPostgres } from '#test/support/postgres.ts'
import { isPostgres } from '#test/support/store.ts'
import { until } from '#test/support/until.ts'
import { ask, killOthers, put, stored } from './copies.ts'

const connections = () => {
  let server: PostgresServer
  let url: string
  beforeAll(async () => {
    server = startPostgres()
    url = `${server.url}/house`
    await ask(`${server.url}/postgres`, 'CREATE DATABASE house')
  }, 60_000)
  afterAll(() => server.remove())

  test('a write runs again when the server did not answer a new connection in time', async () => {
    const store = await openPostgres({ url, connections: 2 })
    const [pid] = readFileSync(join(server.data, 'postmaster.pid'), 'utf8').split('\n')
    process.kill(Number(pid), 'SIGSTOP')
    const write = store.write(tx => put(tx, 'after a hang'))
    try {
      await Promise.race([write, until(() => /outcome="retried"\} 1$/m.test(store.metrics.render()))])
    } finally {
      process.kill(Number(pid), 'SIGCONT')
    }
    await write
    expect(await stored(store, 'after a hang')).toBe('after a hang')
    await store.close()
  }, 60_000)

  test('only a refusal of the last minute is named as the cause of a missing connection', async () => {
    const pool = connectTo(parseUrl(url), 1)
    const connect = () => reserve(pool, 1, async connection => connection`SELECT 1`)
    const { connection: ended } = await connect()
    await ask(url, killOthers)
    await until(() =>
      ended`SELECT 1`.then(
        () => false,
        () => true,
      ),
    )
    await ended.close()
    const { connection } = await connect()
    const late = () => connect().catch(error => error)
    expect(await late()).toMatchObject({ errno: '53300', cause: expect.any(Error) })
    const { now } = performance
    const clock = spyOn(performance, 'now').mockImplementation(() => now.call(performance) + 60_000)
    const { errno, cause } = await late()
    clock.mockRestore()
    expect([errno, cause]).toEqual(['53300', undefined])
    connection.release()
    await pool.close()
  }, 60_000)
}

// The tests of this file run only when test/run.ts runs the tests on PostgreSQL.
if (isPostgres) describe('connections', connections)
