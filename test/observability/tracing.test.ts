/**
 * Tests the traces that the executable sends to a collector. The tests of a clock that is set and of a faulty
 * collector use only the tracer and the exporter.
 */
import { expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { loadConfig } from '#src/config.ts'
import { HOUR } from '#src/lib/duration.ts'
import { openLogger } from '#src/lib/log.ts'
import { openMetrics } from '#src/lib/metrics.ts'
import { openExporter, type Span } from '#src/observability/otlp.ts'
import { openTracing } from '#src/observability/tracing.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { type ReceivedSpan, startCollector } from '#test/support/collector.ts'
import { gatehouse, SECRET, serveExecutable } from '#test/support/executable.ts'
import { freePort } from '#test/support/free-port.ts'
import { addClient, addUser, authorizeUrl, logInTo } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'
import { redeem } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'

setDefaultTimeout(30_000)
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const traceparent = (sampled: boolean) => `00-${TRACE}-${SPAN}-0${sampled ? 1 : 0}`

const form = { grant_type: 'client_credentials', client_id: 'gatehouse-admin', client_secret: SECRET }

test('a login, code and token: a span for each request with its work below it, and no personal data', async () => {
  await using collector = startCollector()
  await using server = await serveExecutable({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20let-me-in,x-tenant=ours',
    OTEL_SERVICE_NAME: 'sign-in',
    GATEHOUSE_ID_TOKEN_ALG: 'ES256',
  })
  const app = remote(server)
  const user = await addUser(app, 'alice')
  const client = await addClient(app, 'shop', { client_id: 'shop' })
  const browser = openBrowser(app)
  await logInTo(browser, 'shop', 'alice')
  const { code = '' } = answerOf(await browser.get(authorizeUrl('shop', { state: 'the-state' })))
  await redeem(app, client, code)
  await app.admin('GET', `/users/${user.id}`)
  await app.call('/account/nothing-here')
  const answer = await app.call('/oauth/token', {
    method: 'POST',
    body: new URLSearchParams({ ...form, client_secret: 'wrong' }),
    headers: { traceparent: traceparent(true) },
  })
  expect(answer.status).toBe(401)
  const { spans } = collector
  // A server that stops waits for the collector for a moment only, so the last span is awaited before.
  await until(() => spans.some(({ trace, kind }) => trace === TRACE && kind === 2))
  server.signal('SIGTERM')
  expect(await server.exited).toBe(0)

  expect(collector.refused).toEqual([])
  expect(collector.headers[0]?.get('authorization')).toBe('Bearer let-me-in')
  expect(collector.headers[0]?.get('x-tenant')).toBe('ours')
  expect(collector.resources[0]).toMatchObject({
    'service.name': 'sign-in',
    'service.version': expect.any(String),
  })

  const below = (span: ReceivedSpan) => spans.filter(({ parent }) => parent === span.id)
  const names = (span: ReceivedSpan) =>
    below(span)
      .map(({ name }) => name)
      .sort()
  const servers = spans.filter(({ kind }) => kind === 2)
  const named = (name: string) => servers.filter(span => span.name === name)
  const login = named('POST /oauth/login').find(span => names(span).includes('password.hash'))
  expect(login).toMatchObject({
    parent: undefined,
    failed: false,
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/oauth/login',
      'http.response.status_code': 302,
      'url.scheme': 'http',
      'server.address': 'localhost',
      'gatehouse.request_id': expect.stringMatching(/^[\da-f-]{36}$/),
    },
  })
  const write = below(login as ReceivedSpan).find(({ name }) => name === 'store.write') as ReceivedSpan
  expect(names(write)).toEqual(['store.commit', 'store.wait'])
  expect(write.attributes).toEqual({ 'db.system.name': 'sqlite' })
  expect(names(named('POST /oauth/token').find(span => names(span).length > 2) as ReceivedSpan)).toEqual([
    'store.write',
    'token.sign',
    'token.sign',
  ])
  expect(named('GET /api/v1/admin/users/:user_id')).toHaveLength(1)
  // An unknown path may contain any text, so the span's name omits it.
  expect(named('GET')).toMatchObject([{ attributes: { 'http.response.status_code': 404 } }])
  const [joined] = servers.filter(({ parent }) => parent !== undefined)
  expect(joined).toMatchObject({ trace: TRACE, parent: SPAN, name: 'POST /oauth/token' })

  const byId = new Map(spans.map(span => [span.id, span]))
  expect(byId.size).toBe(spans.length)
  for (const span of spans) {
    expect(span.ended).toBeGreaterThanOrEqual(span.started)
    const parent = byId.get(span.parent ?? '')
    if (!parent) continue
    expect([parent.trace, parent.started <= span.started, span.ended <= parent.ended]).toEqual([
      span.trace,
      true,
      true,
    ])
  }
  for (const secret of [
    'alice',
    user.id,
    'shop',
    'the-state',
    code,
    SECRET,
    '127.0.0.1',
    '?',
    'nothing-here',
  ])
    expect([secret, collector.bodies.some(body => body.includes(secret))]).toEqual([secret, false])
})

