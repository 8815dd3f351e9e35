import { expect, test } from 'bun:test'
import { startWebhookDelivery } from '#src/webhooks/delivery.ts'
import { startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'
import { until } from '#test/support/until.ts'
import { startReceiver } from './receiver.ts'

test('WHK-17 a running server delivers events as they are written, also the ones of a server before it', async () => {
  const receiver = startReceiver()
  const app = await startApp({ outbound_allow: [receiver.target] })
  await create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
  await addUser(app, 'before')
  const stop = startWebhookDelivery(app.context)
  await until(() => receiver.received.length === 1)
  for (const name of ['ada', 'bob']) await addUser(app, name)
  await until(() => receiver.received.length === 3)
  stop()
  const again = startWebhookDelivery(app.context)
  await addUser(app, 'eve')
  await until(() => receiver.received.length === 4)
  again()
  const { body } = await app.admin('GET', '/events?type=user.created&order=asc')
  expect(receiver.received.map(({ id }) => id)).toEqual(body.data.map(({ id }: { id: string }) => id))
  receiver.stop()
})
