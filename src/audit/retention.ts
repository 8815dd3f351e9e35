import type { Context } from '#src/context.ts'
import { BATCH } from '#src/storage/batches.ts'
import { removeOldEvents } from './store.ts'

/** Removes events older than `event_retention`, if that is set, in writes of a bounded size; says how many. */
export const sweepEvents = async (context: Context): Promise<number> => {
  const { event_retention } = context.config
  if (event_retention === undefined) return 0
  const before = context.clock.now() - event_retention
  for (let removed = 0; ; ) {
    const count = await context.store.write(tx => removeOldEvents(tx, before, BATCH))
    removed += count
    if (count < BATCH) return removed
  }
}
