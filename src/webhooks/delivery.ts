import type { EventRow } from '#src/audit/store.ts'
import {
  eventsUpTo,
  lastSeq,
  lastSettled,
  newestEvent,
  type Seen,
  settledSeq,
  wasRemoved,
} from '#src/audit/stream-store.ts'
import { eventTypes } from '#src/audit/types.ts'
import type { Context } from '#src/context.ts'
import { deliverDue, NEVER, type Queue, type Stop, startDelivery } from '#src/delivery/queue.ts'
import { CLOCK_SKEW, DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import type { OrganizationId, WebhookId } from '#src/lib/ids.ts'
import { othersRun } from '#src/lib/turn.ts'
import { cached } from '#src/storage/cache.ts'
import { fitsPattern } from './schema.ts'
import { type Attempt, sendEvent } from './send.ts'
import {
  hasEnabled,
  insertDelivery,
  listDueWebhooks,
  listEnabled,
  releaseWebhooks,
  saveTurn,
  trimDeliveries,
  type Webhook,
  wakeAll,
  wakeWebhooks,
} from './store.ts'
import { switchOff } from './switch-off.ts'

/** Maximum number of events in one read. It limits the memory for a webhook with many pending events. */
const BATCH = 200
/** Number of `seq` values that one query scans. A scan blocks the event loop for about 1 ms. */
const WINDOW = 1_000
/**
 * Milliseconds after which a webhook ends its turn even if it has more events, so that it does not delay
 * other webhooks.
 */
const TURN = 5 * SECOND
/**
 * Milliseconds after which another sender may take over the turn of a webhook: longer than `TURN` plus the
 * timeout of the last attempt and `CLOCK_SKEW`.
 */
const LEASE = 2 * MINUTE
/** Milliseconds between two polls for new events. Four polls in a second cost little. */
const POLL = 250
/**
 * Milliseconds after which an idle webhook takes a turn even if no new event has made it due. When the server
 * misses a new event, the event is therefore late but not lost.
 */
const IDLE = 10 * MINUTE
/**
 * Milliseconds after which a webhook is disabled if each attempt in this time has failed. A day is longer
 * than an overnight outage of a receiver. After the webhook is enabled again, it gets the missed events that
 * the database still has.
 */
const GIVEN_UP = DAY
/**
 * Pauses after failures, in milliseconds:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#deliverability-and-reliability
 */
const PAUSES = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR]

/** Returns the event types that match a filter. */
const typesOf = (events: readonly string[]): EventRow['type'][] =>
  eventTypes.filter(type => events.some(each => fitsPattern(each, type)))

const isAnyEnabled = cached('webhooks', hasEnabled)

/**
 * Returns a function from an event type to the ids of the organization's enabled webhooks that want this
 * type. The function is cached until a commit changes webhooks. The webhooks are read again when the
 * organization has a new event. The key of the cache is the organization alone, because the cache has no room
 * for every combination of many organizations and event types.
 */
const webhooksFor = cached('webhooks', async (q, organization_id) => {
  const hooks = await listEnabled(q, organization_id as OrganizationId)
  const known = new Map<EventRow['type'], WebhookId[]>()
  return (type: EventRow['type']): WebhookId[] => {
    let ids = known.get(type)
    if (ids) return ids
    ids = hooks.filter(({ events }) => events.some(each => fitsPattern(each, type))).map(({ id }) => id)
    known.set(type, ids)
    return ids
  }
})

/**
 * Returns the milliseconds of a `Retry-After`, at most a day. Returns 0 when the header is missing or
 * invalid:
 * https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
 */
const retryAfter = (text: string | null, now: number): number => {
  if (text === null) return 0
  const wait = /^\d{1,9}$/.test(text) ? Number(text) * SECOND : Date.parse(text) - now
  return Number.isFinite(wait) ? Math.min(Math.max(wait, 0), DAY) : 0
}

/**
 * Stores a failed attempt at the event after the cursor. Sets the time of the next attempt, or switches the
 * webhook off.
 */
