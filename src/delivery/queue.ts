import type { Context } from '#src/context.ts'
import { CLOCK_SKEW, HOUR, SECOND } from '#src/lib/duration.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { shareOf } from '#src/lib/share.ts'
import type { Queries, Topic, Transaction } from '#src/storage/store.ts'
import type { Ranges } from './store.ts'

/**
 * `next_attempt_at` of a message that never becomes due by itself. The message is done, waits for an earlier
 * message to its target, or belongs to a disabled webhook.
 */
export const NEVER = Number.MAX_SAFE_INTEGER

/**
 * A row of a queue. Each webhook, and each client with a logout URI, has at most one due row at a time. An
 * address may have several due mails.
 */
export interface Message {
  organization_id: OrganizationId
  next_attempt_at: number
}

/** Stops a delivery. */
export type Stop = () => Promise<void>

/** Messages of one kind in the database, and their delivery. */
export interface Queue<M extends Message> {
  /** Topic of the writes that add messages. */
  topic: Topic
  /** Maximum concurrent deliveries of this server. `at_once_each` is the maximum for one organization. */
  at_once: number
  at_once_each: number
  /**
   * Milliseconds after which another sender may claim the message. The lease is longer than an attempt plus
   * `CLOCK_SKEW`, because the other sender compares the end of the lease with its own clock.
   */
  lease: number
  /** Returns due messages in the order of sending. Leaves out messages of the organizations in `busy`. */
  due(q: Queries, now: number, busy: OrganizationId[], limit: number): Promise<M[]>
  /**
   * Claims a message by postponing its next attempt to `until`. If several senders try to claim the same
   * message, the call of only one sender returns true.
   */
  claim(tx: Transaction, message: M, until: number): Promise<boolean>
  /** Maximum milliseconds between an attempt and the next attempt. */
  longest: number
  /** Makes messages due at `now` if the time of their next attempt is in one of the ranges. */
  release(tx: Transaction, now: number, ranges: Ranges): Promise<void>
  /**
   * Sends a claimed message and stores the outcome. `message` is the row as it was before the claim. An
   * attempt can make several calls, such as one for each event of a webhook. It makes no further call when
   * `isStopped` returns true.
   */
  attempt(context: Context, message: M, until: number, isStopped: () => boolean): Promise<void>
}

/**
 * Milliseconds between two polls. A poll finds failed messages that are due again, and messages whose sender
 * was killed. A new message does not wait for a poll: its commit starts the delivery.
 */
const POLL = 5 * SECOND

interface Pauses {
  first: number
  factor: number
  longest: number
}

/**
 * Returns the milliseconds to wait before the next attempt: `first`, multiplied by `factor` for each of the
 * `attempts`, at most `longest`. The result is then made up to 20 % shorter or longer, so that retries spread
 * over time. The values for mail are in mail/outbox.ts, the values for logouts in
 * sessions/logout-delivery.ts.
 */
export const pauseAfter = (attempts: number, { first, factor, longest }: Pauses): number =>
  Math.round(Math.min(longest, first * factor ** attempts) * (0.8 + 0.4 * Math.random()))

/** Returns the longest result of `pauseAfter` in milliseconds. */
export const longestPause = ({ longest }: Pauses): number => Math.ceil(1.2 * longest)

