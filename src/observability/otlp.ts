import type { Logger } from 'pino'
import type { Config } from '#src/config.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { Family, Metrics } from '#src/lib/metrics.ts'
import { VERSION } from '#src/lib/version.ts'

/** Values are numbers, or words from closed sets of ours: nothing of a person, no id, no query. */
export type Attributes = Record<string, string | number>

export interface Span {
  trace_id: string
  span_id: string
  parent_id: string | undefined
  name: string
  /** https://opentelemetry.io/docs/specs/otel/trace/api/#spankind, as the wire format numbers them. */
  kind: 1 | 2 | 3
  /** Milliseconds since the epoch, with fractions. */
  started: number
  ended: number
  attributes: Attributes
  failed: boolean
}

/** Spans that wait: more are dropped. */
const KEPT = 2_048
const BATCH = 512
const EVERY = SECOND
const PATIENCE = 5 * SECOND
const LONGEST_PAUSE = 30 * SECOND
/** https://opentelemetry.io/docs/specs/otlp/#otlphttp-response: others will never be accepted. */
const TRY_AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504])

const SPANS: Family = {
  name: 'gatehouse_trace_spans_total',
  help: 'Spans by what became of them.',
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

/** Throws nothing: `try` again later, or how many of the batch are `refused` for good. */
type Outcome = { refused: number } | { pause: number | undefined; reason: string }

type ExporterConfig = Pick<
  Config,
  'otel_exporter_otlp_endpoint' | 'otel_exporter_otlp_headers' | 'otel_service_name'
>

/** One batch to the collector, which has `patience` ms to answer. */
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
      if (TRY_AGAIN.has(answer.status)) {
        const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN)
        return { pause: seconds > 0 ? seconds * SECOND : undefined, reason: `status ${answer.status}` }
      }
      if (!answer.ok) return { refused: spans.length }
      return { refused: Number(JSON.parse(text || '{}').partialSuccess?.rejectedSpans ?? 0) }
    } catch (error) {
      // The code of what a signal ends is a number, which tells nobody anything.
      const { code, name } = error as { code?: unknown; name: string }
      return { pause: undefined, reason: typeof code === 'string' ? code : name }
    }
  }
}

/**
 * Hands spans to a collector by OTLP over HTTP in JSON (https://opentelemetry.io/docs/specs/otlp/#otlphttp). The format is
 * a page; the SDK that writes it would cost every start some 60 ms and 25 MB. Spans are collected and sent together;
 * nobody waits for it, and while the collector is away so many are kept and the rest are counted and dropped.
 */
export const openExporter = (
  config: ExporterConfig,
  log: Pick<Logger, 'info' | 'warn'>,
  metrics: Metrics,
  /** How long a collector may take to answer, ms. */
  patience = PATIENCE,
) => {
  const post = openPost(config, patience)
  const queue: Span[] = []
  let sending: Promise<void> | undefined
  let failures = 0
  let resume = 0

  const drain = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue.slice(0, BATCH)
      const outcome = await post(batch)
      if ('reason' in outcome) {
        if (failures++ === 0)
          log.warn({ event: 'traces', reason: outcome.reason }, 'the collector takes no spans: some are kept')
        resume =
          performance.now() + Math.min(outcome.pause ?? SECOND * 2 ** Math.min(failures, 5), LONGEST_PAUSE)
        return
      }
      if (failures > 0) log.info({ event: 'traces' }, 'the collector takes spans again')
      failures = 0
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
  }, EVERY)
  timer.unref()

  return {
    add: (span: Span): void => {
      if (queue.length < KEPT) queue.push(span)
      else metrics.count(SPANS, 'dropped')
    },
    /** The last spans, at the end of the process. */
    close: async (): Promise<void> => {
      clearInterval(timer)
      await sending
      await send()
    },
  }
}
