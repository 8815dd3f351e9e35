import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sweepEvents } from '#src/audit/retention.ts'
import { removeEvents } from '#src/audit/store.ts'
import { newestEvent } from '#src/audit/stream-store.ts'
import { restoreOrganization, takeSnapshot } from '#src/dev/store.ts'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import type { Store } from '#src/storage/store.ts'
import { startWebhookDelivery } from '#src/webhooks/delivery.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'
import { until } from '#test/support/until.ts'
import { deliverAll, untilDelivered } from './deliver.ts'
import { startReceiver } from './receiver.ts'

let receiver: ReturnType<typeof startReceiver>
let app: TestApp

const deliver = () => deliverAll(app.context)
const remove = (user: Json) => app.admin('DELETE', `/users/${user.id}`)
const types = () => receiver.received.map(({ body }) => body.type.replace('user.', ''))
/** Answers the first message after `action`. */
const atFirst = (action: () => Promise<unknown>, status = 204) => {
  receiver.state.answer = async () => {
    receiver.state.answer = () => new Response(null, { status: 204 })
    await action()
    return new Response(null, { status })
  }
}

beforeEach(async () => {
  receiver = startReceiver()
  app = await startApp({ outbound_allow: [receiver.target] })
  await create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.*'] })
  await deliver()
})
afterEach(() => receiver.stop())

test.each([
  ['before the answer is stored', true],
  ['after the answer is stored', false],
])('USR-22 the log keeps no answer to an event of a user who is deleted %s', async (_, isFirst) => {
  const kept = await addUser(app, 'kept')
  await deliver()
  const gone = await addUser(app, 'gone')
  receiver.state.answer = async ({ raw, body }) => {
    if (isFirst && body.type === 'user.created') await remove(gone)
    return new Response(raw)
  }
  await app.admin('PUT', `/users/${kept.id}`, { last_name: 'A' })
  await deliver()
  if (!isFirst) await remove(gone)
  const log = await app.context.store.read(q => {
    const { webhook_deliveries } = q.tables
    return q.select().from(webhook_deliveries).orderBy(webhook_deliveries.number)
  })
  const kinds = log.map(({ event_type, answer }) => [event_type, answer === ''])
  expect(kinds.slice(0, 3)).toEqual([
    ['user.created', true],
    ['user.created', true],
    ['user.updated', false],
  ])
  expect(JSON.stringify(log.filter(row => row.event_type !== 'user.deleted'))).not.toContain(gone.id)
})

test('USR-22 the log keeps no answer to an event that retention has moved', async () => {
  receiver.state.answer = ({ raw }) => new Response(raw)
  await addUser(app, 'moved')
  await deliver()
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const config = { ...app.context.config, event_retention: DAY, data_dir }
  app.clock.advance(2 * DAY)
  await addUser(app, 'kept')
  await deliver()
  expect(await sweepEvents({ ...app.context, config })).toBeGreaterThan(0)
  const log = await app.context.store.read(q => {
    const { webhook_deliveries } = q.tables
    return q.select().from(webhook_deliveries).orderBy(webhook_deliveries.number)
  })
  expect(log.map(({ event_type, answer }) => [event_type, answer !== ''])).toEqual([
    ['user.created', false],
    ['user.created', true],
  ])
})

// After the newest event is removed, SQLite gives its number to the next event. A deleted user's events are
// therefore removed after `user.deleted` is recorded.
test.each([
  ['accepted', 204],
  ['refused', 503],
])('WHK-05 an event of a user who is deleted before it is %s hides no later event', async (_, status) => {
  const gone = await addUser(app, 'gone')
  atFirst(() => remove(gone), status)
  await deliver()
  await addUser(app, 'next')
  app.clock.advance(MINUTE)
  await deliver()
  expect(types()).toEqual(['created', 'deleted', 'created'])
})

test('WHK-05 several newest events of a user who is deleted during a turn hide no later events', async () => {
  const first = await addUser(app, 'first')
  const gone = await addUser(app, 'gone')
  for (const last_name of ['A', 'B']) await app.admin('PUT', `/users/${gone.id}`, { last_name })
  atFirst(() => remove(gone))
  await deliver()
  for (const last_name of ['A', 'B', 'C']) await app.admin('PUT', `/users/${first.id}`, { last_name })
  await deliver()
  // The running turn has already read the removed events.
  const updates = ['updated', 'updated']
  expect(types()).toEqual(['created', 'created', ...updates, 'deleted', ...updates, 'updated'])
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(8)
})

