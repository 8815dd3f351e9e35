import { and, asc, eq, gt, isNotNull } from 'drizzle-orm'
import type { FactorId, IdentityProviderId, UserId, WebhookId } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'

/** A secret that is sealed under a key derived from the instance key, and the id of its row. */
type Sealed<Id> = { id: Id; secret: Buffer | null }

/**
 * Returns at most `limit` client secrets of identity providers with ids above `after`, in the order of ids.
 */
export const sealedProviders = async (
  q: Queries,
  after: string,
  limit: number,
): Promise<Sealed<IdentityProviderId>[]> => {
  const { identity_providers: t } = q.tables
  return q
    .select({ id: t.id, secret: t.client_secret })
    .from(t)
    .where(and(isNotNull(t.client_secret), gt(t.id, after as IdentityProviderId)))
    .orderBy(asc(t.id))
    .limit(limit)
}

/** Returns at most `limit` secrets of webhooks with ids above `after`, in the order of ids. */
export const sealedWebhooks = async (
  q: Queries,
  after: string,
  limit: number,
): Promise<{ id: WebhookId; secret: Buffer }[]> => {
  const { webhooks: t } = q.tables
  return q
    .select({ id: t.id, secret: t.secret })
    .from(t)
    .where(gt(t.id, after as WebhookId))
    .orderBy(asc(t.id))
    .limit(limit)
}

/** Returns at most `limit` secrets of authenticator apps with ids above `after`, in the order of ids. */
export const sealedFactors = async (
  q: Queries,
  after: string,
  limit: number,
): Promise<(Sealed<FactorId> & { user_id: UserId })[]> => {
  const { factors: t } = q.tables
  return q
    .select({ id: t.id, user_id: t.user_id, secret: t.secret })
    .from(t)
    .where(and(eq(t.type, 'totp'), gt(t.id, after as FactorId)))
    .orderBy(asc(t.id))
    .limit(limit)
}