test('the caller decides whether its trace is recorded, and so does the sampler', async () => {
  await using collector = startCollector()
  const expectSpans = async (count: number, sampler: string, header?: string) => {
    const before = collector.spans.length
    await using server = await serveExecutable({
      GATEHOUSE_OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      GATEHOUSE_OTEL_TRACES_SAMPLER: sampler,
    })
    await remote(server).call('/healthz', header === undefined ? {} : { headers: { traceparent: header } })
    await until(() => collector.spans.length >= before + count)
    server.signal('SIGTERM')
    await server.exited
    expect(collector.spans.length - before).toBe(count)
  }
  await expectSpans(1, 'parentbased_always_on', traceparent(true))
  await expectSpans(0, 'parentbased_always_on', traceparent(false))
  await expectSpans(1, 'parentbased_always_off', traceparent(true))
  await expectSpans(0, 'always_off', traceparent(true))
  await expectSpans(1, 'parentbased_always_on', 'nonsense')
})

test('settings: the headers are a secret, GATEHOUSE_ names come before standard ones, whose wrong values only warn', async () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20let-me-in',
    OTEL_SERVICE_NAME: 'theirs',
    GATEHOUSE_OTEL_SERVICE_NAME: 'ours',
    OTEL_METRICS_EXPORTER: 'none',
  }
  expect(loadConfig(env).config).toMatchObject({
    otel_exporter_otlp_endpoint: 'http://collector:4318',
    otel_exporter_otlp_headers: { authorization: 'Bearer let-me-in' },
    otel_service_name: 'ours',
    otel_traces_sampler: 'parentbased_always_on',
  })
  const { stdout } = await gatehouse(['config', 'print', '--redacted'], env)
  expect(stdout).toMatch(/^otel_exporter_otlp_headers +•••• +environment, OTEL_EXPORTER_OTLP_HEADERS$/m)
  for (const [name, value] of [
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '2'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'let-me-in'],
  ] as const) {
    const shared = await gatehouse(['config', 'check'], { [name]: value })
    const own = await gatehouse(['config', 'check'], { [`GATEHOUSE_${name}`]: value })
    expect([shared.code, own.code]).toEqual([0, 2])
    expect(shared.stderr).toStartWith(`warning: ${name}: `)
    expect(own.stderr).toStartWith(`gatehouse: GATEHOUSE_${name}: `)
    expect(shared.stderr + own.stderr).not.toContain('let-me-in')
  }
})

