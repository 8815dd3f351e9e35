import type { Config } from '#src/config.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { Logger } from '#src/lib/log.ts'
import type { Family, Metrics } from '#src/lib/metrics.ts'
import { VERSION } from '#src/lib/version.ts'

/**
 * Attributes of a span. Values are numbers, words from closed sets, host names and the request id. Values
 * never contain personal data, paths, queries or ids of objects.
 */
export type Attributes = Record<string, string | number>

/** A finished span, before it is encoded as OTLP. */
export interface Span {
  trace_id: string
  span_id: string
  parent_id: string | undefined
  name: string
  /** Number of the span kind in trace.proto of OTLP: 1 internal, 2 server, 3 client. */
  kind: 1 | 2 | 3
  /** Milliseconds since the epoch, with fractions. */
  started: number
  ended: number
  attributes: Attributes
  failed: boolean
}

/**
 * Maximum number of queued spans. Further spans are dropped. OpenTelemetry's batch processor has the same
 * default.
 */
const MAX_QUEUED = 2_048
/**
 * Maximum number of spans in one request to the collector. OpenTelemetry's batch processor has the same
 * default.
 */
const BATCH = 512
/**
 * Milliseconds between two batches. The time is short, so that a developer finds a trace soon after the
 * request.
 */
const SEND_INTERVAL = SECOND
/** Milliseconds within which the collector must answer. Other outbound calls have the same limit. */
const TIMEOUT = 5 * SECOND
/**
 * Longest pause in milliseconds between two attempts while the collector does not accept spans, even if its
 * `Retry-After` asks for more. With this limit, spans arrive soon after the collector accepts them again.
 */
const MAX_PAUSE = 30 * SECOND
/**
 * Statuses after which a batch is sent again. Spans refused with any other status are lost:
 * https://opentelemetry.io/docs/specs/otlp/#otlphttp-response
 */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])

const SPANS: Family = {
  name: 'gatehouse_trace_spans_total',
  help: 'Spans by outcome.',
  label: 'outcome',
}

const nanos = (ms: number): string => {
  const whole = Math.floor(ms)
  return `${whole}${String(Math.floor((ms - whole) * 1e6)).padStart(6, '0')}`
}

const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }))

const spanOf = ({ trace_id, span_id, parent_id, name, kind, started, ended, attributes, failed }: Span) => ({
  traceId: trace_id,
  spanId: span_id,
  ...(parent_id !== undefined && { parentSpanId: parent_id }),
  flags: 1,
  name,
  kind,
  startTimeUnixNano: nanos(started),
  endTimeUnixNano: nanos(ended),
  attributes: attributesOf(attributes),
  status: failed ? { code: 2 } : {},
})

/**
 * Result of one batch. Either the collector refused `refused` spans for good, for this `reason`, or the batch
 * is sent again after `pause` ms. When `pause` is undefined, the exporter chooses the pause.
 */
type Outcome = { refused: number; reason: string | undefined } | { pause: number | undefined; reason: string }

const KEPT = 'the collector does not accept spans; keeping a limited number'
const LOST = 'the collector refuses spans; they are lost'
/**
 * Number of accepted batches, about a minute's, after which a collector that has refused spans is said to
 * accept them again. A collector with a rate limit would otherwise cause two log lines every few seconds.
 */
const CALM = 60

/** Returns the number of spans that the collector refuses in an answer with status 200. */
const rejectedIn = (text: string): number => {
  try {
    return Number(JSON.parse(text).partialSuccess?.rejectedSpans ?? 0)
  } catch {
    // Some collectors answer with no JSON.
    return 0
  }
}

type ExporterConfig = Pick<
  Config,
  'otel_exporter_otlp_endpoint' | 'otel_exporter_otlp_headers' | 'otel_service_name'
>

/**
 * Returns a function that sends one batch to the collector and waits at most `patience` ms for the answer.
 * The function never throws.
 */
