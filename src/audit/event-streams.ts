import type { Caller, Core, Tail } from '#src/context.ts'
import { asAppError } from '#src/http/answer.ts'
import { scopeOf } from '#src/http/tenant.ts'
import { AppError, retryLater } from '#src/lib/app-error.ts'
import { SECOND } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { othersRun } from '#src/lib/turn.ts'
import { eventAnswer, type FollowEvents } from './schema.ts'
import type { EventRow } from './store.ts'
import { eventsUpTo, lastId, lastSettled, openingNow, seqBeforeId, wasRemoved } from './stream-store.ts'
import { endFollowing } from './tails.ts'

/** Maximum number of open streams of one caller: a person opens only a few windows of the console. */
const EACH = 5
/**
 * Maximum number of open streams of this server. Each stream keeps a connection open and checks its caller's
 * permission twice a second.
 */
const ALL = 200
/**
 * Maximum number of open streams of an organization other than the default one, so that one organization
 * cannot take all streams of the server.
 */
const OF_TENANT = 100
/** Maximum number of open streams of all organizations except the default one. */
const OF_TENANTS = 150
/**
 * Milliseconds between two reads of the audit log: a person sees no delay, and four reads a second cost
 * little.
 */
const LOOK = 250
/** Milliseconds after which the caller's permission is checked again, even without an event. */
const JUDGED = SECOND / 2
/**
 * Milliseconds without data after which a comment is sent. Proxies often close a connection after a minute
 * without data, and `http/socket.ts` closes a connection after 30 seconds without data.
 */
const BEAT = 15 * SECOND
/** Maximum number of events of one read, which bounds the memory of a stream that catches up. */
const BATCH = 200
/**
 * Maximum number of bytes that wait for a slow reader; 500 events have about this size. The stream ends when
 * more bytes wait.
 */
const WAITING = 256 * 1024

/** Maximum number of characters of the messages that a stream gets at once, unless one message is longer. */
const PORTION = WAITING / 4

type Portion = Parameters<Tail['look']>[0]

/**
 * Returns the events with their messages, in portions. All streams get the same portions. The first portion
 * may be empty.
 */
const portionsOf = (events: readonly EventRow[]): Portion[] => {
  const portions: Portion[number][][] = [[]]
  let size = 0
  for (const event of events) {
    const message = `id: ${event.id}\ndata: ${JSON.stringify(eventAnswer(event))}\n\n`
    if (size + message.length > PORTION) {
      portions.push([])
      size = 0
    }
    size += message.length
    portions.at(-1)?.push({ event, message })
  }
  return portions
}

const pause = () => new Promise<void>(resolve => void setTimeout(resolve, LOOK).unref())

/**
 * Reads new events for all open streams together, until the last stream closes. After a purge has removed the
 * newest events, SQLite uses their `seq` again for new events, and so does PostgreSQL after a failover that
 * has lost them. Therefore `seen` is lowered to the last event that was read and still exists. The id shows
 * whether an event still exists, because no id is used again.
 */
const readOn = async (context: Core, from: number, from_id: string): Promise<void> => {
  const { tails, store, log } = context
  let [seen, last_id] = [from, from_id]
  for (;;) {
    await pause()
    if (tails.open.size === 0) break
    try {
      const opened = [...tails.open].filter(({ last }) => last < Infinity)
      const newest = await lastSettled(store)
      const settled = newest.seq
      if (await wasRemoved(store, { seq: seen, id: last_id }, newest))
        seen = Math.min(seen, await store.read(q => seqBeforeId(q, last_id)))
      do {
        const events =
          seen < settled ? await store.read(q => eventsUpTo(q, seen, settled, BATCH)) : ([] as EventRow[])
        for (const portion of portionsOf(events)) {
          await Promise.all([...tails.open].map(tail => tail.look(portion)))
          // During this pause fast readers get the portion. A burst of events thus ends only the streams of
          // slow readers.
          await othersRun()
        }
        seen = events.length < BATCH ? Math.max(seen, settled) : (events.at(-1)?.seq ?? settled)
      } while (seen < settled)
      last_id = seen === settled ? newest.id : await lastId(store, seen)
      // When the read has passed the `last` of a stream, `last` is reset, because a new event may get a `seq`
      // that is not larger.
      for (const tail of opened) if (store.engine === 'sqlite' || tail.last <= seen) tail.last = 0
    } catch (error) {
      log.error({ event: 'follow', err: error }, 'new events cannot be read')
      endFollowing(context)
    }
  }
  tails.reading = undefined
}

