import { and, desc, eq, or } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'

/** Lists the scopes that the user has granted to clients, latest first. Deleted clients are left out. */
export const listGrants = (q: Queries, user_id: UserId) => {
  const { clients, consents } = q.tables
  return q
    .select({
      client_id: consents.client_id,
      client_name: clients.name,
      scopes: consents.scopes,
      created_at: consents.created_at,
    })
    .from(consents)
    .innerJoin(clients, eq(clients.client_id, consents.client_id))
    .where(eq(consents.user_id, user_id))
    .orderBy(desc(consents.updated_at), consents.client_id)
}

export const removeGrant = async (tx: Transaction, user_id: UserId, client_id: string): Promise<void> => {
  const { consents } = tx.tables
  await tx.delete(consents).where(and(eq(consents.user_id, user_id), eq(consents.client_id, client_id)))
}

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
