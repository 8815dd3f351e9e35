import { and, asc, desc, eq, inArray, isNotNull, lte, notInArray, or, sql } from 'drizzle-orm'
import { isInRanges, type Ranges } from '#src/delivery/store.ts'
import { beyond, byCreation, type Range } from '#src/directory/store.ts'
import type { Keyset } from '#src/lib/cursor.ts'
import { DEFAULT_ORGANIZATION, type OrganizationId, type WebhookId } from '#src/lib/ids.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Webhook = Tables['webhooks']['$inferSelect']
export type DeliveryRow = Tables['webhook_deliveries']['$inferSelect']

/**
 * Maximum number of attempts that the log of a webhook keeps. An attempt has up to 2,048 characters of the
 * answer, so 500 attempts need about 1 MiB of ASCII text. A failing webhook makes about ten attempts before
 * it is switched off, so its log shows the whole outage.
 */
const KEPT = 500

/** Returns a webhook by id. If `within` is given, the webhook must belong to that organization. */
export const findWebhook = async (
  q: Queries,
  id: string,
  within?: OrganizationId,
): Promise<Webhook | undefined> => {
  const { webhooks } = q.tables
  const [row] = await q
    .select()
    .from(webhooks)
    .where(and(eq(webhooks.id, id as WebhookId), within && eq(webhooks.organization_id, within)))
  return row
}

/** Returns the webhook of this name in the organization. */
export const findWebhookNamed = async (
  q: Queries,
  organization_id: OrganizationId,
  name: string,
): Promise<Webhook | undefined> => {
  const { webhooks } = q.tables
  const [row] = await q
    .select()
    .from(webhooks)
    .where(and(eq(webhooks.organization_id, organization_id), eq(webhooks.name, name)))
  return row
}

const ofOrganization = ({ tables: { webhooks } }: Queries, id: OrganizationId | undefined) =>
  id && eq(webhooks.organization_id, id)

/** Returns a page of webhooks, in the order of creation. */
export const listWebhooks = (
  q: Queries,
  organization_id: OrganizationId | undefined,
  range: Range,
): Promise<Webhook[]> => {
  const { webhooks } = q.tables
  return q
    .select()
    .from(webhooks)
    .where(and(ofOrganization(q, organization_id), beyond(range, webhooks.created_at, webhooks.id)))
    .orderBy(...byCreation(range.order, webhooks.created_at, webhooks.id))
    .limit(range.limit)
}

/** Counts the webhooks of the list. The count stops at 10,001, which means more than 10,000. */
export const countWebhooks = (q: Queries, organization_id: OrganizationId | undefined): Promise<number> => {
  const { webhooks } = q.tables
  const found = q.select({ id: webhooks.id }).from(webhooks).where(ofOrganization(q, organization_id))
  return countUpTo(q, found, COUNT_LIMIT + 1)
}

const changed = (tx: Transaction): void => {
  tx.changed('webhooks')
  tx.changed('webhook_turns')
}

/** Stores a new webhook. Rejects with a unique violation when the organization has a webhook of this name. */
export const insertWebhook = async (tx: Transaction, webhook: Webhook): Promise<void> => {
  await tx.insert(tx.tables.webhooks).values(webhook)
  changed(tx)
}

/** Stores the given columns of a webhook. */
export const saveWebhook = async (
  tx: Transaction,
  { id, ...columns }: Partial<Webhook> & Pick<Webhook, 'id'>,
): Promise<void> => {
  await tx.update(tx.tables.webhooks).set(columns).where(eq(tx.tables.webhooks.id, id))
  changed(tx)
}

/** Removes a webhook with its log. */
export const removeWebhook = async (tx: Transaction, { id }: Pick<Webhook, 'id'>): Promise<void> => {
  const { webhook_deliveries, webhooks } = tx.tables
  await tx.delete(webhook_deliveries).where(eq(webhook_deliveries.webhook_id, id))
  await tx.delete(webhooks).where(eq(webhooks.id, id))
  changed(tx)
}

/** True when a webhook of any organization is enabled. */
export const hasEnabled = async (q: Queries): Promise<boolean> => {
  const { enabled, id } = q.tables.webhooks
  return (await q.select({ id }).from(q.tables.webhooks).where(eq(enabled, true)).limit(1)).length > 0
}

/** Returns the enabled webhooks that get events of the organization. */
export const listEnabled = (q: Queries, organization: OrganizationId) => {
  const { webhooks: t } = q.tables
  const { id, organization_id, events, all_organizations, enabled } = t
  const isForAll = and(eq(organization_id, DEFAULT_ORGANIZATION), eq(all_organizations, true))
  return q
    .select({ id, events })
    .from(t)
    .where(and(or(eq(organization_id, organization), isForAll), eq(enabled, true)))
}

/** Returns names of webhooks that fail or that the server has switched off. */
export const troubledWebhooks = async (q: Queries, limit: number): Promise<string[]> => {
  const { webhooks } = q.tables
  const { disabled_reason, failing_since, name } = webhooks
  const rows = await q
    .select({ name })
    .from(webhooks)
    .where(or(isNotNull(disabled_reason), isNotNull(failing_since)))
    .orderBy(name)
    .limit(limit)
  return rows.map(row => row.name)
}

/** Maximum ids in one statement: PostgreSQL and SQLite limit the number of parameters. */
const IDS = 500

/** Makes those webhooks of `ids` due that are enabled and idle. */
export const wakeWebhooks = async (tx: Transaction, now: number, ids: WebhookId[]): Promise<void> => {
  for (let start = 0; start < ids.length; start += IDS) await wakeAll(tx, now, ids.slice(start, start + IDS))
}

