import type { Context } from '#src/context.ts'
import { expireDueSessions } from '#src/sessions/service.ts'
import { inBatches } from '#src/storage/batches.ts'
import { removals } from './sweep-store.ts'

/**
 * Ends expired sessions and records a `session.expired` event for each. Also removes expired rows. Each write
 * has a bounded size. Returns the number of handled sessions and rows. The number includes extended sessions,
 * which only get a later `due_at`.
 */
export const sweep = async (context: Context): Promise<number> => {
  const now = context.clock.now()
  let total = await inBatches(context.store, (tx, limit) => expireDueSessions(context, tx, limit))
  for (const remove of removals)
    total += await inBatches(context.store, (tx, limit) => remove(tx, limit, now, context))
  return total
}
