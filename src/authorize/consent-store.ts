import { and, desc, eq, gte, isNotNull, sql } from 'drizzle-orm'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { isDynamic, type Origin } from '#src/protocol/oauth/dynamic-id.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'

const consentsOf = prepared((q, { consents, logins }) =>
  q
    .select({ user_id: consents.user_id, scopes: consents.scopes })
    .from(logins)
    .innerJoin(
      consents,
      and(
        eq(consents.user_id, logins.user_id),
        eq(consents.client_id, sql.placeholder('client_id')),
        gte(consents.updated_at, sql.placeholder('since')),
      ),
    )
    .where(eq(logins.browser_hash, sql.placeholder('browser_hash'))),
)

/** Lists the scopes that the users of this browser have granted to the client since `since` (ms). */
export const listConsents = (
  q: Queries,
  key: { browser_hash: SecretHash; client_id: string; since: number },
): Promise<{ user_id: UserId; scopes: readonly string[] }[]> => consentsOf(q, key)

/**
 * Adds the scopes to those that the user has granted to the client since `since` (ms), so that the user is
 * asked about each scope once. An older consent is replaced.
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
  await tx
    .insert(consents)
    .values({ ...key, scopes: all, created_at: now, updated_at: now })
    .onConflictDoUpdate({
      target: [consents.user_id, consents.client_id],
      set: { scopes: all, updated_at: now },
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
 * this is the last change of its redirect URIs or keys, because the client may have changed hands.
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
