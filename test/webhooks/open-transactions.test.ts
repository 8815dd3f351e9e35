import { afterAll, expect } from 'bun:test'
import { SQL } from 'bun'
import { settledSeq } from '#src/audit/stream-store.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import type { Store } from '#src/storage/store.ts'
import { deliverWebhooks, startWebhookDelivery } from '#src/webhooks/delivery.ts'
import { startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { addUser } from '#test/support/people.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { allSettled, deliverAll, untilDelivered } from './deliver.ts'
import { startReceiver } from './receiver.ts'

const COLUMNS =
  'id, type, actor_id, actor_email, target_id, target_type, organization_id, ip_address, user_agent, timestamp, metadata, subject_id, mac'

const receiver = startReceiver()
afterAll(() => receiver.stop())

const ids = () => receiver.received.map(({ id }) => id)

type Body = (own: TestApp, store: Store, open: () => Promise<SQL>) => Promise<void>

/**
 * Runs `body` with an app on a database of its own, whose webhook has sent the event of one user. `open`
 * begins a transaction on another connection.
 */
const withHook = (body: Body) => async () => {
  receiver.received.length = 0
  const { url, drop } = await temporaryPostgres(true)
  const store = await openPostgres({ url, connections: 3 })
  const others: SQL[] = []
  // Triggers count events in a row of the slot. Each open transaction has its own slot, so it does not block
  // the writes of the others.
  const open = async () => {
    const sql = new SQL({ url, max: 1 })
    others.push(sql)
    await sql.unsafe(`BEGIN; SET LOCAL gatehouse.slot = '${90 + others.length}'`)
    return sql
  }
  try {
    const own = await startApp({ outbound_allow: [receiver.target] }, { store })
    await create(own, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.*'] })
    await addUser(own, 'ada')
    await deliverAll(own.context)
    await body(own, store, open)
  } finally {
    for (const sql of others) await sql.close()
    await store.close()
    await drop()
  }
}

/** Adds a copy of the event about the first user and returns its `seq`. */
const addEvent = async (sql: SQL, id: string): Promise<number> => {
  const copy = COLUMNS.replace('id, type', `'${id}', type`)
  const source = "SELECT * FROM events WHERE type = 'user.created' LIMIT 1"
  const [row] = await sql.unsafe(
    `INSERT INTO events (${COLUMNS}) SELECT ${copy} FROM (${source}) AS one RETURNING seq::int`,
  )
  return row.seq
}

testOnPostgres(
  'WHK-13 an event of a transaction that is still open is waited for',
  withHook(async (own, store, open) => {
    const held = await open()
    await addEvent(held, 'evt_held')
    await addUser(own, 'bob')
    await deliverWebhooks(own.context)
    await settledSeq(store)
    expect(ids()).toHaveLength(1)
    await held.unsafe('COMMIT')
    await deliverAll(own.context)
    expect(ids()).toHaveLength(3)
    expect(ids()[1]).toBe('evt_held')
  }),
)

testOnPostgres(
  'WHK-13 it is waited for, too, when it began after the transaction of the later event',
  withHook(async (own, store, open) => {
    const [first, held] = [await open(), await open()]
    await first.unsafe('SELECT pg_current_xact_id()')
    await held.unsafe('SAVEPOINT one')
    const seq = await addEvent(held, 'evt_held')
    expect(await addEvent(first, 'evt_later')).toBe(seq + 1)
    await first.unsafe('COMMIT')
    // No transaction with a larger id than `held` has ended, so `xmin` and `xmax` of the first snapshot are
    // equal.
    for (let turn = 0; turn < 3; turn++) expect(await settledSeq(store)).toBeLessThan(seq)
    await deliverWebhooks(own.context)
    expect(ids()).toHaveLength(1)
    await held.unsafe('COMMIT')
    expect(await allSettled(store)).toBe(seq + 1)
    await deliverAll(own.context)
    expect(ids().slice(1)).toEqual(['evt_held', 'evt_later'])
  }),
)

/** Changes the database as a failover to a standby does that has the events up to `seq` only. */
const failOver = async (sql: SQL, seq: number) => {
  await sql.unsafe(`DELETE FROM events WHERE seq > ${seq}`)
  await sql.unsafe(`UPDATE webhooks SET cursor = least(cursor, ${seq})`)
  await sql.unsafe(`SELECT setval('events_seq_seq', ${seq}); COMMIT`)
}

const createdIds = async (own: TestApp) =>
  (await own.admin('GET', '/events?type=user.created&order=asc')).body.data.map(
    ({ id }: { id: string }) => id,
  )

testOnPostgres(
  'WHK-13 a failover that has lost events hides no later event while a transaction is open',
  withHook(async (own, store, open) => {
    const kept = await allSettled(store)
    for (const name of ['bob', 'cid', 'dan']) await addUser(own, name)
    await deliverAll(own.context)
    await failOver(await open(), kept)
    const held = await open()
    await held.unsafe('SELECT pg_current_xact_id()')
    await addUser(own, 'eve')
    await deliverWebhooks(own.context)
    expect(ids()).toHaveLength(4)
    await held.unsafe('COMMIT')
    await addUser(own, 'fay')
    await deliverAll(own.context)
    expect([...ids().slice(0, 1), ...ids().slice(4)]).toEqual(await createdIds(own))
  }),
)

testOnPostgres(
  'WHK-13 a failover that has lost the events of a turn hides no later event',
  withHook(async (own, store, open) => {
    const kept = await allSettled(store)
    for (const name of ['bob', 'cid']) await addUser(own, name)
    receiver.state.answer = async () => {
      if (ids().length === 3) await failOver(await open(), kept)
      return new Response()
    }
    await deliverAll(own.context)
    for (const name of ['dan', 'eve']) await addUser(own, name)
    await deliverAll(own.context)
    expect([...ids().slice(0, 1), ...ids().slice(3)]).toEqual(await createdIds(own))
  }),
)

testOnPostgres(
  'WHK-13 a start while a transaction is open reads no old event again when the transaction has ended',
  withHook(async (own, store, open) => {
    const filler = await open()
    for (let n = 1; n <= 300; n++) await addEvent(filler, `evt_${n}`)
    await filler.unsafe('UPDATE webhooks SET cursor = (SELECT max(seq) FROM events); COMMIT')
    const held = await open()
    await held.unsafe('SELECT pg_current_xact_id()')
    const due = async () => (await filler.unsafe('SELECT next_attempt_at::text AS at FROM webhooks'))[0].at
    const asleep = await due()
    own.clock.advance(1)
    let most = 0
    const read: Store['read'] = async body => {
      const result = await store.read(body)
      if (Array.isArray(result)) most = Math.max(most, result.length)
      return result
    }
    const stop = startWebhookDelivery({ ...own.context, store: { ...store, read } })
    await until(async () => (await due()) !== asleep)
    await held.unsafe('COMMIT')
    await addUser(own, 'bob')
    await untilDelivered([own], () => ids().length === 2)
    await stop()
    expect(ids()[1]).toBe((await own.admin('GET', '/events?type=user.created')).body.data[0].id)
    expect(most).toBeLessThan(10)
  }),
)

testOnPostgres(
  'WHK-13 a late answer about the last event does not hold events back',
  withHook(async (own, store, open) => {
    await allSettled(store)
    const late = Promise.withResolvers<void>()
    const read: Store['read'] = async body => {
      const result = await store.read(body)
      await late.promise
      return result
    }
    const slow = settledSeq({ ...store, read })
    await addUser(own, 'bob')
    const last = await allSettled(store)
    const held = await open()
    await held.unsafe('SELECT pg_current_xact_id()')
    late.resolve()
    expect([await slow, await settledSeq(store)]).toEqual([last, last])
  }),
)

testOnPostgres(
  'WHK-13 the id of a transaction is taken only while an event is not settled',
  withHook(async (own, store) => {
    await addUser(own, 'bob')
    await allSettled(store)
    // The id is taken in a second read.
    let reads = 0
    const read: Store['read'] = body => {
      reads++
      return store.read(body)
    }
    for (let turn = 0; turn < 3; turn++) await settledSeq({ ...store, read })
    expect(reads).toBe(3)
  }),
)
