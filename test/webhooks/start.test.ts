import { expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NEVER } from '#src/delivery/queue.ts'
import { MINUTE } from '#src/lib/duration.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import type { Store } from '#src/storage/store.ts'
import { start } from '#src/testing/start.ts'
import { deliverWebhooks, startWebhookDelivery } from '#src/webhooks/delivery.ts'
import { saveWebhook, wakeAll } from '#src/webhooks/store.ts'
import { adminAt } from '#test/support/admin-calls.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { freshStore } from '#test/support/store.ts'
import { until } from '#test/support/until.ts'
import { allSettled, deliverAll, untilDelivered } from './deliver.ts'
import { startReceiver } from './receiver.ts'

/** Returns a receiver that resolves `begun` at its first event and answers with `answer`. */
const startHeldReceiver = () => {
  const receiver = startReceiver()
  const begun = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<Response>()
  receiver.state.answer = () => {
    begun.resolve()
    return answer.promise
  }
  return { receiver, begun, answer }
}

test('WHK-17 a running server delivers events as they are written, and events that the last server left', async () => {
  const receiver = startReceiver()
  const app = await startApp({ outbound_allow: [receiver.target] })
  await create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
  await addUser(app, 'before')
  const stop = startWebhookDelivery(app.context)
  await untilDelivered([app], () => receiver.received.length === 1)
  for (const name of ['ada', 'bob']) await addUser(app, name)
  await untilDelivered([app], () => receiver.received.length === 3)
  await stop()
  const again = startWebhookDelivery(app.context)
  await addUser(app, 'eve')
  await untilDelivered([app], () => receiver.received.length === 4)
  await again()
  const { body } = await app.admin('GET', '/events?type=user.created&order=asc')
  expect(receiver.received.map(({ id }) => id)).toEqual(body.data.map(({ id }: { id: string }) => id))
  receiver.stop()
})

test('at a stop, finishes the event that is being sent and begins no other', async () => {
  const { receiver, begun, answer } = startHeldReceiver()
  const app = await startApp({ outbound_allow: [receiver.target] })
  const hook = await create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
  for (const name of ['ada', 'bob', 'eve']) await addUser(app, name)
  const stop = startWebhookDelivery(app.context)
  await begun.promise
  const stopped = stop()
  answer.resolve(new Response(null, { status: 204 }))
  await stopped
  const sent = async () => (await app.admin('GET', `/webhooks/${hook.id}/deliveries`)).body.data.length
  expect([receiver.received.length, await sent()]).toEqual([1, 1])
  receiver.state.answer = () => new Response(null, { status: 204 })
  await deliverAll(app.context)
  expect(await sent()).toBe(3)
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(3)
  expect(receiver.received).toHaveLength(3)
  receiver.stop()
})

test('WHK-10 the webhooks of one organization are not read for the events of another', async () => {
  const receiver = startReceiver()
  const app = await startApp({ outbound_allow: [receiver.target] })
  const { id: organization_id } = await addOrganization(app, 'acme')
  const shop = { name: 'Shop', url: receiver.url, events: ['user.*'] }
  await create(app, '/webhooks', shop)
  const theirs = await create(app, '/webhooks', { ...shop, organization_id })
  // The filter is invalid, so code that reads it fails.
  const events = 1 as never
  await app.context.store.write(tx => saveWebhook(tx, { id: theirs.id, events, next_attempt_at: NEVER }))
  const stop = startWebhookDelivery(app.context)
  for (const [i, name] of ['ada', 'bob'].entries()) {
    await addUser(app, name)
    await untilDelivered([app], () => receiver.received.length === i + 1)
  }
  await stop()
  receiver.stop()
})

test('WHK-10 the webhooks of each organization are read once for all types, and other work runs between', async () => {
  const receiver = startReceiver()
  const app = await startApp({ outbound_allow: [receiver.target] })
  const { store } = app.context
  await create(app, '/webhooks', {
    name: 'All',
    url: receiver.url,
    events: ['user.created', 'role.created'],
    all_organizations: true,
  })
  const organizations: string[] = []
  for (const name of ['one', 'two', 'three']) organizations.push((await addOrganization(app, name)).id)
  let turns = 0
  let isTurning = true
  const turn = (): void => {
    turns++
    if (isTurning) setImmediate(turn)
  }
  turn()
  const loads: number[] = []
  let gate = Promise.withResolvers<void>()
  gate.resolve()
  const read: Store['read'] = async body => {
    await gate.promise
    return store.read(q =>
      body(
        new Proxy(q, {
          get: (target, name) => {
            const value = Reflect.get(target, name)
            if (name !== 'select') return value
            return (fields: object | undefined) => {
              if (fields && Object.keys(fields).join() === 'id,events') loads.push(turns)
              return value.call(target, fields)
            }
          },
        }),
      ),
    )
  }
  const stop = startWebhookDelivery({
    ...app.context,
    store: Object.assign(Object.create(store), { read }),
  })
  const isIdle = () => store.read(async q => (await q.select().from(q.tables.webhooks))[0]?.idle)
  // Waits until the first poll is over and the first event causes a read of the filters. The first poll wakes
  // all webhooks without reading their filters.
  let before = 0
  await until(async () => {
    await addUser(app, `user${before++}`)
    return loads.length > 0
  })
  await untilDelivered([app], async () => receiver.received.length === before && (await isIdle()) === true)
  loads.length = 0
  gate = Promise.withResolvers()
  for (const organization_id of organizations) {
    await addUser(app, 'ada', { organization_id })
    await create(app, '/roles', { name: 'r', permissions: [], organization_id })
  }
  gate.resolve()
  await untilDelivered(
    [app],
    () => receiver.received.length === before + 6 && loads.length >= organizations.length,
  )
  await stop()
  isTurning = false
  expect(loads).toHaveLength(organizations.length)
  expect(new Set(loads).size).toBe(organizations.length)
  receiver.stop()
})

