import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { DAY, HOUR, MINUTE } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { applySeed } from '#src/seed/apply.ts'
import { readSeed } from '#src/seed/read.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import { startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { addUser } from '#test/support/people.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { deliverAll } from './deliver.ts'
import { startReceiver } from './receiver.ts'

/** Counts turns of the event loop until the count is stopped. Each request waits for a turn. */
const countTurns = () => {
  let turns = 0
  let next: NodeJS.Immediate
  const count = () => {
    turns++
    next = setImmediate(count)
  }
  next = setImmediate(count)
  return () => {
    clearImmediate(next)
    return turns
  }
}

test('WHK-20 a replay that skips many events lets other work run, and delivers the others in order', async () => {
  const receiver = startReceiver()
  const app = await startApp({ outbound_allow: [receiver.target] })
  const hook = await create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
  const from = new Date(app.clock.now()).toISOString()
  const users = [await addUser(app, 'first')]
  await app.context.store.write(async tx => {
    const { events } = tx.tables
    const [row] = await tx.select().from(events).limit(1)
    const { seq: _, ...event } = row as typeof events.$inferSelect
    const copies = () =>
      Array.from({ length: 500 }, () => ({ ...event, type: 'role.updated' as const, id: newId('evt', 1) }))
    for (let i = 0; i < 40; i++) await tx.insert(events).values(copies())
  })
  users.push(await addUser(app, 'last'))
  await deliverAll(app.context)
  const ids = users.map(({ id }) => id)
  const targets = () => receiver.received.map(({ body }) => body.data.target_id)
  expect(targets()).toEqual(ids)

  await app.admin('POST', `/webhooks/${hook.id}/replay`, { from })
  const turns = countTurns()
  await deliverAll(app.context)
  expect(turns()).toBeGreaterThanOrEqual(20)
  expect(targets()).toEqual([...ids, ...ids])
  receiver.stop()
})

test('WHK-08 the time in which no server ran does not count as failing', async () => {
  const receiver = startReceiver()
  receiver.state.answer = () => new Response(null, { status: 503 })
  const app = await startApp({ outbound_allow: [receiver.target] })
  const hook = await create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
  await addUser(app, 'ada')
  await deliverAll(app.context)
  for (let stops = 0; stops < 2; stops++) {
    app.clock.advance(2 * DAY)
    await app.events()
    await deliverAll(app.context)
    expect(await app.events()).toEqual([])
    const { body } = await app.admin('GET', `/webhooks/${hook.id}`)
    expect(body).toMatchObject({ enabled: true, disabled_reason: null })
    expect(Date.parse(body.next_attempt_at) - app.clock.now()).toBeLessThan((stops ? 36 : 6) * MINUTE)
  }
  receiver.stop()
})

test('WHK-11 a replay has an event that was stored before another with an earlier time', async () => {
  const receiver = startReceiver()
  const app = await startApp({ outbound_allow: [receiver.target] })
  const hook = await create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
  app.clock.advance(HOUR + 1)
  const late = await addUser(app, 'late')
  app.clock.advance(-1)
  const from = new Date(app.clock.now()).toISOString()
  const early = await addUser(app, 'early')
  await deliverAll(app.context)
  receiver.received.length = 0
  expect((await app.admin('POST', `/webhooks/${hook.id}/replay`, { from })).status).toBe(200)
  await deliverAll(app.context)
  expect(receiver.received.map(({ body }) => body.data.target_id)).toEqual([late.id, early.id])
  receiver.stop()
})

/** Starts a server on a database of its own, with a user whose events are an hour old. */
const startOnPostgres = async () => {
  const { url, drop } = await temporaryPostgres(true)
  const store = await openPostgres({ url, connections: 3 })
  const receiver = startReceiver()
  const app = await startApp({ outbound_allow: [receiver.target] }, { store })
  await addUser(app, 'ada')
  app.clock.advance(HOUR)
  const sql = new SQL({ url, max: 1 })
  const columns =
    'type, actor_id, actor_email, target_id, target_type, organization_id, ip_address, user_agent, metadata, subject_id, mac'
  /** Runs `action` while a transaction is open that stores an event with this id. */
  const beside = (id: string, action: () => Promise<unknown>) =>
    sql.begin(async held => {
      await held.unsafe("SET LOCAL gatehouse.slot = '99'")
      await held.unsafe(
        `INSERT INTO events (id, timestamp, ${columns}) SELECT '${id}', ${app.clock.now()}, ${columns}
         FROM (SELECT * FROM events WHERE type = 'user.created' LIMIT 1) AS one`,
      )
      await action()
    })
  /** Delivers the events, and returns the ids of those that have arrived. */
  const deliver = async () => {
    await deliverAll(app.context)
    return receiver.received.splice(0).map(({ id }) => id)
  }
  const stop = async () => {
    receiver.stop()
    await sql.close()
    await store.close()
    await drop()
  }
  const hook = { name: 'Shop', url: receiver.url, events: ['user.created'] as ['user.created'] }
  return { app, beside, deliver, stop, hook }
}

testOnPostgres(
  'WHK-13 a new webhook and a replay wait for the events of transactions that are open',
  async () => {
    const { app, beside, deliver, stop, hook } = await startOnPostgres()
    let id = ''
    await beside('evt_first', async () => {
      await addUser(app, 'bob')
      id = (await create(app, '/webhooks', hook)).id
    })
    expect(await deliver()).toContain('evt_first')
    app.clock.advance(HOUR)
    const from = new Date(app.clock.now()).toISOString()
    await beside('evt_second', async () => {
      await addUser(app, 'eve')
      await app.admin('POST', `/webhooks/${id}/replay`, { from })
    })
    expect((await deliver())[0]).toBe('evt_second')
    await stop()
  },
)

testOnPostgres('WHK-13 a new webhook of a seed file waits for them, too', async () => {
  const { app, beside, deliver, stop, hook } = await startOnPostgres()
  await beside('evt_first', async () => {
    await addUser(app, 'bob')
    await applySeed(app.context, readSeed({ webhooks: [hook] }))
  })
  const found = await deliver()
  expect([found[0], found.length]).toEqual(['evt_first', 2])
  await stop()
})