const openPost = (config: ExporterConfig, patience: number) => {
  const url = `${config.otel_exporter_otlp_endpoint}/v1/traces`
  const headers = { ...config.otel_exporter_otlp_headers, 'content-type': 'application/json' }
  const resource = {
    attributes: attributesOf({
      'service.name': config.otel_service_name,
      'service.version': VERSION,
      'service.instance.id': crypto.randomUUID(),
    }),
  }
  const scope = { name: 'gatehouse', version: VERSION }
  const bodyOf = (spans: Span[]): string =>
    JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(spanOf) }] }] })

  return async (spans: Span[]): Promise<Outcome> => {
    try {
      const signal = AbortSignal.timeout(patience)
      const answer = await fetch(url, {
        method: 'POST',
        headers,
        body: bodyOf(spans),
        signal,
        redirect: 'manual',
      })
      const text = await answer.text()
      if (RETRYABLE.has(answer.status)) {
        const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN)
        return { pause: seconds > 0 ? seconds * SECOND : undefined, reason: `status ${answer.status}` }
      }
      if (!answer.ok) return { refused: spans.length, reason: `status ${answer.status}` }
      const refused = rejectedIn(text)
      return { refused, reason: refused > 0 ? 'partial success' : undefined }
    } catch (error) {
      // The `code` of the error is a number when the time for the answer is over. The number says nothing, so
      // the `name` of the error is logged instead.
      const { code, name } = error as { code?: unknown; name: string }
      return { pause: undefined, reason: typeof code === 'string' ? code : name }
    }
  }
}

/**
 * Exports spans to a collector by OTLP over HTTP in JSON
 * (https://opentelemetry.io/docs/specs/otlp/#otlphttp). OpenTelemetry's SDK (sdk-trace-base 2.12.1, imported
 * at first use) is not used, because it costs more. The SDK would add 3 to 8 ms (40 ms from a cold disk) and
 * 2 to 4 MiB of memory to each start with a collector. A span would take 3.1 µs instead of 1.9 µs. Every
 * executable would be 2.7 MB larger. Requests never wait for the export. While the collector is unavailable,
 * a limited number of spans is kept. Further spans are counted and dropped.
 */
export const openExporter = (
  config: ExporterConfig,
  log: Pick<Logger, 'info' | 'warn'>,
  metrics: Metrics,
  /** Time for the collector's answer, in ms. */
  patience = TIMEOUT,
) => {
  const post = openPost(config, patience)
  const queue: Span[] = []
  let sending: Promise<void> | undefined
  let failures = 0
  let resume = 0
  let trouble: string | undefined
  let accepted = 0

  /** Logs the beginning of a trouble and the end of all troubles. */
  const report = (current: string | undefined, reason: string | undefined): void => {
    if (current === trouble) return
    trouble = current
    if (current) log.warn({ event: 'traces', reason }, current)
    else log.info({ event: 'traces' }, 'the collector accepts spans again')
  }
  const drain = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue.slice(0, BATCH)
      const outcome = await post(batch)
      if ('pause' in outcome) {
        failures++
        report(KEPT, outcome.reason)
        resume = performance.now() + Math.min(outcome.pause ?? SECOND * 2 ** Math.min(failures, 5), MAX_PAUSE)
        return
      }
      failures = 0
      accepted = outcome.reason ? 0 : accepted + 1
      if (outcome.reason) report(LOST, outcome.reason)
      else if (trouble !== LOST || accepted >= CALM) report(undefined, undefined)
      queue.splice(0, batch.length)
      for (let i = 0; i < batch.length; i++) metrics.count(SPANS, i < outcome.refused ? 'refused' : 'sent')
    }
  }
  const send = (): Promise<void> => {
    sending ??= drain().finally(() => {
      sending = undefined
    })
    return sending
  }
  const timer = setInterval(() => {
    if (queue.length > 0 && performance.now() >= resume) void send()
  }, SEND_INTERVAL)
  timer.unref()

  return {
    add: (span: Span): void => {
      if (queue.length < MAX_QUEUED) queue.push(span)
      else metrics.count(SPANS, 'dropped')
    },
    /** Sends the remaining spans when the process ends. */
    close: async (): Promise<void> => {
      clearInterval(timer)
      await sending
      await send()
    },
  }
}
