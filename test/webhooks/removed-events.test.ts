import { afterEach, beforeEach, expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { deliverWebhooks, startWebhookDelivery } from '#src/webhooks/delivery.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'
import { until } from '#test/support/until.ts'
import { startReceiver } from './receiver.ts'

let receiver: ReturnType<typeof startReceiver>
let app: TestApp

const deliver = () => deliverWebhooks(app.context)
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
  await until(() => types().length === 1)
  await deliver()
  await remove(gone)
  await until(() => types().length === 3)
  stop()
  expect(types()).toEqual(['created', 'deleted', 'deleted'])
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
