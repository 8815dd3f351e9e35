import type { Core } from '#src/context.ts'
import { filteredEventsAfter } from './store.ts'

/**
 * Milliseconds between two reads of the audit log. The interval is short, because tests wait for an event and
 * the server has little other load.
 */
const POLL_INTERVAL = 20

/**
 * Streams audit events as server-sent events: `id` is the sequence number, `event` the type, `data` the event
 * as in the admin API. https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export const eventStream = (
  { store }: Core,
  {
    after,
    filter,
    signal,
  }: { after: number; filter: Parameters<typeof filteredEventsAfter>[2]; signal: AbortSignal },
): Response => {
  let seen = after
  const text = new TextEncoder()
  let timer: ReturnType<typeof setInterval> | undefined
  const stop = () => clearInterval(timer)
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(text.encode(': audit events\n\n'))
      let isPolling = false
      const poll = async () => {
        if (isPolling) return
        isPolling = true
        try {
          for (const { seq, event } of await store.read(q => filteredEventsAfter(q, seen, filter))) {
            controller.enqueue(
              text.encode(`id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
            )
            seen = seq
          }
        } catch {
          stop()
        }
        isPolling = false
      }
      timer = setInterval(poll, POLL_INTERVAL)
      timer.unref?.()
      signal.addEventListener('abort', stop)
      void poll()
    },
    cancel: stop,
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } })
}