test('spans have the time of the clock after it was set, and keep their order and duration', async () => {
  await using collector = startCollector()
  const otel_exporter_otlp_endpoint = collector.url
  const app = await startApp({ otel_exporter_otlp_endpoint })
  const { clock } = app.context
  const tracing = openTracing(app.context)
  const handle = tracing.requests(
    async () => {
      await tracing.core.trace('work', async () => app.clock.advance(HOUR))
      return new Response()
    },
    () => '/',
  )
  const began = [clock.now(), clock.now() + HOUR]
  for (const _ of began) await handle(new Request(app.context.config.url))
  await tracing.close()
  const servers = collector.spans.filter(({ kind }) => kind === 2)
  expect(servers.map(({ started }) => Math.round(Number(started) / 1e6))).toEqual(began)
  for (const { id, started, ended } of servers) {
    const [work] = collector.spans.filter(({ parent }) => parent === id)
    if (!work) throw new Error('The span of the work is missing.')
    const times = [started, work.started, work.ended, ended]
    expect(times.toSorted((a, b) => Number(a - b))).toEqual(times)
    expect(ended - started).toBeLessThan(BigInt(HOUR) * 1_000_000n)
  }
})

test('a span begins when its request arrives, not at the last whole millisecond of the clock', async () => {
  await using collector = startCollector()
  const app = await startApp({ otel_exporter_otlp_endpoint: collector.url })
  const elapsed = spyOn(performance, 'now')
  const now = () => Math.floor(performance.timeOrigin + performance.now())
  const tracing = openTracing({ ...app.context, clock: { now } })
  const handle = tracing.requests(
    () => new Response(),
    () => '/',
  )
  const arrivals = [0.25, 0.75, 1.5, 2.875].map(ms => performance.now() + ms)
  for (const arrival of arrivals) {
    // The server reads the clock and this time. Then the machine pauses.
    for (let call = 0; call < 2; call++) elapsed.mockReturnValueOnce(arrival)
    elapsed.mockReturnValue(arrival + 5)
    await handle(new Request(app.context.config.url))
  }
  elapsed.mockRestore()
  await tracing.close()
  const late = collector.spans.map(
    ({ started }, i) => Number(started) / 1e6 - performance.timeOrigin - (arrivals[i] ?? 0),
  )
  expect(late.map(ms => Math.abs(ms) < 0.01)).toEqual(arrivals.map(() => true))
})

const some = (count: number, name = 'a'): Span[] =>
  Array.from({ length: count }, (_, n) => ({
    trace_id: TRACE,
    span_id: n.toString(16).padStart(16, '0'),
    parent_id: undefined,
    name,
    kind: 1,
    started: 1_700_000_000_000.25,
    ended: 1_700_000_000_001.5,
    attributes: {},
    failed: false,
  }))
const metrics = openMetrics()
const outcomes = () =>
  Object.fromEntries(
    [...metrics.render().matchAll(/^gatehouse_trace_spans_total\{outcome="(\w+)"\} (\d+)$/gm)].map(
      ([, name, count]) => [name, Number(count)],
    ),
  )
const exporterTo = (url: string) => {
  const said: string[] = []
  const reasons: unknown[] = []
  const log = openLogger('info', line => {
    const { msg, reason } = JSON.parse(line)
    said.push(msg)
    reasons.push(reason)
  })
  const { config } = loadConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: url })
  return { said, reasons, ...openExporter(config, log, metrics) }
}

test('an unreachable collector: a limited number of spans is kept, the rest dropped and counted; kept ones arrive once', async () => {
  const port = freePort()
  const collector = startCollector(port)
  await collector.stop()
  const before = outcomes()
  const exporter = exporterTo(collector.url)
  for (const span of some(3_000)) exporter.add(span)
  await until(() => exporter.said.length === 1)
  expect(exporter.said).toEqual(['the collector does not accept spans; keeping a limited number'])
  expect((outcomes().dropped ?? 0) - (before.dropped ?? 0)).toBe(3_000 - 2_048)
  await using back = startCollector(port)
  await until(() => back.spans.length === 2_048)
  await exporter.close()
  expect(exporter.said).toEqual([
    'the collector does not accept spans; keeping a limited number',
    'the collector accepts spans again',
  ])
  expect(back.spans).toHaveLength(2_048)
  expect((outcomes().sent ?? 0) - (before.sent ?? 0)).toBe(2_048)
  expect(back.bodies.every(body => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans.length <= 512)).toBe(
    true,
  )
  expect(back.spans[0]).toMatchObject({
    started: 1_700_000_000_000_250_000n,
    ended: 1_700_000_000_001_500_000n,
  })
})

