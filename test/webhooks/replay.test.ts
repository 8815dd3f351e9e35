import { expect, test } from 'bun:test'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { deliverWebhooks } from '#src/webhooks/delivery.ts'
import { startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'
import { startReceiver } from './receiver.ts'

/** Counts turns of the event loop until it is stopped. Each request waits for such a turn. */
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
  await deliverWebhooks(app.context)
  const ids = users.map(({ id }) => id)
  const targets = () => receiver.received.map(({ body }) => body.data.target_id)
  expect(targets()).toEqual(ids)

  await app.admin('POST', `/webhooks/${hook.id}/replay`, { from })
  const turns = countTurns()
  await deliverWebhooks(app.context)
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
  await deliverWebhooks(app.context)
  for (let stops = 0; stops < 2; stops++) {
    app.clock.advance(2 * DAY)
    await app.events()
    await deliverWebhooks(app.context)
    expect(await app.events()).toEqual([])
    const { body } = await app.admin('GET', `/webhooks/${hook.id}`)
    expect(body).toMatchObject({ enabled: true, disabled_reason: null })
    expect(Date.parse(body.next_attempt_at) - app.clock.now()).toBeLessThan((stops ? 36 : 6) * MINUTE)
  }
  receiver.stop()
})
