import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { eq } from 'drizzle-orm'
import { pino } from 'pino'
import { loadConfig } from '#src/config.ts'
import { xmlReader } from '#src/directory/identity-providers/xml-reader.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { openCore } from '#src/operations/core.ts'
import { seedInstance } from '#src/operations/first-start.ts'
import { openInstanceKey } from '#src/operations/instance-key.ts'
import { cached } from '#src/storage/cache.ts'
import { openStore } from '#src/storage/open.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import type { Store, Topic, Transaction } from '#src/storage/store.ts'
import { type PostgresServer, startPostgres, temporaryPostgres } from '#test/support/postgres.ts'
import { freshStore, isPostgres, openBeside } from '#test/support/store.ts'
import { until } from '#test/support/until.ts'
import { organizationRow, userRow } from './rows.ts'

const put = async (tx: Transaction, name: string, value: unknown = name) => {
  await tx.insert(tx.tables.settings).values({ name, value, updated_at: 1 })
}
const stored = async (store: Pick<Store, 'read'>, name: string): Promise<unknown> => {
  const [row] = await store.read(q =>
    q.select().from(q.tables.settings).where(eq(q.tables.settings.name, name)),
  )
  return row?.value
}

const unavailable = { code: 'temporarily_unavailable', status: 503, headers: { 'retry-after': '1' } }

/** Asks the server past every store. */
const ask = async (url: string, ...statements: string[]) => {
  const sql = new SQL({ url, max: 1 })
  let answer: Record<string, unknown>[] = []
  for (const statement of statements) answer = await sql.unsafe(statement)
  await sql.close()
  return answer
}

const killOthers =
  'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'

/** Resolves with what the store tells next. */
const nextOf = (store: Store): Promise<string[] | undefined> =>
  new Promise(resolve => store.onChange(topics => resolve(topics && [...topics])))

const copies = async () => {
  const one = await freshStore()
  const other = await openBeside(one.path)
  return { one, other }
}

