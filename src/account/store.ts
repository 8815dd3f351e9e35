import { desc, eq, or } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'

const MAX_EVENTS = 10_000

/** Lists the events in which the user is actor or target, latest first, at most 10,000. */
export const listOwnEvents = (q: Queries, user_id: UserId) => {
  const { events } = q.tables
  return q
    .select({
      id: events.id,
      type: events.type,
      actor_id: events.actor_id,
      target_id: events.target_id,
      target_type: events.target_type,
      ip_address: events.ip_address,
      user_agent: events.user_agent,
      timestamp: events.timestamp,
      metadata: events.metadata,
    })
    .from(events)
    .where(or(eq(events.actor_id, user_id), eq(events.target_id, user_id)))
    .orderBy(desc(events.seq))
    .limit(MAX_EVENTS)
}