/** Makes those webhooks of `ids` due that are enabled and idle. Undefined `ids` stand for all webhooks. */
export const wakeAll = async (tx: Transaction, now: number, ids?: WebhookId[]): Promise<void> => {
  const { webhooks } = tx.tables
  const { enabled, id, idle } = webhooks
  const woken = await tx
    .update(webhooks)
    .set({ next_attempt_at: now, idle: false })
    .where(and(eq(enabled, true), eq(idle, true), ids && inArray(id, ids)))
    .returning({ id })
  if (woken.length > 0) tx.changed('webhook_turns')
}

/** Makes all enabled webhooks due. Their running turns end without storing their state. */
export const restartTurns = async (tx: Transaction, now: number): Promise<void> => {
  const { webhooks } = tx.tables
  await tx.update(webhooks).set({ next_attempt_at: now, idle: false }).where(eq(webhooks.enabled, true))
  tx.changed('webhook_turns')
}

/**
 * Returns the due webhooks, the longest waiting first. Leaves out the webhooks of the organizations in
 * `busy`.
 */
export const listDueWebhooks = (
  q: Queries,
  now: number,
  busy: OrganizationId[],
  limit: number,
): Promise<Webhook[]> => {
  const { webhooks } = q.tables
  return q
    .select()
    .from(webhooks)
    .where(and(lte(webhooks.next_attempt_at, now), notInArray(webhooks.organization_id, busy)))
    .orderBy(asc(webhooks.next_attempt_at), asc(webhooks.id))
    .limit(limit)
}

/**
 * Stores the state of a webhook during its turn. Returns false when the turn has ended: the webhook was
 * deleted, its `next_attempt_at` has changed, or its cursor is not `cursor`.
 */
export const saveTurn = async (
  tx: Transaction,
  { id, next_attempt_at }: Pick<Webhook, 'id' | 'next_attempt_at'>,
  state: Partial<Webhook>,
  cursor?: number,
): Promise<boolean> => {
  const { webhooks } = tx.tables
  const isTurn = and(
    eq(webhooks.id, id),
    eq(webhooks.next_attempt_at, next_attempt_at),
    cursor === undefined ? undefined : eq(webhooks.cursor, cursor),
  )
  return (await tx.update(webhooks).set(state).where(isTurn).returning({ id: webhooks.id })).length > 0
}

/** Sets `next_attempt_at` to `now` for webhooks whose `next_attempt_at` is in one of the ranges. */
export const releaseWebhooks = async (tx: Transaction, now: number, ranges: Ranges): Promise<void> => {
  const { webhooks } = tx.tables
  await tx.update(webhooks).set({ next_attempt_at: now }).where(isInRanges(webhooks.next_attempt_at, ranges))
}

/**
 * Adds an attempt to the log. `seq` is that of the event. If the event was removed meanwhile, the answer is
 * left out, because it can repeat the event of a deleted user.
 */
export const insertDelivery = async (
  tx: Transaction,
  log: Omit<DeliveryRow, 'number'>,
  seq: number,
): Promise<DeliveryRow> => {
  const { events, webhook_deliveries } = tx.tables
  const isEvent = and(eq(events.seq, seq), eq(events.id, log.event_id))
  const [event] = await tx.select({ seq: events.seq }).from(events).where(isEvent)
  const answer = event ? log.answer : ''
  const [row] = await tx
    .insert(webhook_deliveries)
    .values({ ...log, answer })
    .returning()
  return row as DeliveryRow
}

/** Removes all attempts of a webhook except the latest KEPT. */
export const trimDeliveries = async (tx: Transaction, id: WebhookId): Promise<void> => {
  const { webhook_deliveries } = tx.tables
  const { number, webhook_id } = webhook_deliveries
  const own = eq(webhook_id, id)
  const oldest = tx
    .select({ number })
    .from(webhook_deliveries)
    .where(own)
    .orderBy(desc(number))
    .limit(1)
    .offset(KEPT)
  await tx.delete(webhook_deliveries).where(and(own, lte(number, sql`${oldest}`)))
}

/** Lists the attempts of a webhook in the order of their numbers. */
export const listDeliveries = (
  q: Queries,
  id: string,
  { order, after, limit }: { order: 'asc' | 'desc'; after: Keyset | undefined; limit: number },
): Promise<DeliveryRow[]> => {
  const { webhook_deliveries: t } = q.tables
  const next = after && (order === 'asc' ? sql`${t.number} > ${after[0]}` : sql`${t.number} < ${after[0]}`)
  return q
    .select()
    .from(t)
    .where(and(eq(t.webhook_id, id as WebhookId), next))
    .orderBy(order === 'asc' ? asc(t.number) : desc(t.number))
    .limit(limit)
}

/** Lists the latest attempts of all webhooks, newest first, with names and URLs of the webhooks. */
export const latestDeliveries = (q: Queries, limit: number) => {
  const { webhook_deliveries, webhooks } = q.tables
  return q
    .select({ delivery: webhook_deliveries, name: webhooks.name, url: webhooks.url })
    .from(webhook_deliveries)
    .innerJoin(webhooks, eq(webhooks.id, webhook_deliveries.webhook_id))
    .orderBy(desc(webhook_deliveries.number))
    .limit(limit)
}

/** Counts the stored attempts of a webhook. */
export const countDeliveries = (q: Queries, id: string): Promise<number> =>
  q.$count(q.tables.webhook_deliveries, eq(q.tables.webhook_deliveries.webhook_id, id as WebhookId))
