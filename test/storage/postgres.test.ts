import { describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { eq } from 'drizzle-orm'
import { loadConfig } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { openCore } from '#src/operations/core.ts'
import { createInstance } from '#src/operations/first-start.ts'
import { openInstanceKey } from '#src/operations/instance-key.ts'
import { cached } from '#src/storage/cache.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import type { Store, Topic, Transaction } from '#src/storage/store.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { freshStore, isPostgres } from '#test/support/store.ts'
import { until } from '#test/support/until.ts'
import { xmlReader } from '#test/support/xml-reader.ts'
import { ask, copies, killOthers, nextOf, put, stored, unavailable } from './copies.ts'
import { openProxy } from './proxy.ts'
import { organizationRow, userRow } from './rows.ts'

const writes = () => {
  test('blocked by another writer do not block the rest', async () => {
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

  test('overtake a write that waits for the lock while a third write takes long', async () => {
    const store = await freshStore()
    await store.write(tx => put(tx, 'taken'))
    const sql = new SQL({ url: store.path, max: 2 })
    const late = await sql.begin(async long => {
      await long.unsafe('LOCK TABLE write_lock IN ROW EXCLUSIVE MODE')
      // The unique index refuses the write. The store reports the refusal only after it has run the write
      // again under the exclusive lock.
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

  test('run between the statements of a rehearsal, which keeps no totals and no rows', async () => {
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
    }, 'all')
    expect(said).toBe(2)
    const kept = await store.read(q => q.select().from(users))
    expect(kept.map(({ username }) => username)).toEqual(['two'])
    expect(await counted()).toBe(1)
    await store.write(tx => add(tx, 'three'))
    expect(await counted()).toBe(2)
  })

  test('run again from the start when their connection is lost before the commit', async () => {
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

  test('that run again keep the first outcome of an effect that a rollback cannot undo', async () => {
    const store = await freshStore()
    let runs = 0
    const charged: string[] = []
    const charge = (name: string) => () => {
      charged.push(name)
      if (name === 'refused') throw new RangeError(`run ${runs}`)
      return `run ${runs}`
    }
    const write = store.write(async tx => {
      runs++
      const value = tx.once('granted', charge('granted'))
      await put(tx, 'granted', value)
      if (runs === 1) throw Object.assign(new Error('a conflict'), { errno: '40001' })
      tx.once('refused', charge('refused'))
    })
    await expect(write).rejects.toThrow('run 2')
    expect([runs, charged]).toEqual([2, ['granted', 'refused']])
    const again = store.write(async tx => {
      runs++
      try {
        tx.once('refused', charge('refused'))
      } catch (error) {
        if (runs === 3) throw Object.assign(new Error('a conflict', { cause: error }), { errno: '40001' })
        throw error
      }
    })
    await expect(again).rejects.toThrow('run 3')
    expect([runs, charged]).toEqual([4, ['granted', 'refused', 'refused']])
  })

  test('are refused when their connection is lost repeatedly; the next write is not', async () => {
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

  test('whose commit is not answered are refused and never run twice: they may have happened', async () => {
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

  test('that continue after a server error commit nothing', async () => {
    const store = await freshStore()
    const write = store.write(async tx => {
      await put(tx, 'a')
      await put(tx, 'a').catch(() => {})
      await put(tx, 'b').catch(() => {})
    })
    await expect(write).rejects.toMatchObject({ errno: '23505' })
    expect(await stored(store, 'a')).toBeUndefined()
  })

  test('of U+0000, the one character that PostgreSQL cannot store, are bad requests', async () => {
    const store = await freshStore()
    const bad = { code: 'invalid_request', status: 400 }
    await expect(store.write(tx => put(tx, 'a\0b'))).rejects.toMatchObject(bad)
    await expect(stored(store, '\0')).rejects.toMatchObject(bad)
    await store.write(tx => put(tx, 'json', 'a\0b'))
    expect(await stored(store, 'json')).toBe('a\0b')
  })

  test('of two connections use different counter rows', async () => {
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
  test('are sent to the other copy with the topics, and its caches ask again', async () => {
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

  test('that were rolled back are not sent', async () => {
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

  /**
   * Loses the message COMMIT that `side` sends for a write. `cachedValue` reads the written row through a
   * cache.
   */
  const losing = async (side: 'client' | 'server') => {
    const { url, drop } = await temporaryPostgres()
    const proxy = openProxy(Number(new URL(url).port))
    const through = Object.assign(new URL(url), { port: `${proxy.port}` }).href
    const store = await openPostgres({ url: through, connections: 1 })
    const other = await openPostgres({ url, connections: 1 })
    const load = cached<unknown>('clients', (q, name) => stored({ read: body => body(q) }, name))
    // A connection sends only its first COMMIT as text. Each later COMMIT names the prepared statement.
    await other.write(tx => put(tx, 'n', 1))
    expect(await load(store, 'n')).toBe(1)
    const told = nextOf(other)
    const holding = proxy.hold(side, 'COMMIT')
    const lost = store.write(async tx => {
      await tx.update(tx.tables.settings).set({ value: 2 })
      tx.changed('clients')
    })
    const held = await holding
    return {
      ...held,
      lost,
      told,
      cachedValue: () => load(store, 'n'),
      end: async () => {
        await Promise.all([store.close(), other.close()])
        proxy.close()
        await drop()
      },
    }
  }

  test('whose commit happened without an answer are seen by the caches of this copy, too', async () => {
    const { cut, lost, told, cachedValue, end } = await losing('server')
    expect(await told).toEqual(['clients'])
    cut()
    await expect(lost).rejects.toMatchObject(unavailable)
    expect(await cachedValue()).toBe(2)
    await end()
  })

  test('whose commit happens after the write was refused are seen by the caches of this copy, too', async () => {
    const { cut, pass, lost, cachedValue, end } = await losing('client')
    cut()
    await expect(lost).rejects.toMatchObject(unavailable)
    expect(await cachedValue()).toBe(1)
    pass()
    await until(async () => (await cachedValue()) === 2)
    await end()
  })

  test('can be missed when the listening connection is lost, so every cache is cleared', async () => {
    const store = await freshStore()
    const told = nextOf(store)
    await ask(store.path, killOthers)
    expect(await told).toBeUndefined()
  })
}

const turns = () => {
  test('of a name belong to one copy at a time; a waiting copy comes next', async () => {
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
    // Uses each connection of the pool, so that `kill` closes all of them.
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

  test('two copies that start on an empty database at once create one instance', async () => {
    const { url, drop } = await temporaryPostgres(true)
    const start = async () => {
      const store = await openPostgres({ url, connections: 2 })
      const { key } = await openInstanceKey(store, [masterKey(Buffer.alloc(32, 7))], 1)
      const config = { ...loadConfig({}).config, admin_client_secret: 'of-both-copies-alike-and-long-enough' }
      const base = openCore({
        config,
        store,
        clock: { now: () => 1 },
        log: silentLog,
        fetch,
        xml: xmlReader,
        master: key,
      })
      await createInstance(base)
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

// The tests of this file run only when test/run.ts runs the tests on PostgreSQL.
if (isPostgres) {
  describe('writes', writes)
  describe('changes', changes)
  describe('turns', turns)
}
