import { and, desc, eq, gte, isNotNull, sql } from 'drizzle-orm'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import { isDynamic, type Origin } from '#src/protocol/oauth/dynamic-id.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'

/**
 * Adds the scopes to the user's consent to the client, so that the user is asked about each scope once. A
 * consent from before `since` (ms) is replaced. The new consent counts even if `since` is in the future. Such
 * a `since` was stored before the clock was set back.
 */
export const grantConsent = async (
  tx: Transaction,
  grant: {
    user_id: UserId
    client_id: string
    organization_id: OrganizationId
    scopes: readonly string[]
    since?: number
  },
  now: number,
): Promise<void> => {
  const { consents } = tx.tables
  const { scopes, since = 0, ...key } = grant
  const [before] = await tx
    .select({ scopes: consents.scopes })
    .from(consents)
    .where(
      and(
        eq(consents.user_id, key.user_id),
        eq(consents.client_id, key.client_id),
        gte(consents.updated_at, since),
      ),
    )
  const all = [...new Set([...(before?.scopes ?? []), ...scopes])]
  const updated_at = Math.max(now, since)
  await tx
    .insert(consents)
    .values({ ...key, scopes: all, created_at: now, updated_at })
    .onConflictDoUpdate({
      target: [consents.user_id, consents.client_id],
      set: { scopes: all, updated_at },
    })
}

/** True when a user of the organization has granted consent to the client. */
export const hasConsents = async (
  q: Queries,
  client_id: string,
  organization_id: OrganizationId,
): Promise<boolean> => {
  const { consents } = q.tables
  const found = await q
    .select({ user_id: consents.user_id })
    .from(consents)
    .where(and(eq(consents.client_id, client_id), eq(consents.organization_id, organization_id)))
    .limit(1)
  return found.length > 0
}

/**
 * Returns the time in milliseconds before which consents to the client do not count. For a dynamic client
 * this is the last change of its redirect URIs, keys or authentication methods. Since that change the client
 * may have a new owner.
 */
export const consentsSince = (client: Origin & { readonly updated_at: number }): number =>
  isDynamic(client) ? client.updated_at : 0

/** Lists the scopes that the user has granted to clients, latest first. Deleted clients are left out. */
export const listGrants = (q: Queries, user_id: UserId) => {
  const { clients, consents, dynamic_clients } = q.tables
  const client_name = sql<string>`coalesce(${clients.name}, ${dynamic_clients.name})`
  return q
    .select({
      client_id: consents.client_id,
      client_name,
      scopes: consents.scopes,
      created_at: consents.created_at,
    })
    .from(consents)
    .leftJoin(clients, eq(clients.client_id, consents.client_id))
    .leftJoin(dynamic_clients, eq(dynamic_clients.client_id, consents.client_id))
    .where(and(eq(consents.user_id, user_id), isNotNull(client_name)))
    .orderBy(desc(consents.updated_at), consents.client_id)
}

/** Removes the consent of a user to a client. The caller ends the sessions (`postDisconnect`). */
export const removeGrant = async (tx: Transaction, user_id: UserId, client_id: string): Promise<void> => {
  const { consents } = tx.tables
  await tx.delete(consents).where(and(eq(consents.user_id, user_id), eq(consents.client_id, client_id)))
}
