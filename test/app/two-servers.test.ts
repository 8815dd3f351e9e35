import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'

test('two servers in one process share nothing: metrics, limits, queues, caches and keys are of each', async () => {
  const [one, other] = [await startApp(), await startApp()]
  // Without the gauges of the process that both are in.
  const counted = (app: typeof one) =>
    app.context.store.metrics
      .render()
      .split('\n')
      .filter(line => !/resident|uptime/.test(line))
  const before = counted(other)
  await one.admin('POST', '/organizations', { slug: 'acme', name: 'Acme', display_name: 'Acme' })
  expect(counted(one)).toContain('gatehouse_events_total{type="organization.created"} 1')
  expect(counted(other)).toEqual(before)
  for (const part of ['charges', 'hashes', 'attempts', 'keys', 'store'] as const)
    expect(one.context[part]).not.toBe(other.context[part])
  const shared = new Set(one.context.store.caches.values())
  expect([...other.context.store.caches.values()].filter(kept => shared.has(kept))).toEqual([])
})