test('WHK-05 events that the webhook does not want hide no later event when they are removed', async () => {
  await create(app, '/webhooks', { name: 'Deletions', url: receiver.url, events: ['user.deleted'] })
  const stop = startWebhookDelivery(app.context)
  const gone = await addUser(app, 'gone')
  await untilDelivered([app], () => types().length === 1)
  await deliver()
  await remove(gone)
  await untilDelivered([app], () => types().length === 3)
  await stop()
  expect(types()).toEqual(['created', 'deleted', 'deleted'])
})

test('WHK-05 an event with the number of a removed one wakes the webhooks', async () => {
  const { store } = app.context
  const stop = startWebhookDelivery(app.context)
  await addUser(app, 'first')
  await untilDelivered([app], () => types().length === 1)
  const hooks = () => store.read(q => q.select().from(q.tables.webhooks))
  await untilDelivered([app], async () => (await hooks()).every(({ idle }) => idle))
  const newest = await store.read(newestEvent)
  await store.write(tx => removeEvents(tx, newest ? [newest] : []))
  await addUser(app, 'next')
  await untilDelivered([app], () => types().length === 2)
  await stop()
})

test('WHK-05 a reset of an organization during a turn hides no later event', async () => {
  const { store } = app.context
  const acme = await create(app, '/organizations', { slug: 'acme', name: 'Acme' })
  const all = { name: 'All', url: receiver.url, events: ['role.*'], all_organizations: true }
  const hook = await create(app, '/webhooks', all)
  const snapshot = await store.read(takeSnapshot)
  const addRole = (name: string) => create(app, '/roles', { name, permissions: [], organization_id: acme.id })
  const first = await addRole('first')
  await addUser(app, 'ada')
  const endOfUser = Promise.withResolvers<void>()
  const endOfFirst = Promise.withResolvers<void>()
  const hasBegunAgain = Promise.withResolvers<void>()
  const afterFirst = Promise.withResolvers<void>()
  let isReleased = false
  receiver.state.answer = async ({ body }) => {
    if (body.type === 'user.created') await endOfUser.promise
    else if (body.data.target_id === first.id) await endOfFirst.promise
    else if (!isReleased) {
      hasBegunAgain.resolve()
      await afterFirst.promise
      return new Response(null, { status: 503 })
    }
    return new Response()
  }
  const write: Store['write'] = async (body, ...rest) => {
    const result = await store.write(body, ...rest)
    if (isReleased) afterFirst.resolve()
    return result
  }
  const delivery = deliverAll({ ...app.context, store: { ...store, write } })
  await until(() => receiver.received.length === 2)
  await store.write(tx => restoreOrganization(tx, snapshot, acme.id, app.clock.now()))
  const next = await addRole('next')
  // The end of another turn lets the restarted turn begin, in the same millisecond as the old one. The old
  // turn gets its answer first.
  endOfUser.resolve()
  await hasBegunAgain.promise
  isReleased = true
  endOfFirst.resolve()
  await delivery
  app.clock.advance(MINUTE)
  await deliver()
  const log = (await app.admin('GET', `/webhooks/${hook.id}/deliveries`)).body.data
  expect(log.map(({ status }: Json) => status)).toEqual([200, 503])
  const roles = receiver.received.filter(({ body }) => body.type === 'role.created')
  expect(roles.map(({ body }) => body.data.target_id)).toEqual([first.id, next.id, next.id])
})

test('a reset of an organization leaves the time since which a webhook fails', async () => {
  const { store, clock } = app.context
  const acme = await create(app, '/organizations', { slug: 'acme', name: 'Acme' })
  const snapshot = await store.read(takeSnapshot)
  const failingSince = async () => (await app.admin('GET', '/webhooks')).body.data[0].failing_since
  receiver.state.answer = () => new Response(null, { status: 503 })
  await addUser(app, 'ada')
  await deliver()
  const since = await failingSince()
  expect(since).toBeString()
  await store.write(tx => restoreOrganization(tx, snapshot, acme.id, clock.now()))
  await deliver()
  expect(receiver.received).toHaveLength(2)
  expect(await failingSince()).toBe(since)
})

test('WHK-06 the deletion of a user makes no attempt at a receiver that fails', async () => {
  receiver.state.answer = () => new Response(null, { status: 429, headers: { 'retry-after': '3600' } })
  const gone = await addUser(app, 'gone')
  await deliver()
  await remove(gone)
  app.clock.advance(59 * MINUTE)
  await deliver()
  expect(types()).toEqual(['created'])
  app.clock.advance(MINUTE)
  await deliver()
  expect(types()).toEqual(['created', 'deleted'])
})