test('the reason of a failed export is one word: timeout or unreachable', async () => {
  const reasonAt = async (url: string, patience?: number): Promise<unknown> => {
    const said: { reason?: unknown }[] = []
    const log = openLogger('info', line => void said.push(JSON.parse(line)))
    const exporter = openExporter(
      loadConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: url }).config,
      log,
      metrics,
      patience,
    )
    for (const span of some(1)) exporter.add(span)
    await exporter.close()
    return said[0]?.reason
  }
  const hanging = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise<Response>(() => {}) })
  expect(await reasonAt(`http://127.0.0.1:${hanging.port}`, 20)).toBe('TimeoutError')
  await hanging.stop(true)
  expect(await reasonAt(`http://127.0.0.1:${freePort()}`)).toBe('ECONNREFUSED')
})

test('a collector that refuses spans is logged once, until it accepts 60 batches in a row', async () => {
  await using collector = startCollector()
  const exporter = exporterTo(collector.url)
  const before = outcomes()
  const more = (name: string) => (outcomes()[name] ?? 0) - (before[name] ?? 0)
  const refuse = (status: number) => () => new Response(null, { status })
  const partly = () => Response.json({ partialSuccess: { rejectedSpans: '1' } })
  const accept = () => new Response('ok')
  const all = [404, 401, 503, 401].map(refuse)
  for (const answer of [...all, partly, ...Array(59).fill(accept), partly, ...Array(60).fill(accept)]) {
    collector.answerNext(answer)
    for (const span of some(2)) exporter.add(span)
    await exporter.close()
  }
  expect(exporter.said.map((text, i) => [text, exporter.reasons[i]])).toEqual([
    ['the collector refuses spans; they are lost', 'status 404'],
    ['the collector does not accept spans; keeping a limited number', 'status 503'],
    ['the collector refuses spans; they are lost', 'status 401'],
    ['the collector accepts spans again', undefined],
  ])
  expect([more('refused'), more('sent'), more('dropped')]).toEqual([10, 2 + 2 * 119, 0])
  expect(collector.spans).toEqual([])
})

test('a collector that redirects or fails gets the spans once, and no other server gets them', async () => {
  await using collector = startCollector()
  await using other = startCollector()
  const before = outcomes()
  const exporter = exporterTo(collector.url)
  const location = `${other.url}/v1/traces`
  for (const init of [{ status: 307, headers: { location } }, { status: 500 }]) {
    collector.answerNext(() => new Response(null, init))
    for (const span of some(1)) exporter.add(span)
    await exporter.close()
  }
  expect([exporter.reasons, other.bodies]).toEqual([['status 307'], []])
  expect((outcomes().refused ?? 0) - (before.refused ?? 0)).toBe(2)
})

test('spans that are refused for good are not sent again; spans to be retried are sent again', async () => {
  await using collector = startCollector()
  const before = outcomes()
  const more = (name: string) => (outcomes()[name] ?? 0) - (before[name] ?? 0)
  const exporter = exporterTo(collector.url)
  collector.answerNext(
    () => new Response('no', { status: 400 }),
    () => Response.json({ partialSuccess: { rejectedSpans: '2', errorMessage: 'two too many' } }),
    () => new Response(null, { status: 503, headers: { 'retry-after': '1' } }),
  )
  for (const span of some(10)) exporter.add(span)
  await until(() => more('refused') === 10)
  for (const span of some(5)) exporter.add(span)
  await until(() => more('refused') === 12 && more('sent') === 3)
  for (const span of some(4, 'again')) exporter.add(span)
  await until(() => collector.spans.length === 4)
  expect(collector.spans.map(({ name }) => name)).toEqual(Array(4).fill('again'))
  await exporter.close()
  expect([more('refused'), more('sent')]).toEqual([12, 7])
})
