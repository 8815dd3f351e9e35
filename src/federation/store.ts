import { and, eq, gt } from 'drizzle-orm'
import type { IdentityProviderId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type UpstreamRequestRow = Tables['upstream_requests']['$inferSelect']

/** Inserts the row if no row has this state, because the same request may arrive twice at the same time. */
export const insertUpstreamRequest = async (tx: Transaction, upstream: UpstreamRequestRow): Promise<void> => {
  await tx.insert(tx.tables.upstream_requests).values(upstream).onConflictDoNothing()
}

interface UpstreamRequestKey {
  state_hash: SecretHash
  step: UpstreamRequestRow['step']
  provider_id?: IdentityProviderId
  browser_hash?: SecretHash
  now: number
}

const matching = (
  { upstream_requests: t }: Tables,
  { state_hash, step, provider_id, browser_hash, now }: UpstreamRequestKey,
) =>
  and(
    eq(t.state_hash, state_hash),
    eq(t.step, step),
    provider_id && eq(t.provider_id, provider_id),
    browser_hash && eq(t.browser_hash, browser_hash),
    gt(t.expires_at, now),
  )

/** Returns the unexpired upstream request that matches each given part of the key. */
export const findUpstreamRequest = async (
  q: Queries,
  key: UpstreamRequestKey,
): Promise<UpstreamRequestRow | undefined> => {
  const [row] = await q.select().from(q.tables.upstream_requests).where(matching(q.tables, key))
  return row
}

/**
 * Deletes and returns the upstream request. Only one caller gets the row, so an answer of the provider begins
 * only one login. Nothing is deleted when the request belongs to another browser or provider.
 */
export const consumeUpstreamRequest = async (
  tx: Transaction,
  key: Required<UpstreamRequestKey>,
): Promise<UpstreamRequestRow | undefined> => {
  const [row] = await tx.delete(tx.tables.upstream_requests).where(matching(tx.tables, key)).returning()
  return row
}