const countsOf = (messages: Iterable<Message>): Map<OrganizationId, number> => {
  const counts = new Map<OrganizationId, number>()
  for (const { organization_id: id } of messages) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

/**
 * Attempts the due messages, several at the same time, until none is left. If all deliveries of an
 * organization hang, other organizations do not wait for them. A message stays in the queue until the outcome
 * of its attempt is stored. If the process is killed earlier, the message is sent again. `more` resolves when
 * there may be new messages. When `isStopped` returns true, running attempts finish and no further attempt
 * begins.
 *
 * @returns the number of attempts
 */
export const deliverDue = async <M extends Message>(
  context: Context,
  queue: Queue<M>,
  more = () => new Promise<void>(() => {}),
  isStopped = () => false,
): Promise<number> => {
  const { store, clock, log, config } = context
  const at_once = shareOf(queue.at_once, config.workers)
  const at_once_each = shareOf(queue.at_once_each, config.workers)
  const running = new Map<Promise<void>, { message: M; until: number }>()
  let attempts = 0
  const run = (message: M, until: number): void => {
    attempts++
    const end = queue
      .attempt(context, message, until, isStopped)
      .catch(error =>
        log.error({ event: queue.topic, err: error }, 'the outcome of a delivery could not be stored'),
      )
      .finally(() => running.delete(end))
    running.set(end, { message, until })
  }
  /**
   * Claims due messages and starts their deliveries, until `at_once` deliveries run or no due message may
   * start.
   */
  const start = async (): Promise<void> => {
    for (let free = at_once - running.size; free > 0 && !isStopped(); free = at_once - running.size) {
      const counts = countsOf(running.values().map(({ message }) => message))
      const busy = [...counts.keys()].filter(id => counts.get(id) === at_once_each)
      const found = await store.read(q => queue.due(q, clock.now(), busy, free))
      const startable = found.filter(({ organization_id: id }) => {
        const count = (counts.get(id) ?? 0) + 1
        counts.set(id, count)
        return count <= at_once_each
      })
      if (startable.length === 0) return
      // A webhook whose turn is restarted is claimed again while its old turn runs. The old turn recognizes
      // this by the end of the lease, so two leases never have the same end, even within one millisecond.
      let until = clock.now() + queue.lease
      while (running.values().some(lease => lease.until === until)) until++
      const claimed = await store.write(async tx => {
        const own: M[] = []
        for (const message of startable) if (await queue.claim(tx, message, until)) own.push(message)
        return own
      })
      for (const message of claimed) run(message, until)
      if (found.length < free) return
    }
  }
  for (;;) {
    const changed = more()
    const before = attempts
    const busy = running.size
    await start()
    // The loop ends after a round in which no delivery was running and no delivery was started. If a delivery
    // was running, its end may have made room for another delivery, so there is another round.
    if (running.size > 0) await Promise.race([...running.keys(), changed])
    else if (busy === 0 && attempts === before) return attempts
  }
}

/**
 * Returns a function that makes those messages due that wait without a reason. The function acts at its first
 * call, once an hour, and when the clock has been set back. There are two kinds of such messages:
 *
 * - Messages that a killed server had claimed. On SQLite only one server runs, so all claims are stale when
 *   the server starts. A claim looks the same as the pause after a failure, so pauses that are shorter than a
 *   lease end too. On PostgreSQL a claim simply ends with its lease.
 * - Messages of which an attempt failed while the clock was ahead. These messages are due later than any
 *   pause allows. When this server sees that the clock was set back, it ends all pauses that are longer than
 *   a lease.
 *
 * A step back of at most `CLOCK_SKEW` is ignored, because clocks are corrected in small steps. Each pause may
 * be longer by `CLOCK_SKEW`, because another copy with a faster clock may have stored it.
 */
const releaser = <M extends Message>({ store, clock, log }: Context, queue: Queue<M>) => {
  let released_at: number | undefined
  let seen = 0
  return async (): Promise<void> => {
    const now = clock.now()
    const isFirst = released_at === undefined
    const isSetBack = now < seen - CLOCK_SKEW
    seen = isSetBack ? now : Math.max(seen, now)
    if (released_at !== undefined && !isSetBack && now < released_at + HOUR) return
    released_at = now
    const longest = (isSetBack ? queue.lease : queue.longest) + CLOCK_SKEW
    const ranges: Ranges = [[now + 1 + longest, NEVER - 1]]
    if (isFirst && store.engine === 'sqlite') ranges.push([now, now + queue.lease - 1])
    await store
      .write(tx => queue.release(tx, now, ranges))
      .catch(error =>
        log.error(
          { event: queue.topic, err: error },
          'messages that wait without a reason cannot be made due: they wait for their next attempt',
        ),
      )
  }
}

/**
 * Delivers new messages at once, and failed messages when they are due again.
 *
 * @returns a function that stops the delivery. Its promise resolves when the outcomes of the running attempts
 * are stored. A message whose outcome is not stored is sent again after the next start.
 */
export const startDelivery = <M extends Message>(context: Context, queue: Queue<M>): Stop => {
  let signal = Promise.withResolvers<void>()
  let running: Promise<void> | undefined
  let isDue = false
  let isStopped = false
  const release = releaser(context, queue)
  const deliver = async (released: Promise<void>): Promise<void> => {
    await released
    while (isDue && !isStopped) {
      isDue = false
      await deliverDue(
        context,
        queue,
        () => signal.promise,
        () => isStopped,
      ).catch(error =>
        context.log.error(
          { event: queue.topic, err: error },
          'the outbox cannot be read: trying again later',
        ),
      )
    }
  }
  const round = async (): Promise<void> => {
    const released = release()
    isDue = true
    signal.resolve()
    signal = Promise.withResolvers()
    running ??= deliver(released).finally(() => {
      running = undefined
    })
    await running
  }
  // The write waits until this listener returns, so `setTimeout` starts the round in a later task.
  context.store.onChange(topics => {
    if (!topics || topics.has(queue.topic)) setTimeout(round)
  })
  const timer = setInterval(round, POLL)
  timer.unref()
  void round()
  return async () => {
    isStopped = true
    clearInterval(timer)
    await running
  }
}