const fail = (context: Context, hook: Webhook, { log, retry_after }: Attempt): Promise<void> =>
  context.store.write(async tx => {
    const now = context.clock.now()
    const failing_since = hook.failing_since ?? now
    const failure = log.failure ?? ''
    // 410 Gone: the receiver wants no more events (Standard Webhooks, "Deliverability and reliability").
    const reason = log.status === 410 ? 'gone' : now - failing_since >= GIVEN_UP ? 'failing' : null
    const pause = (PAUSES[hook.attempts] ?? (PAUSES.at(-1) as number)) * (0.8 + 0.4 * Math.random())
    const wait = Math.max(pause, retryAfter(retry_after, now))
    // The last attempt is made a day after the first failure, even if the pause would end later.
    const next = Math.round(Math.min(now + wait, failing_since + GIVEN_UP))
    const state = { attempts: hook.attempts + 1, failing_since, failure, cursor: hook.cursor }
    const isOwn = await saveTurn(
      tx,
      hook,
      reason
        ? { ...state, enabled: false, disabled_reason: reason, next_attempt_at: NEVER }
        : { ...state, next_attempt_at: next },
    )
    // When the turn has ended or the webhook was deleted, neither the state nor the attempt is stored.
    if (!isOwn) return
    await insertDelivery(tx, log, hook.cursor + 1)
    await trimDeliveries(tx, hook.id)
    if (reason) await switchOff(context, tx, hook, reason, failure)
  })

/**
 * Ends a turn. The next turn starts at once if events remain. Otherwise it starts when a new event arrives,
 * at the latest after `IDLE`, or after a second if open transactions hold events back. The cursor is at most
 * the last `seq`, because a failover can lose the events of the turn, and new events then get their `seq`.
 */
const rest = (context: Context, hook: Webhook, settled: number, has_more: boolean): Promise<void> =>
  context.store.write(async tx => {
    const now = context.clock.now()
    const isIdle = !has_more
    const last = await lastSeq(tx)
    const isBehind = isIdle && last > settled
    // Events beyond `settled` cannot be delivered before open transactions end. Open transactions usually end
    // within a second.
    const idle_until = isBehind ? now + SECOND : now + IDLE
    await saveTurn(tx, hook, {
      cursor: Math.min(hook.cursor, last),
      idle: isIdle,
      next_attempt_at: isIdle ? idle_until : now,
    })
    await trimDeliveries(tx, hook.id)
  })

/**
 * Returns the milliseconds by which a turn began late. Returns 0 for a delay of at most `CLOCK_SKEW`. A turn
 * is late after the server was stopped, and after the database was restored from a backup.
 */
const overdueBy = ({ next_attempt_at }: Webhook, begun: number): number =>
  begun > next_attempt_at + CLOCK_SKEW ? begun - next_attempt_at : 0

/**
 * Delivers the events after the cursor in order. Ends when a delivery fails, when all events are delivered,
 * when the time of the turn is over or when the delivery is stopped. Each event is sent only after the
 * earlier events were delivered, so receivers can rely on the order. The audit log is the outbox, so no event
 * is stored twice, and webhooks add no cost to a write.
 */
const takeTurn = async (
  context: Context,
  found: Webhook,
  until: number,
  isStopped: () => boolean,
): Promise<void> => {
  const end = performance.now() + TURN
  const isOver = () => isStopped() || performance.now() > end
  const wanted = {
    types: typesOf(found.events),
    organization_id: found.all_organizations ? undefined : found.organization_id,
  }
  const { failing_since } = found
  let hook = {
    ...found,
    next_attempt_at: until,
    // Time in which no server tried to deliver, such as the time after a stop, does not count as failing.
    failing_since: failing_since && failing_since + overdueBy(found, until - LEASE),
  }
  for (;;) {
    const settled = await settledSeq(context.store)
    const last = Math.min(settled, hook.cursor + WINDOW)
    const events = await context.store.read(q => eventsUpTo(q, hook.cursor, last, BATCH, wanted))
    for (const event of events) {
      const attempt = await sendEvent(context, hook, event)
      if (attempt.log.failure !== null) {
        const { origin } = new URL(hook.url)
        const { err, log } = attempt
        const details = { event: 'webhook', webhook: hook.id, target: origin, failure: log.failure, err }
        context.log.warn(details, 'event not delivered')
        return fail(context, { ...hook, cursor: event.seq - 1 }, attempt)
      }
      const healthy = { cursor: event.seq, attempts: 0, failing_since: null, failure: null }
      hook = { ...hook, ...healthy }
      const isOwn = await context.store.write(async tx => {
        const isKept = await saveTurn(tx, hook, healthy)
        if (isKept) await insertDelivery(tx, attempt.log, event.seq)
        return isKept
      })
      if (!isOwn) return
      if (isOver()) return rest(context, hook, settled, true)
    }
    if (events.length < BATCH) hook = { ...hook, cursor: Math.max(hook.cursor, last) }
    if (hook.cursor >= settled) return rest(context, hook, settled, false)
    if (isOver()) return rest(context, hook, settled, true)
    await othersRun()
  }
}

