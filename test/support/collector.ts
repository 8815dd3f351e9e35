import { z } from 'zod'

const id = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`))
const nanos = z.string().regex(/^\d{19}$/)
const attribute = z.strictObject({
  key: z.string().min(1),
  value: z.union([
    z.strictObject({ stringValue: z.string() }),
    z.strictObject({ intValue: z.string().regex(/^-?\d+$/) }),
  ]),
})
const span = z.strictObject({
  traceId: id(16),
  spanId: id(8),
  parentSpanId: id(8).optional(),
  flags: z.int(),
  name: z.string().min(1),
  kind: z.int().min(1).max(5),
  startTimeUnixNano: nanos,
  endTimeUnixNano: nanos,
  attributes: z.array(attribute),
  status: z.strictObject({ code: z.int().optional() }),
})
/**
 * The fields of ExportTraceServiceRequest that Gatehouse sends, by the names of the protobuf JSON mapping:
 * https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
 */
const exported = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes: z.array(attribute) }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string() }),
          spans: z.array(span),
        }),
      ),
    }),
  ),
})

export interface ReceivedSpan {
  trace: string
  id: string
  parent: string | undefined
  name: string
  kind: number
  /** Nanoseconds. */
  started: bigint
  ended: bigint
  attributes: Record<string, string | number>
  failed: boolean
}

const flat = (attributes: z.output<typeof attribute>[]) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      'intValue' in value ? Number(value.intValue) : value.stringValue,
    ]),
  )

/**
 * Starts a collector for OTLP over HTTP in JSON. It refuses other formats. Pass the `port` of a stopped
 * collector to replace that collector.
 */
export const startCollector = (port = 0) => {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const resources: Record<string, string | number>[] = []
  const headers: Headers[] = []
  const refused: unknown[] = []
  let answers: (() => Response)[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    fetch: async request => {
      const body = await request.text()
      const next = answers.shift()
      if (next) return next()
      const json = request.headers.get('content-type') === 'application/json'
      const parsed = exported.safeParse(JSON.parse(body))
      if (new URL(request.url).pathname !== '/v1/traces' || !json || !parsed.success) {
        refused.push(parsed.error ?? request.url)
        return new Response(null, { status: 400 })
      }
      bodies.push(body)
      headers.push(request.headers)
      for (const { resource, scopeSpans } of parsed.data.resourceSpans) {
        resources.push(flat(resource.attributes))
        for (const found of scopeSpans.flatMap(scope => scope.spans))
          spans.push({
            trace: found.traceId,
            id: found.spanId,
            parent: found.parentSpanId,
            name: found.name,
            kind: found.kind,
            started: BigInt(found.startTimeUnixNano),
            ended: BigInt(found.endTimeUnixNano),
            attributes: flat(found.attributes),
            failed: found.status.code === 2,
          })
      }
      return Response.json({ partialSuccess: {} })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port ?? 0,
    spans,
    bodies,
    resources,
    headers,
    refused,
    /** Answers the next requests with these responses, in order, without reading the requests. */
    answerNext: (...next: (() => Response)[]) => {
      answers = next
    },
    stop: () => server.stop(true),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
