import { newestEvent } from '#src/audit/stream-store.ts'
import type { Core } from '#src/context.ts'
import { firstSeen } from '#src/lib/first-seen.ts'
import { filteredEventsAfter } from './store.ts'

/**
 * Milliseconds between two reads of the audit log. The interval is short, because tests wait for an event and
 * the server has little other load.
 */
const POLL_INTERVAL = 20
/**
 * Number of earlier events that each read repeats. After a reset has removed the newest events, SQLite gives
 * their `seq` to new events, which a read from the last `seq` on would miss. The stream recognizes the
 * events that it has already read by their ids.
 */
const AGAIN = 100
/**
 * Number of earlier events that the first read repeats, only to remember their ids. After a reset, reads can
 * begin at these events, which would otherwise seem to be new.
 */
const AGAIN_AT_FIRST = 900

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
  let newest: string | undefined
  // The first read also finds events up to `after`, which the caller does not want.
  let [again, unwanted] = [AGAIN_AT_FIRST, after]
  const isNew = firstSeen()
  const next = async () => {
    const last = await store.read(newestEvent)
    if (last?.id === newest) return []
    seen = Math.min(seen, last?.seq ?? 0)
    const found = await store.read(q => filteredEventsAfter(q, seen - again, filter))
    const rows = found.filter(({ event }) => isNew(event.id))
    if (rows.length === 0) newest = last?.id
    seen = Math.max(seen, ...rows.map(({ seq }) => seq))
    const wanted = rows.filter(({ seq }) => seq > unwanted)
    again = AGAIN
    unwanted = 0
    return wanted
  }
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
          for (const { seq, event } of await next())
            controller.enqueue(
              text.encode(`id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
            )
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
