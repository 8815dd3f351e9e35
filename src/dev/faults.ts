import { json } from '#src/http/answer.ts'
import { endpoints, isEndpoint } from './endpoints.ts'
import type { Fault } from './fault-schema.ts'

interface FaultyRequest {
  request: Request
  path: string
  client_id: string | undefined
}

/** Creates an empty list of faults. The first fault that matches a request determines its answer. */
export const openFaults = () => {
  let faults: Fault[] = []

  const matches = (fault: Fault, { path, client_id }: FaultyRequest): boolean => {
    const wanted = isEndpoint(fault.endpoint) ? endpoints[fault.endpoint] : fault.endpoint
    const there = wanted.endsWith('*') ? path.startsWith(wanted.slice(0, -1)) : path === wanted
    return there && (fault.client_id === undefined || fault.client_id === client_id)
  }

  return {
    list: (): Fault[] => faults,
    add: (fault: Fault): void => {
      faults = [...faults, fault]
    },
    clear: (): void => {
      faults = []
    },
    /**
     * Returns the faulty answer to a request. Returns undefined when no fault applies or the fault is only a
     * delay. The server then handles the request.
     */
    apply: async (incoming: FaultyRequest, keepOpen: () => void): Promise<Response | undefined> => {
      const fault = faults.find(one => matches(one, incoming))
      if (!fault) return undefined
      if (fault.times !== undefined) {
        const left = { ...fault, times: fault.times - 1 }
        faults = faults.flatMap(one => (one !== fault ? [one] : left.times > 0 ? [left] : []))
      }
      if (fault.delay || fault.hang) keepOpen()
      if (fault.delay) await Bun.sleep(fault.delay)
      return answerOf(fault, incoming.request)
    },
  }
}

const answerOf = (fault: Fault, request: Request): Response | Promise<Response> | undefined => {
  const { status, error, error_description = 'This error was set by the development controls.' } = fault
  if (fault.reset) return cut()
  if (fault.hang) return whenGone(request.signal).then(cut)
  if (fault.malformed)
    return new Response('{"access_token": "ey', { headers: { 'content-type': 'application/json' } })
  if (status === undefined && error === undefined) return undefined
  return json(
    { error: error ?? 'server_error', error_description, status: status ?? 400 },
    status ?? 400,
    status === 503 || status === 429 ? { 'retry-after': '1' } : {},
  )
}

/** Resolves when the client has closed its connection, which it may have done during a delay. */
const whenGone = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve())
  })

/**
 * Returns a body that fails before its first byte, which makes the runtime close the connection without an
 * answer.
 */
const cut = (): Response =>
  new Response(
    new ReadableStream({
      start: controller => controller.error(),
    }),
  )
