import { expect, test } from 'bun:test'
import { openTracing } from '#src/observability/tracing.ts'
import { ADMIN_SECRET, BASE, openApp, startApp } from '#test/support/app.ts'
import { startCollector } from '#test/support/collector.ts'

test('two servers in one process share no metrics, limits, queues, caches or keys', async () => {
  const [one, other] = [await startApp(), await startApp()]
  // Returns the metrics without the gauges of the process, because both servers run in one process.
  const counted = (app: typeof one) =>
    app.context.store.metrics
      .render()
      .split('\n')
      // Background jobs commit at any time, so these counts differ.
      .filter(line => !/resident|uptime|commits_total\{|commit_queue \d/.test(line))
  const before = counted(other)
  await one.admin('POST', '/organizations', { slug: 'acme', name: 'Acme', display_name: 'Acme' })
  expect(counted(one)).toContain('gatehouse_events_total{type="organization.created"} 1')
  expect(counted(other)).toEqual(before)
  for (const part of [
    'charges',
    'hashes',
    'attempts',
    'keys',
    'store',
    'themes',
    'places',
    'upstreams',
    'samlKey',
  ] as const)
    expect(one.context[part]).not.toBe(other.context[part])
  const shared = new Set(one.context.store.caches.values())
  expect([...other.context.store.caches.values()].filter(kept => shared.has(kept))).toEqual([])
  expect(await one.context.samlKey()).not.toEqual(await other.context.samlKey())
})

test('two servers in one process trace to their own collectors', async () => {
  await using stack = new AsyncDisposableStack()
  const start = async (otel_service_name: string) => {
    const collector = stack.use(startCollector())
    const settings = { otel_exporter_otlp_endpoint: collector.url, otel_service_name }
    const { context } = await startApp(settings)
    const tracing = openTracing(context)
    const app = await openApp(tracing.core, { wrapKeys: tracing.keys })
    return { collector, close: tracing.close, fetch: tracing.requests(app.fetch, app.routeOf) }
  }
  const servers = [await start('one'), await start('other')]
  const form = { grant_type: 'client_credentials', client_id: 'gatehouse-admin', client_secret: ADMIN_SECRET }
  const ask = async ({ fetch }: (typeof servers)[number]) =>
    fetch(new Request(`${BASE}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) }))
  const answers = await Promise.all(servers.map(ask))
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  await Promise.all(servers.map(({ close }) => close()))
  for (const { collector } of servers) {
    expect(collector.refused).toEqual([])
    expect(collector.spans.map(({ name }) => name).sort()).toEqual([
      'POST /oauth/token',
      'store.commit',
      'store.wait',
      'store.write',
      'token.sign',
    ])
    expect(new Set(collector.spans.map(({ trace }) => trace)).size).toBe(1)
  }
  const seen = servers.map(({ collector: { resources, spans } }) => [
    // Spans arrive in one or several batches.
    [...new Set(resources.map(resource => resource['service.name']))],
    spans[0]?.trace,
  ])
  expect(seen.map(([names]) => names)).toEqual([['one'], ['other']])
  expect(seen[0]?.[1]).not.toBe(seen[1]?.[1])
})
