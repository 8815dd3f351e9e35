import { and, eq, inArray, isNull, lte, notExists, or, sql } from 'drizzle-orm'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { beginPurge } from '#src/storage/purges.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type DynamicClient = Tables['dynamic_clients']['$inferSelect']

const select = prepared((q, { dynamic_clients: t }) =>
  q
    .select()
    .from(t)
    .where(eq(t.client_id, sql.placeholder('client_id'))),
)

/** Reads a client that registered itself. It is not cached: registrations would empty the cache. */
export const readDynamicClient = async (q: Queries, client_id: string): Promise<DynamicClient | undefined> =>
  (await select(q, { client_id }))[0]

/** Stores a registration; false when the client is registered already. */
export const insertDynamicClient = async (tx: Transaction, client: DynamicClient): Promise<boolean> => {
  const { dynamic_clients: t } = tx.tables
  const stored = await tx.insert(t).values(client).onConflictDoNothing().returning({ id: t.client_id })
  return stored.length > 0
}

/** Notes a use, exact to the day; returns the client as it was before its first use. */
export const noteUse = async (
  tx: Transaction,
  client_id: string,
  now: number,
): Promise<DynamicClient | undefined> => {
  const { dynamic_clients: t } = tx.tables
  const client = await readDynamicClient(tx, client_id)
  if (!client || (client.used_at !== null && now - client.used_at < DAY)) return undefined
  await tx.update(t).set({ used_at: now }).where(eq(t.client_id, client_id))
  return client.used_at === null ? client : undefined
}

/** Milliseconds. A person needs some minutes from the registration to the consent. */
const UNUSED_KEPT = HOUR
const USED_KEPT = 90 * DAY

/**
 * Removes registrations that nobody allowed within the hour, and those without a session that were not used for
 * 90 days. Returns their number; a full batch may have left more.
 */
export const removeUnusedClients = async (tx: Transaction, now: number, limit: number): Promise<number> => {
  const { dynamic_clients, sessions } = tx.tables
  const live = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(eq(sessions.client_id, dynamic_clients.client_id), isNull(sessions.ended_at)))
  const unused = tx
    .select({ client_id: dynamic_clients.client_id })
    .from(dynamic_clients)
    .where(
      or(
        and(isNull(dynamic_clients.used_at), lte(dynamic_clients.created_at, now - UNUSED_KEPT)),
        and(lte(dynamic_clients.used_at, now - USED_KEPT), notExists(live)),
      ),
    )
    .limit(limit)
  const gone = await tx.delete(dynamic_clients).where(inArray(dynamic_clients.client_id, unused)).returning()
  // Clients without a use have no consents to remove.
  for (const { client_id, used_at } of gone)
    if (used_at !== null) await beginPurge(tx, 'client', client_id, now)
  return gone.length
}

/** Replaces the metadata of a client. */
export const saveRegistration = async (tx: Transaction, client: DynamicClient): Promise<void> => {
  const { dynamic_clients: t } = tx.tables
  const { client_id, name, registration, changed_at } = client
  await tx.update(t).set({ name, registration, changed_at }).where(eq(t.client_id, client_id))
}
