import { randomBytes } from 'node:crypto'
import type { Config } from '#src/config.ts'

/** The parent of a span: https://www.w3.org/TR/trace-context/#traceparent-header */
export interface TraceParent {
  trace_id: string
  span_id: string
  sampled: boolean
}

const HEADER = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/
const isAllZero = (id: string): boolean => /^0+$/.test(id)

/**
 * Parses a `traceparent` header. Returns undefined for a header that is missing or invalid. In this case a
 * new trace starts at this server.
 */
export const parseTraceParent = (header: string | null): TraceParent | undefined => {
  const [, version, trace_id = '', span_id = '', flags = '', more] = HEADER.exec(header ?? '') ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (isAllZero(trace_id) || isAllZero(span_id)) return undefined
  return { trace_id, span_id, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** Returns a random id in hexadecimal. The id of a trace has 16 bytes, and the id of a span has 8 bytes. */
export const newHexId = (bytes: 8 | 16): string => randomBytes(bytes).toString('hex')

/**
 * Samples by the last seven bytes of the trace id. These bytes are random. All participants of a trace see
 * the same id and thus make the same decision. https://www.w3.org/TR/trace-context-2/#random-trace-id-flag
 */
const inRatio = (trace_id: string, ratio: number): boolean =>
  Number.parseInt(trace_id.slice(-14), 16) >= (1 - ratio) * 2 ** 56

/**
 * Returns the function that decides whether a trace is recorded:
 * https://opentelemetry.io/docs/specs/otel/trace/sdk/#built-in-samplers
 */
export const sampler = ({
  otel_traces_sampler,
  otel_traces_sampler_arg,
}: Pick<Config, 'otel_traces_sampler' | 'otel_traces_sampler_arg'>) => {
  const root = (trace_id: string): boolean => {
    const name = otel_traces_sampler.replace('parentbased_', '')
    return name === 'always_on' || (name === 'traceidratio' && inRatio(trace_id, otel_traces_sampler_arg))
  }
  return (trace_id: string, parent: TraceParent | undefined): boolean =>
    parent && otel_traces_sampler.startsWith('parentbased_') ? parent.sampled : root(trace_id)
}
