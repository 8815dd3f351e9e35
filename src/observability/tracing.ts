import { AsyncLocalStorage } from 'node:async_hooks'
import type { Server } from 'bun'
import type { Core, SigningKeys } from '#src/context.ts'
import type { Store } from '#src/storage/store.ts'
import { type Attributes, openExporter, type Span } from './otlp.ts'
import { newHexId, parseTraceParent, sampler } from './trace-context.ts'

type Handler = (request: Request, server?: Pick<Server<unknown>, 'requestIP'>) => Response | Promise<Response>
type Started = Omit<Span, 'ended' | 'failed'> & {
  /**
   * The time when `performance.now()` was 0, in milliseconds since the epoch, as it was known at the start of
   * the request. All spans of a request have the same value, so a change of the clock changes no duration.
   */
  origin: number
}

/**
 * Known methods. Other methods are arbitrary client input and become `_OTHER`:
 * https://opentelemetry.io/docs/specs/semconv/http/http-spans/
 */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])
const methodOf = (method: string): string => (METHODS.has(method) ? method : '_OTHER')

const timeOf = ({ origin }: Started): number => origin + performance.now()

/** Returns the storage of the current span, and the functions that begin and end spans. */
const openTracer = (exporter: ReturnType<typeof openExporter>) => {
  const active = new AsyncLocalStorage<Started>()

  const begin = (
    name: string,
    kind: Span['kind'],
    parent: Started,
    attributes: Attributes = {},
  ): Started => ({
    trace_id: parent.trace_id,
    span_id: newHexId(8),
    parent_id: parent.span_id,
    name,
    kind,
    started: timeOf(parent),
    attributes,
    origin: parent.origin,
  })
  const end = (span: Started, failed = false, ended = timeOf(span)): void =>
    exporter.add({ ...span, ended, failed })

  /** Runs `work`. While a trace is being recorded, `work` gets a child span. */
  const within = <T>(
    name: string,
    kind: Span['kind'],
    attributes: Attributes,
    work: (span: Started | undefined) => T,
  ): T => {
    const parent = active.getStore()
    if (!parent) return work(undefined)
    const span = begin(name, kind, parent, attributes)
    const fail = (error: unknown): never => {
      end(span, true)
      throw error
    }
    try {
      const result = active.run(span, work, span)
      if (result instanceof Promise)
        return result.then(value => {
          end(span)
          return value
        }, fail) as T
      end(span)
      return result
    } catch (error) {
      return fail(error)
    }
  }

  return { active, begin, end, within }
}
type Tracer = ReturnType<typeof openTracer>

/**
 * Traces writes. One span shows the wait before a write. Another span shows the commit, which several
 * concurrent writes can share.
 */
const traceStore = ({ begin, end, within }: Tracer, store: Store): Store => {
  const system = { 'db.system.name': store.engine === 'sqlite' ? 'sqlite' : 'postgresql' }
  return {
    ...store,
    write: body =>
      within('store.write', 1, system, async span => {
        if (!span) return store.write(body)
        const wait = begin('store.wait', 1, span)
        let commit: Started | undefined
        const result = await store.write(async tx => {
          const begun = timeOf(span)
          const value = await body(tx)
          if (!commit) end(wait, false, begun)
          commit = begin('store.commit', 1, span)
          return value
        })
        if (commit) end(commit)
        return result
      }),
  }
}

/** Traces calls to other servers. The other servers get no trace context, because other parties run them. */
const traceOutbound =
  ({ within }: Tracer, fetch: Core['fetch']): Core['fetch'] =>
  (url, init) => {
    const method = methodOf(init?.method ?? 'GET')
    const attributes = { 'http.request.method': method, 'server.address': new URL(url).hostname }
    return within(method, 3, attributes, async span => {
      const answer = await fetch(url, init)
      if (span) span.attributes['http.response.status_code'] = answer.status
      return answer
    })
  }

type RouteOf = (path: string) => string | undefined

const traceRequests = (
  { active, end }: Tracer,
  { config, clock }: Core,
  handler: Handler,
  routeOf: RouteOf,
): Handler => {
  const isSampled = sampler(config)
  const { hostname, protocol } = new URL(config.url)
  let origin = performance.timeOrigin
  const finish = (span: Started, path: string, response: Response): Response => {
    // The route is known only after the answer, because the first request to a section loads its routes.
    const route = routeOf(path)
    if (route !== undefined) {
      span.name += ` ${route}`
      span.attributes['http.route'] = route
    }
    span.attributes['http.response.status_code'] = response.status
    if (response.status >= 500) span.attributes['error.type'] = String(response.status)
    span.attributes['gatehouse.request_id'] = response.headers.get('x-request-id') ?? ''
    end(span, response.status >= 500)
    return response
  }
  return (request, server) => {
    const parent = parseTraceParent(request.headers.get('traceparent'))
    const trace_id = parent?.trace_id ?? newHexId(16)
    if (!isSampled(trace_id, parent)) return handler(request, server)
    const method = methodOf(request.method)
    const path = URL.parse(request.url)?.pathname ?? ''
    // The clock is rounded down, so it is less than 1 ms behind the exact time unless it was set.
    const [time, arrived] = [clock.now(), performance.now()]
    const difference = time - arrived - origin
    if (difference > 0 || difference <= -1) origin += difference
    const span: Started = {
      trace_id,
      span_id: newHexId(8),
      parent_id: parent?.span_id,
      name: method,
      kind: 2,
      started: origin + arrived,
      origin,
      attributes: {
        'http.request.method': method,
        'url.scheme': protocol.slice(0, -1),
        'server.address': hostname,
      },
    }
    return active.run(span, () => {
      const answer = handler(request, server)
      return answer instanceof Response
        ? finish(span, path, answer)
        : answer.then(response => finish(span, path, response))
    })
  }
}

/**
 * Records traces of requests and exports them to the configured collector. All traced functions are wrapped
 * here, so a server without tracing runs none of this code. Spans contain routes, methods, statuses,
 * algorithms, durations, host names and the request id. They contain no ids of objects, addresses of clients,
 * paths or queries, because another party often runs the collector, and a query may contain a code.
 */
export const openTracing = (core: Core) => {
  const { config, log, store, fetch } = core
  const exporter = openExporter(config, log, store.metrics)
  const tracer = openTracer(exporter)
  const { within } = tracer
  const traced: Core = {
    ...core,
    store: traceStore(tracer, store),
    fetch: traceOutbound(tracer, fetch),
    trace: (name, work) => within(name, 1, {}, work),
  }
  return {
    core: traced,
    close: exporter.close,
    keys: (keys: SigningKeys): SigningKeys => ({
      ...keys,
      sign: (claims, alg, typ) => within('token.sign', 1, { alg }, () => keys.sign(claims, alg, typ)),
    }),
    requests: (handler: Handler, routeOf: RouteOf): Handler => traceRequests(tracer, core, handler, routeOf),
  }
}
