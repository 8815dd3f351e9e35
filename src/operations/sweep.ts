import type { Context } from '#src/context.ts'
import { expireDueSessions } from '#src/sessions/service.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import type { Transaction } from '#src/storage/store.ts'
import { removals } from './sweep-store.ts'

/**
 * Ends expired sessions, each with a `session.expired` event, and removes expired rows. Each batch is its own
 * write of a few milliseconds, so that other writes run in between. Returns the number of rows.
 */
export const sweep = async (context: Context): Promise<number> => {
  const now = context.clock.now()
  let total = await untilDone(context, tx => expireDueSessions(context, tx, DELETE_BATCH))
  for (const remove of removals) total += await untilDone(context, tx => remove(tx, now, context))
  return total
}

const untilDone = async (context: Context, batch: (tx: Transaction) => Promise<number>): Promise<number> => {
  for (let total = 0; ; ) {
    await context.store.drained()
    const count = await context.store.write(batch)
    total += count
    if (count < DELETE_BATCH) return total
  }
}
