import { expect, test } from 'bun:test'
import { newHexId, parseTraceParent, sampler } from '#src/observability/trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

test('a traceparent in the form of the recommendation, of its version and of later ones', () => {
  const parent = { trace_id: TRACE, span_id: SPAN }
  expect(parseTraceParent(`00-${TRACE}-${SPAN}-01`)).toEqual({ ...parent, sampled: true })
  expect(parseTraceParent(`00-${TRACE}-${SPAN}-02`)).toEqual({ ...parent, sampled: false })
  expect(parseTraceParent(`01-${TRACE}-${SPAN}-03-more`)).toEqual({ ...parent, sampled: true })
})

test.each([
  null,
  '',
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  ` 00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
])('%p is invalid: a new trace begins', header => {
  expect(parseTraceParent(header)).toBeUndefined()
})

const decide = (otel_traces_sampler: Parameters<typeof sampler>[0]['otel_traces_sampler'], share = 1) =>
  sampler({ otel_traces_sampler, otel_traces_sampler_arg: share })
const parent = (sampled: boolean) => ({ trace_id: TRACE, span_id: SPAN, sampled })

test('parent-based samplers follow the parent; the others look only at the trace id', () => {
  expect(decide('parentbased_always_on')(TRACE, undefined)).toBe(true)
  expect(decide('parentbased_always_on')(TRACE, parent(false))).toBe(false)
  expect(decide('parentbased_always_off')(TRACE, parent(true))).toBe(true)
  expect(decide('parentbased_always_off')(TRACE, undefined)).toBe(false)
  expect(decide('parentbased_traceidratio', 0)(TRACE, parent(true))).toBe(true)
  expect(decide('always_on')(TRACE, parent(false))).toBe(true)
  expect(decide('always_off')(TRACE, parent(true))).toBe(false)
})

test('a ratio samples the same traces each time', () => {
  const ids = Array.from({ length: 4_000 }, () => newHexId(16))
  const taken = (share: number) => ids.filter(id => decide('traceidratio', share)(id, undefined))
  expect(taken(0)).toEqual([])
  expect(taken(1)).toEqual(ids)
  expect(taken(0.25).length).toBeWithin(800, 1_200)
  expect(taken(0.25)).toEqual(taken(0.25))
  const half = new Set(taken(0.5))
  expect(taken(0.25).every(id => half.has(id))).toBe(true)
})
