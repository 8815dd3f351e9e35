import { lastSeq, settledSeq } from '#src/audit/stream-store.ts'
import type { Context } from '#src/context.ts'
import type { Store } from '#src/storage/store.ts'
import { deliverWebhooks } from '#src/webhooks/delivery.ts'
import type { TestApp } from '#test/support/app.ts'
import { until } from '#test/support/until.ts'

/**
 * Waits until all stored events are settled, and returns the last `seq`. On PostgreSQL the heartbeat of any
 * store of this process is a transaction that can hold events back for a moment.
 */
export const allSettled = async (store: Store): Promise<number> => {
  const last = await store.read(lastSeq)
  await until(async () => (await settledSeq(store)) >= last)
  return last
}

/** Delivers all events, also those that are stored during the delivery. */
export const deliverAll = async (context: Context): Promise<void> => {
  let last: number
  do {
    last = await allSettled(context.store)
    await deliverWebhooks(context)
  } while (last !== (await context.store.read(lastSeq)))
}

/**
 * Repeats the check as `until` does. An event that arrives at the end of a webhook's turn can get its turn a
 * second later by the clocks of the apps. These clocks therefore move meanwhile.
 */
export const untilDelivered = (apps: TestApp[], holds: () => boolean | Promise<boolean>): Promise<void> =>
  until(() => {
    // Milliseconds, as long as `until` sleeps.
    for (const { clock } of apps) clock.advance(5)
    return holds()
  })
