import { timingSafeEqual } from 'node:crypto'
import { EVENTS, TOKENS } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { LOGOUTS, WEBHOOKS } from '#src/delivery/families.ts'
import { callOf } from '#src/http/call.ts'
import type { Family, Metrics } from '#src/lib/metrics.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { showHold } from './event-loop.ts'

const DURATIONS: Family = {
  name: 'gatehouse_request_duration_seconds',
  help: 'Time to answer, by family of routes.',
  label: 'family',
}
const ANSWERS: Family = {
  name: 'gatehouse_responses_total',
  help: 'Answers by class of status.',
  label: 'status',
}

/**
 * Registers the gauges of the process (memory, age, event loop), and the metrics of requests, events, tokens,
 * logouts and webhooks.
 */
export const openProcessMetrics = (metrics: Metrics): void => {
  metrics.gauge('gatehouse_resident_memory_bytes', 'Resident memory of the process.', () =>
    process.memoryUsage.rss(),
  )
  showHold(metrics, () => 0)
  metrics.gauge('gatehouse_uptime_seconds', 'Time since the process started.', () => process.uptime())
  metrics.declare('histogram', DURATIONS)
  for (const family of [ANSWERS, EVENTS, TOKENS, LOGOUTS, WEBHOOKS]) metrics.declare('counter', family)
}

const families: Record<string, string> = {
  '/oauth/token': 'token',
  '/oauth/authorize': 'authorize',
  '/oauth/login': 'login',
  '/oauth/userinfo': 'userinfo',
  '/oauth/introspect': 'introspect',
  '/oauth/revoke': 'revoke',
}
const prefixes: [prefix: string, family: string][] = [
  ['/api/', 'admin'],
  ['/.well-known/', 'well-known'],
  ['/oauth/', 'pages'],
  ['/account', 'account'],
  ['/saml', 'saml'],
]

const familyOf = (path: string): string =>
  families[path] ?? prefixes.find(([prefix]) => path.startsWith(prefix))?.[1] ?? 'other'

const classes = ['', '1xx', '2xx', '3xx', '4xx', '5xx']

/** Counts an answer that took `ms` milliseconds. */
export const observe = (metrics: Metrics, path: string, status: number, ms: number): void => {
  metrics.time(DURATIONS, familyOf(path), ms)
  metrics.count(ANSWERS, classes[Math.floor(status / 100)] ?? '')
}

/** True for a loopback address or name, with or without brackets and a port. */
export const isLocalHost = (host: string): boolean =>
  /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)(?::\d+)?$/i.test(host)
const forwarding = ['x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'forwarded', 'via']

/**
 * True when the caller is on this machine and is not a proxy. A request through a proxy that sends no
 * forwarding header looks local. Therefore no caller counts as local if the settings let other machines reach
 * the server.
 */
const isLocal = ({ url, host, trusted_proxies }: Context['config'], request: Request): boolean =>
  trusted_proxies.length === 0 &&
  [host, new URL(url).host, request.headers.get('host') ?? '', callOf(request).ip_address].every(
    isLocalHost,
  ) &&
  !forwarding.some(name => request.headers.has(name))

/**
 * True when the caller may read the metrics. If the setting `metrics_token` is set, the caller must send this
 * token. Otherwise the caller must be local.
 */
const mayRead = ({ config }: Context, request: Request): boolean => {
  const { metrics_token } = config
  if (metrics_token === undefined) return isLocal(config, request)
  const given = hashSecret(request.headers.get('authorization') ?? '')
  return timingSafeEqual(Buffer.from(given), Buffer.from(hashSecret(`Bearer ${metrics_token}`)))
}

/**
 * Answers with the metrics that `render` returns. Returns undefined when the caller may not read the metrics.
 * The caller then gets the 404 of an unknown path, and cannot find out whether the server has metrics.
 */
export const metricsPage = async (
  context: Context,
  request: Request,
  render: () => Promise<string>,
): Promise<Response | undefined> =>
  mayRead(context, request)
    ? new Response(await render(), {
        headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'cache-control': 'no-store' },
      })
    : undefined
