import { and, type Column, eq, gt, inArray, ne, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { EventId, OrganizationId } from '#src/lib/ids.ts'
import { deleteBatch } from './batches.ts'
import { beginClientPurges, beginPurge, isPurging, type PurgeKind } from './purges.ts'
import type { Queries, Transaction } from './store.ts'
import type { Tables } from './tables.ts'

// Removes rows whose parent is deleted, in batches. These rows name their parent without a foreign key,
// because a cascade over a million rows would delay all other writes.

/** The kinds of deleted objects. */
export type Deletion = Exclude<PurgeKind, 'attribute_index'>

/**
 * Returns the tables that can have rows of the deleted objects. For each table, returns the column by which a
 * batch is selected, and the condition for these rows.
 */
const remainsOf = (t: Tables, kind: Deletion, ids: readonly string[]) => {
  const isOf = (column: Column) => inArray(column, ids)
  const { authorization_requests: requests, external_accounts: accounts } = t
  const { actor_id, seq, subject_id, target_id, type } = t.events
  switch (kind) {
    case 'user':
      return [
        [t.sessions, t.sessions.id, isOf(t.sessions.user_id)],
        [t.logins, t.logins.id, isOf(t.logins.user_id)],
        [t.consents, t.consents.client_id, isOf(t.consents.user_id)],
        [t.links, t.links.link_hash, isOf(t.links.user_id)],
        // All earlier events by and about a deleted user are removed, because the IP addresses and user
        // agents in them are personal data. The event `user.deleted` about the user stays, because
        // administrators must be able to see who deleted an account. It is removed with the account of the
        // administrator who caused it, whose address is in it.
        [t.events, seq, isOf(subject_id)],
        [t.events, seq, and(isOf(actor_id), ne(actor_id, target_id))],
        [t.events, seq, and(isOf(target_id), ne(type, 'user.deleted'))],
      ] as const
    case 'organization':
      return [
        [t.sessions, t.sessions.id, isOf(t.sessions.organization_id)],
        [t.events, seq, isOf(t.events.organization_id)],
        [t.webhook_deliveries, t.webhook_deliveries.number, isOf(t.webhook_deliveries.organization_id)],
        [t.statistics, t.statistics.hour, isOf(t.statistics.organization_id)],
      ] as const
    case 'role':
      return [[t.user_roles, t.user_roles.user_id, isOf(t.user_roles.role_id)]] as const
    case 'group':
      return [[t.group_members, t.group_members.user_id, isOf(t.group_members.group_id)]] as const
    case 'client':
      return [
        [t.consents, t.consents.user_id, isOf(t.consents.client_id)],
        [requests, requests.request_hash, isOf(requests.client_id)],
      ] as const
    case 'identity_provider':
      return [[accounts, accounts.subject, isOf(accounts.provider_id)]] as const
  }
}

/**
 * True while rows of a deleted object with this id remain. A pending purge is not the only sign: the roles,
 * groups and providers of a deleted organization get no purge of their own, and their rows disappear with the
 * users of the organization.
 */
export const hasRemains = async (q: Queries, kind: Deletion, id: string): Promise<boolean> => {
  if (await isPurging(q, id)) return true
  const { external_accounts, group_members, user_roles, users } = q.tables
  const columns: Partial<Record<Deletion, SQLiteColumn>> = {
    role: user_roles.role_id,
    group: group_members.group_id,
    identity_provider: external_accounts.provider_id,
    user: users.id,
  }
  const column = columns[kind]
  if (!column) return false
  return (await q.select({ id: column }).from(column.table).where(eq(column, id)).limit(1)).length > 0
}

/**
 * Moves the cursor of each webhook back to the last remaining event, if the cursor is beyond this event. Each
 * write that removes events must call this function. If the newest event was removed, SQLite gives its `seq`
 * to the next new event. A webhook whose cursor has this `seq` would skip the new event. PostgreSQL reuses a
 * `seq` only after a failover, which sets the cursors back, too.
 */
export const holdCursors = async (tx: Transaction): Promise<void> => {
  if (tx.engine === 'postgres') return
  const { events, webhooks } = tx.tables
  const last = tx.select({ seq: sql`coalesce(max(${events.seq}), 0)` }).from(events)
  await tx
    .update(webhooks)
    .set({ cursor: sql`${last}` })
    .where(gt(webhooks.cursor, sql`${last}`))
}

/**
 * Empties the stored answers of webhook receivers to events that are removed. An answer can repeat its event,
 * and nothing finds it by the user once the event is gone. Each write that removes events must call this.
 */
export const forgetAnswers = async (tx: Transaction, removed: { id: EventId }[]): Promise<void> => {
  const { webhook_deliveries: t } = tx.tables
  const ids = removed.map(({ id }) => id)
  if (ids.length > 0) await tx.update(t).set({ answer: '' }).where(inArray(t.event_id, ids))
}

/** Deletes a batch of events as {@link deleteBatch} does, and the answers to these events. */
const deleteEvents = async (tx: Transaction, where: SQL | undefined, limit: number): Promise<number> => {
  const { events } = tx.tables
  const some = tx.select({ seq: events.seq }).from(events).where(where).limit(limit)
  const removed = await tx.delete(events).where(inArray(events.seq, some)).returning({ id: events.id })
  await forgetAnswers(tx, removed)
  return removed.length
}

/**
 * Removes rows that refer to deleted objects and returns the number of removed rows. If the number is less
 * than `limit`, no such rows remain. The number can exceed `limit`, because a batch consists of keys, such as
 * user ids, and one key can have rows for several deleted objects.
 */
export const removeRemains = async (
  tx: Transaction,
  kind: Deletion,
  ids: readonly string[],
  limit: number,
): Promise<number> => {
  if (kind === 'user' || kind === 'organization') tx.changed('events')
  let removed = 0
  for (const [table, key, where] of remainsOf(tx.tables, kind, ids)) {
    if (removed >= limit) break
    removed +=
      table === tx.tables.events
        ? await deleteEvents(tx, where, limit - removed)
        : await deleteBatch(tx, table, key, where, limit - removed)
  }
  if (kind === 'user' || kind === 'organization') await holdCursors(tx)
  return removed
}

/**
 * Removes the parts of a deleted organization that have few rows, such as roles, groups and clients. Parts
 * with many rows are hidden at once and removed later in batches: users, sessions, events, rows that depend
 * on the clients, and others.
 */
export const removeOrganizationParts = async (
  tx: Transaction,
  { id, slug }: { id: OrganizationId; slug: string },
  now: number,
): Promise<void> => {
  const {
    apis,
    clients,
    dynamic_clients,
    groups,
    identity_providers,
    initial_access_tokens,
    invitations,
    login_domains,
    organization_assets,
    roles,
    waiting_users,
    webhooks,
  } = tx.tables
  for (const table of [
    apis,
    organization_assets,
    login_domains,
    roles,
    groups,
    identity_providers,
    invitations,
    dynamic_clients,
    initial_access_tokens,
    waiting_users,
    webhooks,
  ])
    await tx.delete(table).where(eq(table.organization_id, id))
  const { client_id, created_at, organization_id } = clients
  const { backchannel_logout_uri, id_token_signed_response_alg } = clients
  // The other columns of a client can have hundreds of kilobytes.
  const gone = await tx.delete(clients).where(eq(organization_id, id)).returning({
    client_id,
    created_at,
    organization_id,
    backchannel_logout_uri,
    id_token_signed_response_alg,
  })
  await beginPurge(tx, 'organization', id, now)
  await beginClientPurges(tx, gone, slug, now)
  for (const topic of [
    'roles',
    'clients',
    'users',
    'events',
    'identity_providers',
    'apis',
    'webhooks',
  ] as const)
    tx.changed(topic)
}
