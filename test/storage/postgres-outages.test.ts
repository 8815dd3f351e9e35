import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { openStore } from '#src/storage/open.ts'
import { migratePostgres } from '#src/storage/postgres/migrate.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import type { Migrations } from '#src/storage/sqlite/apply-migrations.ts'
import { type PostgresServer, startPostgres, temporaryPostgres } from '#test/support/postgres.ts'
import { isPostgres } from '#test/support/store.ts'
import { until } from '#test/support/until.ts'
import { ask, killOthers, put, stored, unavailable } from './copies.ts'
import { openProxy } from './proxy.ts'

const refusals = () => {
  const refusal = async (url: string, options: { migrate?: boolean } = {}): Promise<string> => {
    const opened = await openPostgres({ url, ...options }).catch(error => error)
    expect(opened).toMatchObject({ name: 'StorageError' })
    expect(opened.message).not.toMatch(/secret|\n/)
    return opened.message
  }

  test.each([
    'postgres://',
    'postgres://localhost',
    'postgres://localhost/a/b',
    'mysql://u:secret@localhost/x',
    'u:secret',
    'postgres://localhost/%zz',
  ])('%s is not a database URL', async database_url => {
    const opened = openStore({ database_url, data_dir: '/nowhere' })
    await expect(opened).rejects.toMatchObject({
      message: expect.stringContaining(
        'GATEHOUSE_DATABASE_URL: must be postgres://user:password@host:port/database',
      ),
      exit_code: 2,
    })
  })

  test('the server cannot be reached', async () => {
    expect(await refusal('postgres://u:secret@127.0.0.1:1/x')).toBe(
      'PostgreSQL at 127.0.0.1:1, database x: no server answers at this address.',
    )
  })

  test('the database does not exist', async () => {
    const { url, drop } = await temporaryPostgres(true)
    expect(await refusal(`${url}_none`)).toContain('the database does not exist')
    await drop()
  })

  test('the database is being restored or copied for longer than the wait', async () => {
    const { url, drop } = await temporaryPostgres()
    const sql = new SQL({ url, max: 1 })
    await sql.begin(async restore => {
      await restore.unsafe('LOCK TABLE settings IN ACCESS EXCLUSIVE MODE')
      await expect(openPostgres({ url, stall: 200 })).rejects.toMatchObject({
        message: expect.stringMatching(
          /^PostgreSQL at .*: the database is locked; a restore or migrate-to may be running/,
        ),
        exit_code: 75,
      })
    })
    await (await openPostgres({ url, stall: 200 })).close()
    await sql.close()
    await drop()
  })

  test('the server ends the connection of a start, as in a restart', async () => {
    const { url, drop } = await temporaryPostgres()
    const sql = new SQL({ url, max: 1 })
    await sql.begin(async restore => {
      await restore.unsafe('LOCK TABLE settings IN ACCESS EXCLUSIVE MODE')
      const opened = openPostgres({ url }).catch(error => error)
      const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
      await until(async () => (await ask(url, `${end} AND datname = current_database()`)).length > 0)
      expect(await opened).toMatchObject({
        message: expect.stringMatching(
          /^PostgreSQL at .*: the server ended the connection; it may be restart/,
        ),
        exit_code: 75,
      })
    })
    await sql.close()
    await drop()
  })

  test('the database is empty, for commands that create none', async () => {
    const { url, drop } = await temporaryPostgres(true)
    expect(await refusal(url, { migrate: false })).toMatch(
      / has no instance\. Start the server to create it\.$/,
    )
    expect(await ask(url, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toHaveLength(0)
    await drop()
  })

  test.each([
    ['of another program', 'CREATE TABLE things (id int)', 'tables of another program'],
    ['with migrations of another program', 'CREATE TABLE migrations (id int)', 'tables of another program'],
  ])('a database %s, which is left unchanged', async (_, statement, said) => {
    const { url, drop } = await temporaryPostgres(true)
    await ask(url, statement)
    expect(await refusal(url)).toContain(said)
    expect(await ask(url, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toHaveLength(1)
    await drop()
  })

  test.each([
    [
      'a newer version',
      "INSERT INTO migrations VALUES ('9999_later.sql', 'x')",
      'a newer version (9999_later.sql)',
    ],
    ['another build', "UPDATE migrations SET hash = 'x'", 'its migration 0000_schema.sql differs'],
  ])('a database of %s', async (_, statement, said) => {
    const { url, drop } = await temporaryPostgres()
    await ask(url, statement)
    expect(await refusal(url)).toContain(said)
    await drop()
  })

  test('R-09 of two migrations the second fails: neither is applied, and the next start applies both', async () => {
    const { url, drop } = await temporaryPostgres(true)
    const sql = new SQL({ url, max: 1 })
    const first: Migrations = { '0000_a.sql': 'CREATE TABLE a (x int)' }
    const second: Migrations = { ...first, '0001_b.sql': 'CREATE TABLE b (x int); INSERT INTO b VALUES (1)' }
    const broken = { ...second, '0002_c.sql': 'CREATE TABLE c (x int); CREATE TABLE c (x int)' }
    const whole = { ...second, '0002_c.sql': 'CREATE TABLE c (x int)' }
    const state = async () => ({
      tables: (
        await ask(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
      ).map(({ tablename }) => tablename),
      applied: (await ask(url, 'SELECT name FROM migrations ORDER BY name')).map(({ name }) => name),
    })
    await migratePostgres(sql, 'here', { migrations: first })
    const before = await state()
    expect(before).toEqual({ tables: ['a', 'migrations'], applied: ['0000_a.sql'] })
    await expect(migratePostgres(sql, 'here', { migrations: broken })).rejects.toThrow('already exists')
    expect(await state()).toEqual(before)
    await migratePostgres(sql, 'here', { migrations: whole })
    expect(await state()).toEqual({
      tables: ['a', 'b', 'c', 'migrations'],
      applied: ['0000_a.sql', '0001_b.sql', '0002_c.sql'],
    })
    await sql.close()
    await drop()
  })

  test('an encoding that cannot store every text', async () => {
    const { url, drop } = await temporaryPostgres(true)
    const name = `${new URL(url).pathname.slice(1)}_latin`
    await ask(url, `CREATE DATABASE ${name} ENCODING 'LATIN1' TEMPLATE template0`)
    expect(await refusal(`${url}_latin`)).toContain('not LATIN1')
    await ask(url, `DROP DATABASE ${name}`)
    await drop()
  })
}

/** These tests stop their server, so no other test uses this server. */
const outages = () => {
  let server: PostgresServer
  let url: string
  beforeAll(async () => {
    server = startPostgres()
    url = `${server.url}/house`
    await ask(`${server.url}/postgres`, 'CREATE DATABASE house', "CREATE ROLE guarded LOGIN PASSWORD 'right'")
  }, 60_000)
  afterAll(() => server.remove())

  test('a stopped server is 503 for all requests and at /readyz, and all recover when it is back', async () => {
    const store = await openPostgres({ url, connections: 2 })
    await store.write(tx => put(tx, 'before'))
    server.stop()
    await expect(stored(store, 'before')).rejects.toMatchObject(unavailable)
    await expect(store.write(tx => put(tx, 'during'))).rejects.toMatchObject(unavailable)
    expect(await store.ready()).toBe(false)
    await expect(store.exclusively('sweep', async () => 1)).rejects.toMatchObject(unavailable)
    server.start()
    expect(await stored(store, 'before')).toBe('before')
    await store.write(tx => put(tx, 'after'))
    expect(await stored(store, 'after')).toBe('after')
    expect(await store.ready()).toBe(true)
    expect(await store.exclusively('sweep', async () => 1)).toBe(1)
    expect(await stored(store, 'during')).toBeUndefined()
    await store.close()
  }, 60_000)

  test('a write that is sent at once with its commit runs again when a restart has ended its connection', async () => {
    const store = await openPostgres({ url, connections: 1 })
    const add = (name: string) =>
      store.write(async tx => {
        void tx.later(tx.insert(tx.tables.settings).values({ name, value: name, updated_at: 1 }).execute())
      })
    await add('kept connection')
    await ask(url, killOthers)
    await add('sent at once')
    expect(await stored(store, 'sent at once')).toBe('sent at once')
    await store.close()
  }, 60_000)

  test('a server that refuses all writes is not ready, until a write succeeds again', async () => {
    const store = await openPostgres({ url, connections: 2 })
    await store.write(tx => put(tx, 'writable'))
    const name = 'default_transaction_read_only'
    const unwritten = await openPostgres({ url, connections: 2 })
    expect(await unwritten.ready()).toBe(true)
    await ask(url, `ALTER SYSTEM SET ${name} = on`, 'SELECT pg_reload_conf()')
    try {
      await until(async () => !(await unwritten.ready()))
      // A connection can run one more statement before it reads the new setting.
      await until(() =>
        store
          .write(tx => put(tx, crypto.randomUUID()))
          .then(
            () => false,
            ({ code }) => code === unavailable.code,
          ),
      )
      expect(await store.ready()).toBe(false)
      expect(await stored(store, 'writable')).toBe('writable')
    } finally {
      await ask(url, `ALTER SYSTEM RESET ${name}`, 'SELECT pg_reload_conf()')
    }
    await until(() => store.ready())
    await until(() => unwritten.ready())
    expect(await stored(store, 'probe')).toBeUndefined()
    await unwritten.close()
    await store.close()
  }, 60_000)

  test('connections that lead to a standby after a failover are replaced', async () => {
    const next = startPostgres()
    await ask(`${next.url}/postgres`, 'CREATE DATABASE house')
    await (await openPostgres({ url: `${next.url}/house` })).close()
    const proxy = openProxy(server.port)
    const store = await openPostgres({ url: url.replace(`${server.port}`, `${proxy.port}`), connections: 2 })
    await store.write(tx => put(tx, 'primary'))
    server.stop()
    const standby = Bun.file(join(server.data, 'standby.signal'))
    await standby.write('')
    server.start()
    try {
      expect(await stored(store, 'primary')).toBe('primary')
      await expect(store.write(tx => put(tx, 'standby'))).rejects.toMatchObject(unavailable)
      // A body that only reads is refused, too, because it would not see the commits of the new primary.
      await expect(store.write(tx => stored({ read: body => body(tx) }, 'primary'))).rejects.toMatchObject(
        unavailable,
      )
      expect(await store.ready()).toBe(false)
      await expect(openPostgres({ url })).rejects.toMatchObject({
        message: expect.stringMatching(
          /^PostgreSQL at .*: the server is a standby or read-only at present\.$/,
        ),
        exit_code: 75,
      })
      proxy.aim(next.port)
      await store.write(tx => put(tx, 'next primary'))
      await until(() => store.ready())
      expect(await stored(store, 'next primary')).toBe('next primary')
      expect(await stored(store, 'standby')).toBeUndefined()
    } finally {
      await store.close()
      proxy.close()
      next.remove()
      await ask(url, 'SELECT pg_promote()')
    }
  }, 60_000)

  test('a database that refuses connections is 503 with Retry-After, until it accepts them', async () => {
    const store = await openPostgres({ url, connections: 2 })
    await store.write(tx => put(tx, 'let in'))
    const admin = `${server.url}/postgres`
    const drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'house'"
    const hba = join(server.data, 'pg_hba.conf')
    const rules = await Bun.file(hba).text()
    for (const [shut, reopen] of [
      ['ALTER DATABASE house ALLOW_CONNECTIONS false', 'ALTER DATABASE house ALLOW_CONNECTIONS true'],
      ['ALTER DATABASE house RENAME TO elsewhere', 'ALTER DATABASE elsewhere RENAME TO house'],
      ['SELECT pg_reload_conf()', 'SELECT pg_reload_conf()'],
    ] as const) {
      const isLogin = shut === reopen
      if (isLogin) await Bun.write(hba, `host house all 127.0.0.1/32 reject\n${rules}`)
      if (isLogin) await ask(admin, shut, drop)
      else await ask(admin, 'ALTER DATABASE house CONNECTION LIMIT -1', drop, shut)
      await expect(stored(store, 'let in')).rejects.toMatchObject(unavailable)
      await expect(store.write(tx => put(tx, shut))).rejects.toMatchObject(unavailable)
      if (isLogin) await Bun.write(hba, rules)
      await ask(admin, reopen)
    }
    expect(await stored(store, 'let in')).toBe('let in')
    await store.close()
  }, 60_000)

  test('without enough connections some writes are 503 in time, and the others use those that are open', async () => {
    const limit = (count: number) => `ALTER ROLE few CONNECTION LIMIT ${count}`
    await ask(`${server.url}/postgres`, 'CREATE ROLE few LOGIN', 'CREATE DATABASE few OWNER few', limit(3))
    const few = `${server.url}/few`.replace('gatehouse@', 'few@')
    const store = await openPostgres({ url: few, connections: 4 })
    // The connection that has prepared the database counts until its process has ended.
    const open = () => ask(`${server.url}/postgres`, "SELECT FROM pg_stat_activity WHERE usename = 'few'")
    await until(async () => (await open()).length === 1)
    /** Starts writes that end when all have begun or one was refused. Returns the refusals. */
    const together = async (count: number, name: string) => {
      const gate = Promise.withResolvers<void>()
      let begun = 0
      const one = (_: unknown, n: number) =>
        store
          .write(async tx => {
            await put(tx, `${name} ${n}`)
            if (++begun === count) gate.resolve()
            await gate.promise
          })
          .catch(error => {
            gate.resolve()
            return error
          })
      return (await Promise.all(Array.from({ length: count }, one))).filter(Boolean)
    }
    // One connection receives notices, so two are left for writes.
    const refused = await together(4, 'short')
    expect(refused).toMatchObject(Array(2).fill({ ...unavailable, cause: { errno: '53300' } }))
    for (const { cause } of refused) expect(cause.cause.message).toContain('too many connections')
    expect(await together(2, 'open')).toEqual([])
    await ask(`${server.url}/postgres`, limit(-1))
    expect(await together(4, 'enough')).toEqual([])
    expect(await ask(few, "SELECT FROM settings WHERE name ~ '^(short|open|enough) '")).toHaveLength(8)
    expect(store.metrics.render()).toMatch(/^gatehouse_commit_queue 0$/m)
    await store.close()
  }, 60_000)

  test('a server that vanished is given up: reads ask again, writes run again', async () => {
    // A new connection has to answer within this time, also on a busy machine.
    const began = performance.now()
    await (await openPostgres({ url, connections: 1 })).close()
    const stall = Math.max(500, 10 * (performance.now() - began))
    const store = await openPostgres({ url, connections: 1, stall })
    await store.write(tx => put(tx, 'quiet'))
    await stored(store, 'quiet')
    const backends = await ask(
      url,
      "SELECT pid FROM pg_stat_activity WHERE datname = 'house' AND application_name = 'gatehouse'",
    )
    expect(backends.length).toBeGreaterThanOrEqual(2)
    for (const { pid } of backends) process.kill(Number(pid), 'SIGSTOP')
    try {
      expect(await stored(store, 'quiet')).toBe('quiet')
      await store.write(tx => put(tx, 'louder'))
      expect(await stored(store, 'louder')).toBe('louder')
    } finally {
      for (const { pid } of backends) process.kill(Number(pid), 'SIGCONT')
    }
    await store.close()
  }, 60_000)

  test('the refusal of a connection without TLS names the setting for TLS', async () => {
    const hba = join(server.data, 'pg_hba.conf')
    const rules = await Bun.file(hba).text()
    const reload = () => ask(`${server.url}/postgres`, 'SELECT pg_reload_conf()')
    await Bun.write(hba, `hostssl all crypt 127.0.0.1/32 trust\nhost all gatehouse 127.0.0.1/32 trust\n`)
    await reload()
    await expect(openPostgres({ url: url.replace('gatehouse@', 'crypt@') })).rejects.toMatchObject({
      message: expect.stringMatching(/from here without TLS; for TLS add \?sslmode=require to the URL\.$/),
      exit_code: 78,
    })
    await Bun.write(hba, rules)
    await reload()
  })

  test('a wrong password, and a user who may not create tables, are told apart', async () => {
    const hba = join(server.data, 'pg_hba.conf')
    const rules = await Bun.file(hba).text()
    await Bun.write(hba, 'host all guarded 127.0.0.1/32 scram-sha-256\n')
    appendFileSync(hba, rules)
    await ask(
      `${server.url}/postgres`,
      'SELECT pg_reload_conf()',
      'REVOKE CREATE ON SCHEMA public FROM PUBLIC',
    )
    const as = (password: string) =>
      openPostgres({ url: `${server.url}/postgres`.replace('gatehouse@', `guarded:${password}@`) })
    await expect(as('wrong')).rejects.toThrow('the password is not accepted')
    await expect(as('right')).rejects.toThrow('permission denied')
    // A user with read access opens the database. The first write of this user reports the missing right
    // instead of a lost transaction.
    await (await openPostgres({ url: `${server.url}/postgres` })).close()
    await ask(`${server.url}/postgres`, 'GRANT SELECT ON ALL TABLES IN SCHEMA public TO guarded')
    const reader = await as('right')
    await expect(reader.write(tx => put(tx, 'mine'))).rejects.toMatchObject({
      ...unavailable,
      cause: { errno: '42501' },
    })
    await reader.close()
  })
}

// The tests of this file run only when test/run.ts runs the tests on PostgreSQL.
if (isPostgres) {
  describe('a start that is refused says why in one line', refusals)
  describe('outages', outages)
}
