import type { Context } from '#src/context.ts'
import { eventsAfter } from './store.ts'

/** How soon an event is seen, ms. */
const LOOK = 20

/**
 * Audit events as they are written: `id` is the number of writing, `event` the type, `data` the event as the admin API shows it.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export const eventStream = (
  { store }: Pick<Context, 'store'>,
  {
    after,
    filter,
    signal,
  }: { after: number; filter: Parameters<typeof eventsAfter>[2]; signal: AbortSignal },
): Response => {
  let seen = after
  const text = new TextEncoder()
  let timer: ReturnType<typeof setInterval> | undefined
  const stop = () => clearInterval(timer)
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(text.encode(': audit events\n\n'))
      let looking = false
      const look = async () => {
        if (looking) return
        looking = true
        try {
          for (const { seq, event } of await store.read(q => eventsAfter(q, seen, filter))) {
            controller.enqueue(
              text.encode(`id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
            )
            seen = seq
          }
        } catch {
          stop()
        }
        looking = false
      }
      timer = setInterval(look, LOOK)
      timer.unref?.()
      signal.addEventListener('abort', stop)
      void look()
    },
    cancel: stop,
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } })
}