const matcher = (caller: Caller, { organization_id, ...asked }: FollowEvents) => {
  const wanted = { ...asked, organization_id: scopeOf(caller, organization_id) }
  const filters = Object.entries(wanted).filter(([, value]) => value !== undefined)
  return (event: EventRow): boolean =>
    filters.every(([name, value]) => event[name as keyof typeof wanted] === value)
}

/**
 * @throws AppError 429 when the caller, its organization, all tenants or the server already have the maximum
 * of open streams
 */
const admit = (streams: ReadonlySet<Tail>, caller: Caller): void => {
  const open = [...streams]
  const own = open.filter(({ caller_id }) => caller_id === caller.id)
  const together = open.filter(({ organization_id }) => organization_id === caller.organization_id)
  const tenants = open.filter(({ organization_id }) => organization_id !== DEFAULT_ORGANIZATION)
  const isTooMany = !caller.instance && (together.length >= OF_TENANT || tenants.length >= OF_TENANTS)
  if (own.length >= EACH || isTooMany || open.length >= ALL)
    throw new AppError(
      'rate_limited',
      `A caller may have at most ${EACH} open streams, an organization ${OF_TENANT}, all organizations except the default one ${OF_TENANTS}, and all callers together ${ALL}.`,
      {
        // A closed connection counts until the server next writes to its stream. The server does this within
        // `BEAT`. After this time the caller may be able to open a new stream.
        headers: { 'retry-after': String(BEAT / SECOND) },
      },
    )
}

/**
 * Opens a stream of the events that are written from now on
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html). When the caller's token, session or
 * permission ends, the stream sends the refusal as an event `error` and ends.
 *
 * @throws AppError 429 for too many streams, 503 when all streams are ended while this one opens
 */
export const followEvents = async (context: Core, caller: Caller, query: FollowEvents): Promise<Response> => {
  const { tails, store } = context
  admit(tails.open, caller)
  const isWanted = matcher(caller, query)
  let stored: ReadonlySet<number> = new Set()
  const isNew = ({ seq }: EventRow) => seq > tail.last && !stored.has(seq)
  const utf8 = new TextEncoder()
  let out: ReadableStreamDefaultController<Uint8Array> | undefined
  let [judged, sent] = [performance.now(), performance.now()]
  const send = (text: string): void => {
    // The stream may have ended while `look` waited, or at an earlier message. A closed stream throws.
    if (!tails.open.has(tail)) return
    sent = performance.now()
    out?.enqueue(utf8.encode(text))
    if ((out?.desiredSize ?? 0) < -WAITING) tail.end()
  }
  const tail: Tail = {
    caller_id: caller.id,
    organization_id: caller.organization_id,
    last: Infinity,
    look: async told => {
      const now = performance.now()
      try {
        if (told.length > 0 || now - judged >= JUDGED) {
          judged = now
          await store.read(q => caller.confirm(q))
        }
        for (const { event, message } of told) if (isNew(event) && isWanted(event)) send(message)
        // Events come in the order of `seq`, and no event comes twice. After the largest `seq` of `stored`,
        // no event of `stored` can come any more.
        const [newest = Infinity] = stored
        if ((told.at(-1)?.event.seq ?? 0) >= newest) stored = new Set()
        if (now - sent >= BEAT) send(':\n\n')
      } catch (error) {
        const { code, status, message } = asAppError(error)
        const refusal = { error: code, error_description: message, status }
        send(`event: error\ndata: ${JSON.stringify(refusal)}\n\n`)
        tail.end()
      }
    },
    end: () => {
      if (!tails.open.delete(tail)) return
      out?.close()
    },
  }
  tails.open.add(tail)
  try {
    const opening = await openingNow(store)
    stored = opening.stored
    tail.last = opening.last
    const last_id = await lastId(store, opening.last)
    if (!tails.open.has(tail))
      throw retryLater('temporarily_unavailable', 'The stream was ended while it opened.', SECOND)
    tails.reading ??= readOn(context, opening.last, last_id)
  } catch (error) {
    tails.open.delete(tail)
    throw error
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start: controller => {
        out = controller
        send(':\n\n')
      },
      cancel: () => void tails.open.delete(tail),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  )
  // With `x-accel-buffering` nginx passes each event on at once.
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  })
}