const queue: Queue<Webhook> = {
  topic: 'webhook_turns',
  // Receivers may take 15 seconds to answer, so one organization gets only a few of the concurrent calls.
  at_once: 64,
  at_once_each: 4,
  lease: LEASE,
  // Maximum milliseconds from an attempt to the next attempt: the longest `Retry-After` that is accepted.
  longest: DAY,
  due: listDueWebhooks,
  // `claim` compares the cursor too. A turn of another sender may begin and end in the millisecond in which
  // the webhook became due. The webhook is then due again with the same `next_attempt_at`, but `hook` has an
  // old cursor.
  claim: (tx, hook, until) => saveTurn(tx, hook, { next_attempt_at: until, idle: false }, hook.cursor),
  release: releaseWebhooks,
  attempt: takeTurn,
}

/** Delivers the pending events of all webhooks. */
export const deliverWebhooks = async (context: Context): Promise<number> => {
  await context.store.write(tx => wakeAll(tx, context.clock.now()))
  return deliverDue(context, queue)
}

/**
 * Makes those webhooks due that want an event after `seen`, or all webhooks when `seen` is undefined or was
 * removed: a new event can then have a `seq` that was read already. Returns the last event up to which
 * webhooks are due, or undefined when no webhook is enabled.
 */
const wakeFor = async (context: Context, seen: Seen | undefined): Promise<Seen | undefined> => {
  const { clock, store } = context
  if (!(await isAnyEnabled(store, ''))) return undefined
  const newest = await lastSettled(store)
  if (seen === undefined || (await wasRemoved(store, seen, newest))) {
    // Each turn waits for the events that open transactions hold back, so these events need no other wake.
    const stored = await store.read(q => newestEvent(q))
    await store.write(tx => wakeAll(tx, clock.now()))
    return stored ?? newest
  }
  const settled = newest.seq
  for (let last = seen.seq; last < settled; ) {
    const from = last
    const events = await store.read(q => eventsUpTo(q, from, settled, BATCH))
    const ids = new Set<WebhookId>()
    for (const { type, organization_id } of events) {
      const isKnown = webhooksFor.peek(store, organization_id) !== undefined
      const wantedBy = await webhooksFor(store, organization_id)
      for (const id of wantedBy(type)) ids.add(id)
      if (!isKnown) await othersRun()
    }
    if (ids.size > 0) await store.write(tx => wakeWebhooks(tx, clock.now(), [...ids]))
    last = events.length < BATCH ? settled : (events.at(-1)?.seq ?? settled)
    if (last < settled) await othersRun()
  }
  return settled > seen.seq ? newest : seen
}

/**
 * Delivers events when they are written, and tries failed events again when they are due.
 *
 * @returns a function that stops the delivery
 */
export const startWebhookDelivery = (context: Context): Stop => {
  let seen: Seen | undefined
  let isPolling = false
  const poll = async (): Promise<void> => {
    if (isPolling) return
    isPolling = true
    try {
      seen = await wakeFor(context, seen)
    } catch (error) {
      context.log.error(
        { event: 'webhook', err: error },
        'new events cannot be read: trying again at the next poll',
      )
    }
    isPolling = false
  }
  const timer = setInterval(poll, POLL)
  timer.unref()
  const stop = startDelivery(context, queue)
  return () => {
    clearInterval(timer)
    return stop()
  }
}
