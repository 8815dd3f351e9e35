import { anonymousActor, record } from '#src/audit/record.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { startWebhookDelivery } from '#src/webhooks/delivery.ts'
import { realClock, startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { temporaryDatabase } from '#test/support/store.ts'
import { until } from '#test/support/until.ts'
import { print } from './table.ts'

const EVENTS = 2_000
const ROUNDS = 20

/** Stores `count` events in one transaction. Each webhook gets all these events. */
const write = ({ context }: TestApp, count: number): Promise<void> =>
  context.store.write(async tx => {
    for (let i = 0; i < count; i++)
      await record(context, tx, {
        type: 'user.logout',
        actor: anonymousActor,
        target_id: `usr_${i}`,
        target_type: 'user',
        organization_id: 'org_default',
        client_info: { ip_address: '', user_agent: '' },
      })
  })

/**
 * Measures the webhooks of an organization. Each webhook gets every event, and the receiver answers at once.
 */
const measure = async (webhooks: number) => {
  let arrived = 0
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => {
      arrived++
      return new Response(null, { status: 204 })
    },
  })
  const target = `127.0.0.1:${server.port}`
  const store = await openSqlite({ path: await temporaryDatabase() })
  const app = await startApp({ outbound_allow: [target] }, { clock: realClock, store })
  for (let i = 0; i < webhooks; i++)
    await create(app, '/webhooks', { name: `${i}`, url: `http://${target}/`, events: ['user.logout'] })
  const stop = startWebhookDelivery(app.context)
  const lags: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await Bun.sleep(Math.random() * 300)
    const begun = performance.now()
    const wanted = arrived + webhooks
    await write(app, 1)
    await until(() => arrived >= wanted)
    lags.push(performance.now() - begun)
  }
  lags.sort((a, b) => a - b)
  const count = Math.ceil(EVENTS / Math.sqrt(webhooks))
  const wanted = arrived + count * webhooks
  await write(app, count)
  const begun = performance.now()
  await until(() => arrived >= wanted)
  const rate = (count * webhooks) / ((performance.now() - begun) / 1_000)
  stop()
  server.stop(true)
  await store.close()
  return { webhooks, rate, median: lags[ROUNDS / 2] ?? 0, longest: lags.at(-1) ?? 0 }
}

/**
 * Prints the deliveries per second, and the time from the commit of an event until all webhooks have got it.
 */
export const printDeliveries = async (): Promise<void> => {
  print('webhooks  deliveries/s  lag, median  lag, longest')
  for (const webhooks of [1, 100]) {
    const { rate, median, longest } = await measure(webhooks)
    const cells = [webhooks, `${rate.toFixed(0)}`, `${median.toFixed(0)} ms`, `${longest.toFixed(0)} ms`]
    print(cells.map((cell, i) => String(cell).padStart([8, 12, 11, 12][i] ?? 0)).join('  '))
  }
}