test('WHK-19 a killed sender loses no event, keeps the order, and repeats an event with the same id', async () => {
  const receiver = startReceiver()
  const store = await freshStore()
  const app = await startApp({ outbound_allow: [receiver.target] }, { store })
  await create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
  for (let i = 0; i < 6; i++) await addUser(app, `user${i}`)
  const third = Promise.withResolvers<void>()
  receiver.state.answer = () => {
    if (receiver.received.length < 3) return new Response(null, { status: 204 })
    third.resolve()
    return new Promise<Response>(() => {})
  }
  const sender = Bun.spawn(
    [process.execPath, join(import.meta.dir, '../delivery/sender.ts'), store.path, receiver.target],
    { stdout: 'ignore', stderr: 'inherit' },
  )
  await third.promise
  sender.kill('SIGKILL')
  await sender.exited
  receiver.state.answer = () => new Response(null, { status: 204 })
  await deliverAll(app.context)
  expect(receiver.received).toHaveLength(3)
  app.clock.advance(2 * MINUTE)
  await deliverAll(app.context)
  const { body } = await app.admin('GET', '/events?type=user.created&order=asc')
  const ids = body.data.map(({ id }: { id: string }) => id)
  expect(receiver.received.map(({ id }) => id)).toEqual([...ids.slice(0, 3), ...ids.slice(2)])
  receiver.stop()
})

test('WHK-18 a webhook that was read before the turn of another sender is not claimed after it', async () => {
  const receiver = startReceiver()
  const app = await startApp({ outbound_allow: [receiver.target] })
  const { context } = app
  await create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
  await addUser(app, 'ada')
  const { store, clock } = context
  let turns = 0
  /**
   * After the first read of the due webhooks, another sender delivers to all of these webhooks in the same
   * millisecond.
   */
  const read: Store['read'] = async body => {
    const found = await store.read(body)
    if (Array.isArray(found) && found[0]?.url === receiver.url && turns++ === 0) {
      await deliverWebhooks(context)
      await store.write(tx => wakeAll(tx, clock.now()))
    }
    return found
  }
  await allSettled(store)
  await deliverWebhooks({ ...context, store: Object.assign(Object.create(store), { read }) })
  expect(turns).toBeGreaterThan(0)
  expect(receiver.received).toHaveLength(1)
  receiver.stop()
})

test('WHK-17 a development server that stops stores the outcome of the event that is being sent', async () => {
  const { receiver, begun, answer } = startHeldReceiver()
  const data_dir = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  const run = async () => {
    const { url, credentials, stop } = await start({ data_dir })
    return { stop, admin: adminAt(url, credentials.admin_client_secret) }
  }
  const first = await run()
  const hook = { name: 'Shop', url: receiver.url, events: ['role.created'] }
  const { id } = (await first.admin('POST', '/webhooks', hook)).body
  await first.admin('POST', '/roles', { name: 'editor', permissions: [] })
  await begun.promise
  const stopped = first.stop()
  answer.resolve(new Response(null, { status: 204 }))
  await stopped
  const second = await run()
  const { body } = await second.admin('GET', `/webhooks/${id}/deliveries`)
  await second.stop()
  expect(body.data.map(({ status }: Json) => status)).toEqual([204])
  receiver.stop()
  await rm(data_dir, { recursive: true })
})

testOnPostgres('WHK-18 two copies of a running server deliver each event once, in order', async () => {
  const { url, drop } = await temporaryPostgres(true)
  const stores = await Promise.all([1, 2].map(() => openPostgres({ url, connections: 3 })))
  const receiver = startReceiver()
  const settings = { outbound_allow: [receiver.target] }
  const apps: TestApp[] = []
  for (const store of stores) apps.push(await startApp(settings, { store }))
  const [one, other] = apps as [TestApp, TestApp]
  await create(one, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
  const stops = apps.map(({ context }) => startWebhookDelivery(context))
  for (let i = 0; i < 10; i++) await Promise.all([addUser(one, `ada${i}`), addUser(other, `bob${i}`)])
  await untilDelivered(apps, () => receiver.received.length >= 20)
  await Promise.all(stops.map(stop => stop()))
  const rows = await one.context.store.read(q =>
    q.select().from(q.tables.events).orderBy(q.tables.events.seq),
  )
  const created = rows.filter(({ type }) => type === 'user.created').map(({ id }) => id)
  expect(receiver.received.map(({ id }) => id)).toEqual(created)
  receiver.stop()
  for (const store of stores) await store.close()
  await drop()
})