const writes = () => {
  test('that others keep from committing go on alone', async () => {
    const { one, other } = await copies()
    const { settings } = await one.read(async q => q.tables)
    await one.write(tx => put(tx, 'n', 0))
    let runs = 0
    const bump = (by: number) => async (tx: Transaction) => {
      const [row] = await tx.select().from(settings)
      const value = Number(row?.value) + by
      if (by === 1 && ++runs <= 4) await other.write(bump(100))
      await tx.update(settings).set({ value })
    }
    await one.write(bump(1))
    expect(runs).toBe(5)
    expect(await stored(one, 'n')).toBe(401)
    await other.close()
  })

  test('pass one that waits to be alone while another takes long', async () => {
    const store = await freshStore()
    await store.write(tx => put(tx, 'taken'))
    const sql = new SQL({ url: store.path, max: 2 })
    const late = await sql.begin(async long => {
      await long.unsafe('LOCK TABLE write_lock IN ROW EXCLUSIVE MODE')
      // Refused by the unique index, which is certain only once it was alone.
      const waits = store.write(tx => put(tx, 'taken')).catch((error: unknown) => error)
      const isQueued = "SELECT 1 FROM pg_locks WHERE relation = 'write_lock'::regclass AND NOT granted"
      await until(async () => (await sql.unsafe(isQueued)).length > 0)
      await store.write(tx => put(tx, 'passes'))
      return { waits }
    })
    expect(await late.waits).toMatchObject({ errno: '23505' })
    expect(await stored(store, 'passes')).toBe('passes')
    await sql.close()
  })

  test('come between the statements of a rehearsal, which holds no totals and leaves nothing', async () => {
    const store = await freshStore()
    const { organizations, users } = await store.read(async q => q.tables)
    const organization = organizationRow('acme')
    await store.write(tx => tx.insert(organizations).values(organization))
    const add = (tx: Transaction, name: string) => tx.insert(users).values(userRow(organization.id, name))
    const counted = async () =>
      (await store.read(q => q.select({ count: organizations.user_count }).from(organizations)))[0]?.count
    const said = await store.rehearse(async tx => {
      await add(tx, 'one')
      tx.changed('users')
      tx.after(() => expect.unreachable())
      await store.write(other => add(other, 'two'))
      return tx.$count(users)
    })
    expect(said).toBe(2)
    const kept = await store.read(q => q.select().from(users))
    expect(kept.map(({ username }) => username)).toEqual(['two'])
    expect(await counted()).toBe(1)
    await store.write(tx => add(tx, 'three'))
    expect(await counted()).toBe(2)
  })

  test('run again when their connection is lost before the commit, and all that came before is undone', async () => {
    const store = await freshStore()
    let runs = 0
    await store.write(async tx => {
      await put(tx, 'a')
      if (++runs === 1) await ask(store.path, killOthers)
      await put(tx, 'b')
    })
    expect(runs).toBe(2)
    expect([await stored(store, 'a'), await stored(store, 'b')]).toEqual(['a', 'b'])
  })

  test('are refused when it is lost again and again; the next one is not', async () => {
    const store = await freshStore()
    const refused = store.write(async tx => {
      await put(tx, 'a')
      await ask(store.path, killOthers)
      await put(tx, 'b')
    })
    await expect(refused).rejects.toMatchObject(unavailable)
    expect(await stored(store, 'a')).toBeUndefined()
    await store.write(tx => put(tx, 'c'))
    expect(await stored(store, 'c')).toBe('c')
  })

  test('whose commit nobody answers are refused and never run twice: they may have happened', async () => {
    const store = await freshStore()
    await ask(
      store.path,
      `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'`,
      `CREATE CONSTRAINT TRIGGER die AFTER INSERT ON settings DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW WHEN (NEW.name = 'last') EXECUTE FUNCTION die()`,
    )
    let runs = 0
    const lost = store.write(async tx => {
      runs++
      await put(tx, 'last')
    })
    await expect(lost).rejects.toMatchObject(unavailable)
    expect(runs).toBe(1)
    await store.write(tx => put(tx, 'next'))
    expect(await stored(store, 'next')).toBe('next')
  })

  test('that go past an error of the server commit nothing', async () => {
    const store = await freshStore()
    const write = store.write(async tx => {
      await put(tx, 'a')
      await put(tx, 'a').catch(() => {})
      await put(tx, 'b').catch(() => {})
    })
    await expect(write).rejects.toMatchObject({ errno: '23505' })
    expect(await stored(store, 'a')).toBeUndefined()
  })

  test('of U+0000, the one character that PostgreSQL does not store, are bad requests', async () => {
    const store = await freshStore()
    const bad = { code: 'invalid_request', status: 400 }
    await expect(store.write(tx => put(tx, 'a\0b'))).rejects.toMatchObject(bad)
    await expect(stored(store, '\0')).rejects.toMatchObject(bad)
    await store.write(tx => put(tx, 'json', 'a\0b'))
    expect(await stored(store, 'json')).toBe('a\0b')
  })

  test('of two connections count in different rows', async () => {
    const { one, other } = await copies()
    const slots = await Promise.all(
      [one, other].map(store =>
        store.write(async tx => {
          const rows = await tx.select({ at: tx.tables.settings.name }).from(tx.tables.settings)
          await put(tx, `${rows.length}${Math.random()}`)
        }),
      ),
    )
    expect(slots).toHaveLength(2)
    const held = await ask(
      one.path,
      "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = 1197766765 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    expect(new Set(held.map(({ objid }) => objid)).size).toBe(held.length)
    expect(held.length).toBeGreaterThanOrEqual(2)
    await other.close()
  })
}

const changes = () => {
  test('are told to the other copy with the topics, and its caches ask again', async () => {
    const { one, other } = await copies()
    const load = cached<unknown>('clients', async (q, name) => {
      const rows = await q.select().from(q.tables.settings).where(eq(q.tables.settings.name, name))
      return rows[0]?.value
    })
    await one.write(tx => put(tx, 'n', 1))
    expect([await load(one, 'n'), await load(other, 'n')]).toEqual([1, 1])
    const told = nextOf(other)
    await one.write(async tx => {
      await tx.update(tx.tables.settings).set({ value: 2 })
      tx.changed('clients')
      tx.changed('roles')
    })
    expect(await load(one, 'n')).toBe(2)
    expect((await told)?.sort()).toEqual(['clients', 'roles'])
    expect(await load(other, 'n')).toBe(2)
    await other.close()
  })

  test('that were undone are told to nobody', async () => {
    const { one, other } = await copies()
    const told: (Topic[] | undefined)[] = []
    other.onChange(topics => void told.push(topics && [...topics]))
    const refused = one.write(async tx => {
      tx.changed('keys')
      await put(tx, 'a')
      throw new RangeError('no')
    })
    await expect(refused).rejects.toThrow('no')
    const last = nextOf(other)
    await one.write(async tx => tx.changed('mails'))
    expect(await last).toEqual(['mails'])
    expect(told).toEqual([['mails']])
    await other.close()
  })

  test('may have been missed when the connection that listens was lost: everything is dropped', async () => {
    const store = await freshStore()
    const told = nextOf(store)
    await ask(store.path, killOthers)
    expect(await told).toBeUndefined()
  })
}

const turns = () => {
  test('of a name are one copy’s at a time; who waits comes next', async () => {
    const { one, other } = await copies()
    const [begun, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const order: string[] = []
    const first = one.exclusively('sweep', async () => {
      begun.resolve()
      await done.promise
      order.push('first')
      return 'first'
    })
    await begun.promise
    expect(await other.exclusively('sweep', async () => 'second')).toBeUndefined()
    expect(await other.exclusively('else', async () => 'second')).toBe('second')
    const second = other.exclusively('sweep', async () => void order.push('second'), 'wait')
    done.resolve()
    expect(await first).toBe('first')
    await second
    expect(order).toEqual(['first', 'second'])
    await other.close()
  })

  test('are taken although every connection of the pool was lost', async () => {
    const { url, drop } = await temporaryPostgres()
    const store = await openPostgres({ url, connections: 4 })
    const admin = new SQL({ url, max: 1 })
    const killed = `${killOthers} AND application_name = 'gatehouse'`
    // All of the pool are in use once, one of them when it is killed.
    const hold = (_: unknown, i: number) => store.exclusively(`hold ${i}`, () => Bun.sleep(0))
    for (const round of [1, 2, 3]) {
      await Promise.all(Array.from({ length: 4 }, hold))
      const kill = async () => void (await admin.unsafe(killed))
      await store.exclusively('killer', kill)
      expect(await store.exclusively('sweep', async () => round)).toBe(round)
    }
    await admin.close()
    await store.close()
    await drop()
  })

  test('two copies that start on an empty database at once make one instance', async () => {
    const { url, drop } = await temporaryPostgres(true)
    const start = async () => {
      const store = await openPostgres({ url, connections: 2 })
      const { key } = await openInstanceKey(store, [masterKey(Buffer.alloc(32, 7))], 1)
      const config = { ...loadConfig({}).config, admin_client_secret: 'of-both-copies-alike-and-long-enough' }
      const base = openCore({
        config,
        store,
        clock: { now: () => 1 },
        log: pino({ level: 'silent' }),
        fetch,
        xml: xmlReader,
        master: key,
      })
      await seedInstance(base)
      return { store, key }
    }
    const [one, other] = await Promise.all([start(), start()])
    const read = (store: Store) => store.read(q => q.select().from(q.tables.clients))
    expect(await read(one.store)).toEqual(await read(other.store))
    expect(await read(one.store)).toHaveLength(1)
    expect(one.key.derive('x')).toEqual(other.key.derive('x'))
    const wrong = openInstanceKey(one.store, [masterKey(Buffer.alloc(32, 8))], 1)
    await expect(wrong).rejects.toThrow('The master key does not belong to this database')
    await Promise.all([one.store.close(), other.store.close()])
    await drop()
  })
}

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
  ])('%s is no URL of a database', async database_url => {
    const opened = openStore({ database_url, data_dir: '/nowhere' })
    await expect(opened).rejects.toMatchObject({
      message: expect.stringContaining(
        'GATEHOUSE_DATABASE_URL: must be postgres://user:password@host:port/database',
      ),
      exit_code: 2,
    })
  })

  test('a server that is not there', async () => {
    expect(await refusal('postgres://u:secret@127.0.0.1:1/x')).toBe(
      'PostgreSQL at 127.0.0.1:1, database x: no server answers at this address.',
    )
  })

  test('a database that is not there', async () => {
    const { url, drop } = await temporaryPostgres(true)
    expect(await refusal(`${url}_none`)).toContain('the database does not exist')
    await drop()
  })

  test('one that is being restored, or copied, for longer than is waited', async () => {
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

  test('an empty one, for commands that make none', async () => {
    const { url, drop } = await temporaryPostgres(true)
    expect(await refusal(url, { migrate: false })).toContain('the database has no instance of this version')
    expect(await ask(url, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toHaveLength(0)
    await drop()
  })

  test.each([
    ['of another program', 'CREATE TABLE things (id int)', 'tables of another program'],
    ['with migrations of another program', 'CREATE TABLE migrations (id int)', 'tables of another program'],
  ])('a database %s, which is left as it is', async (_, statement, said) => {
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
    ['another build', "UPDATE migrations SET hash = 'x'", 'created with a different 0000_schema.sql'],
  ])('a database of %s', async (_, statement, said) => {
    const { url, drop } = await temporaryPostgres()
    await ask(url, statement)
    expect(await refusal(url)).toContain(said)
    await drop()
  })

  test('an encoding that has no room for every text', async () => {
    const { url, drop } = await temporaryPostgres(true)
    const name = `${new URL(url).pathname.slice(1)}_latin`
    await ask(url, `CREATE DATABASE ${name} ENCODING 'LATIN1' TEMPLATE template0`)
    expect(await refusal(`${url}_latin`)).toContain('not LATIN1')
    await ask(url, `DROP DATABASE ${name}`)
    await drop()
  })
}

/** On a server of its own, which goes down. */
const outages = () => {
  let server: PostgresServer
  let url: string
  beforeAll(async () => {
    server = startPostgres()
    url = `${server.url}/house`
    await ask(`${server.url}/postgres`, 'CREATE DATABASE house', "CREATE ROLE guarded LOGIN PASSWORD 'right'")
  }, 60_000)
  afterAll(() => server.remove())

  test('a server that goes is 503 for all, says so at /readyz, and all goes on by itself when it is back', async () => {
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

  test('a database that lets nobody in is 503 with Retry-After, until it does again', async () => {
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

  test('a server that is gone without a word is given up: reads ask anew, writes are run again', async () => {
    const store = await openPostgres({ url, connections: 1, stall: 500 })
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

  test('a wrong password, and a user who may not make tables, are told apart', async () => {
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
    // One that may read alone opens it, and hears the reason at its first write, not that its transaction is lost.
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

// Everything here needs PostgreSQL itself, which test/run.ts starts.
if (isPostgres) {
  describe('writes', writes)
  describe('changes', changes)
  describe('turns', turns)
  describe('a start that is refused says why in one line', refusals)
  describe('outages', outages)
}
