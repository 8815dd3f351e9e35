import { and, eq, exists, inArray, isNull, like, lte, not, notExists, or, sql } from 'drizzle-orm'
import { beyond, byCreation, type Range } from '#src/directory/store.ts'
import { DAY, HOUR } from '#src/lib/duration.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { DOCUMENT_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type DynamicClient = Tables['dynamic_clients']['$inferSelect']

const select = prepared((q, { dynamic_clients: t }) =>
  q
    .select()
    .from(t)
    .where(eq(t.client_id, sql.placeholder('client_id'))),
)

/** Reads a dynamic client. It is not cached, because each registration would empty the cache. */
export const readDynamicClient = async (q: Queries, client_id: string): Promise<DynamicClient | undefined> =>
  (await select(q, { client_id }))[0]

/** Stores a registration. Returns false when the client is registered already. */
export const insertDynamicClient = async (tx: Transaction, client: DynamicClient): Promise<boolean> => {
  const { dynamic_clients: t } = tx.tables
  const stored = await tx.insert(t).values(client).onConflictDoNothing().returning({ id: t.client_id })
  return stored.length > 0
}

/** Stores the time of a use, unless the stored time is less than a day old. */
export const noteUse = async (tx: Transaction, client_id: string, now: number): Promise<void> => {
  const { dynamic_clients: t } = tx.tables
  const isOld = or(isNull(t.used_at), lte(t.used_at, now - DAY))
  await tx
    .update(t)
    .set({ used_at: now })
    .where(and(eq(t.client_id, client_id), isOld))
}

/**
 * Milliseconds for which a registration without a consent is kept after its last renewal. A person needs only
 * some minutes from the registration to the consent.
 */
const UNUSED_KEPT = HOUR
/**
 * Milliseconds for which a client is kept after its last use. This is longer than the lifetime of an unused
 * refresh token. A login after the removal asks for consent again.
 */
const USED_KEPT = 90 * DAY

/** Returns the time (ms) after which a client without sessions is unused ({@link listUnusedClients}). */
export const endOf = ({ used_at, created_at }: DynamicClient): number =>
  used_at === null ? created_at + UNUSED_KEPT : used_at + USED_KEPT

/** True when at most half an hour is left until the time that {@link endOf} returns. */
export const endsSoon = (client: DynamicClient, now: number): boolean =>
  endOf(client) <= now + UNUSED_KEPT / 2

/**
 * Keeps a client for at least `UNUSED_KEPT` after it registers again. A client without a use gets a new
 * `created_at`. The `used_at` of any other client is moved only as far as needed, because a registration is
 * not a use. Returns the stored client.
 */
export const renewRegistration = async (
  tx: Transaction,
  client_id: string,
  now: number,
): Promise<DynamicClient | undefined> => {
  const { dynamic_clients: t } = tx.tables
  const isIt = eq(t.client_id, client_id)
  const used_at = now - USED_KEPT + UNUSED_KEPT
  await tx
    .update(t)
    .set({ created_at: now })
    .where(and(isIt, isNull(t.used_at)))
  await tx
    .update(t)
    .set({ used_at })
    .where(and(isIt, lte(t.used_at, used_at)))
  return readDynamicClient(tx, client_id)
}

/**
 * Returns up to `limit` unused clients. A client is unused if no user allowed it within an hour after its
 * registration. A client is also unused after 90 days without a use, if all its sessions have ended.
 */
export const listUnusedClients = (q: Queries, now: number, limit: number): Promise<DynamicClient[]> => {
  const { dynamic_clients: t, sessions } = q.tables
  const live = q
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(eq(sessions.client_id, t.client_id), isNull(sessions.ended_at)))
  return q
    .select()
    .from(t)
    .where(
      or(
        and(isNull(t.used_at), lte(t.created_at, now - UNUSED_KEPT)),
        and(lte(t.used_at, now - USED_KEPT), notExists(live)),
      ),
    )
    .limit(limit)
}

/**
 * Removes clients. The caller has already removed the consents and pending requests of the clients that a
 * user had allowed.
 */
export const removeDynamicClients = async (tx: Transaction, client_ids: string[]): Promise<void> => {
  const { dynamic_clients: t } = tx.tables
  await tx.delete(t).where(inArray(t.client_id, client_ids))
}

/** Replaces the metadata of a client. */
export const saveRegistration = async (tx: Transaction, client: DynamicClient): Promise<void> => {
  const { dynamic_clients: t } = tx.tables
  const { client_id, name, registration, changed_at } = client
  await tx.update(t).set({ name, registration, changed_at }).where(eq(t.client_id, client_id))
}

/** Filters of the list. An absent filter matches all clients. */
export interface DynamicClientFilter {
  /**
   * Matches clients that a user of this organization has allowed, and clients that registered with an initial
   * access token of this organization.
   */
  organization_id: OrganizationId | undefined
  source: 'registration' | 'document' | undefined
}

const matching = (q: Queries, { organization_id, source }: DynamicClientFilter) => {
  const { dynamic_clients: t, consents } = q.tables
  const isDocument = like(t.client_id, `${DOCUMENT_DYNAMIC}%`)
  const allowed = q
    .select({ client_id: consents.client_id })
    .from(consents)
    .where(and(eq(consents.client_id, t.client_id), eq(consents.organization_id, organization_id ?? 'org_')))
  return and(
    source && (source === 'document' ? isDocument : not(isDocument)),
    organization_id && or(eq(t.organization_id, organization_id), exists(allowed)),
  )
}

/** Returns a page of dynamic clients, in the order of creation. */
export const listDynamicClients = (
  q: Queries,
  filter: DynamicClientFilter,
  range: Range,
): Promise<DynamicClient[]> => {
  const { dynamic_clients: t } = q.tables
  return q
    .select()
    .from(t)
    .where(and(matching(q, filter), beyond(range, t.created_at, t.client_id)))
    .orderBy(...byCreation(range.order, t.created_at, t.client_id))
    .limit(range.limit)
}

/** Counts the dynamic clients of the list. The result 10,001 means more than 10,000. */
export const countDynamicClients = (q: Queries, filter: DynamicClientFilter): Promise<number> => {
  const { dynamic_clients: t } = q.tables
  const found = q.select({ client_id: t.client_id }).from(t).where(matching(q, filter))
  return countUpTo(q, found, COUNT_LIMIT + 1)
}
