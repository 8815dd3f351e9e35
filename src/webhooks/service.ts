import { findEvent } from '#src/audit/list-store.ts'
import { lastSeq, settledSeq } from '#src/audit/stream-store.ts'
import type { EventType } from '#src/audit/types.ts'
import type { Caller, Context, Core } from '#src/context.ts'
import { NEVER } from '#src/delivery/queue.ts'
import {
  type ChangedBy,
  changedFields,
  readOnlyProblems,
  recordChange,
  requireOrganization,
  writableFields,
} from '#src/directory/access.ts'
import { whenTaken } from '#src/directory/store.ts'
import { writeAs } from '#src/http/guard.ts'
import { chargeAdminCall } from '#src/http/rate-limits.ts'
import { within } from '#src/http/tenant.ts'
import { conflict, type Detail, notFound, throwProblems } from '#src/lib/app-error.ts'
import { SECOND } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION, newId, type OrganizationId, type WebhookId } from '#src/lib/ids.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { seqBefore, settledCursor } from './cursor-store.ts'
import { type CreateWebhook, deliveryAnswer, type UpdateWebhook, webhookAnswer, writable } from './schema.ts'
import { sendEvent } from './send.ts'
import { newWebhookSecret, sealWebhookSecret, secretText } from './signature.ts'
import {
  countWebhooks,
  findWebhook,
  insertDelivery,
  insertWebhook,
  removeWebhook,
  saveWebhook,
  trimDeliveries,
  type Webhook,
} from './store.ts'

/**
 * Maximum number of webhooks of an organization. The number is limited, because each webhook reads the audit
 * log separately.
 */
const MAX = 100

/**
 * Returns a webhook of an organization in which the caller may act.
 *
 * @throws AppError 404 for a webhook that is unknown or of another organization
 */
export const getWebhook = async (q: Queries, caller: Caller, id: string): Promise<Webhook> => {
  const hook = await findWebhook(q, id, within(caller))
  if (!hook) throw notFound('The webhook')
  return hook
}

const ownerProblems = (organization_id: OrganizationId, all_organizations: boolean | undefined): Detail[] =>
  all_organizations && organization_id !== DEFAULT_ORGANIZATION
    ? [
        {
          field: 'all_organizations',
          code: 'not_allowed',
          message: 'Only a webhook of the default organization can get the events of all organizations.',
        },
      ]
    : []

/**
 * Returns the organization and the problems of a new webhook.
 *
 * @throws AppError 422 for an organization that is unknown or in which the caller may not act
 */
export const judgeNewWebhook = async (q: Queries, input: Partial<CreateWebhook>, by: ChangedBy) => {
  const { id } = await requireOrganization(q, by.caller, input.organization_id)
  return { organization_id: id, problems: ownerProblems(id, input.all_organizations) }
}

const shown = (hook: Webhook, secret: Buffer): string | null =>
  hook.signature === 'v1' ? secretText('v1', secret) : null

const recordHook = (
  context: Core,
  tx: Transaction,
  by: ChangedBy,
  type: EventType,
  { id, organization_id, name }: Webhook,
  metadata: Record<string, unknown> = {},
): Promise<void> =>
  recordChange(context, tx, by, { type, target_id: id, organization_id, metadata: { name, ...metadata } })

/**
 * Creates a webhook that gets all events from now on. It also gets the events of open transactions, although
 * their `seq` can be lower than that of stored events (`settledCursor`). Returns the secret as text. The
 * secret is null for Ed25519, because receivers then need only the public key.
 *
 * @throws AppError 409 for a taken name and beyond `MAX` webhooks, 422 for an organization in which the
 * caller may not act, or which cannot get the events of all organizations
 */
export const createWebhook = async (
  context: Core,
  input: CreateWebhook & { id?: WebhookId; secret?: Buffer },
  by: ChangedBy,
): Promise<{ hook: Webhook; secret: string | null }> => {
  const settled = await settledSeq(context.store)
  return writeAs(context, by.caller, async tx => {
    const { organization_id, problems } = await judgeNewWebhook(tx, input, by)
    throwProblems(problems)
    if ((await countWebhooks(tx, organization_id)) >= MAX)
      throw conflict(`The organization already has ${MAX} webhooks, which is the maximum.`)
    const now = context.clock.now()
    const id = input.id ?? newId('hook', now)
    const secret = input.secret ?? newWebhookSecret()
    const { name, url, events, all_organizations, enabled, signature } = input
    const hook: Webhook = {
      id,
      organization_id,
      name,
      url,
      events,
      all_organizations,
      enabled,
      signature,
      secret: sealWebhookSecret(context, { id }, secret),
      previous_secret: null,
      previous_until: null,
      cursor: await settledCursor(tx, { cursor: await lastSeq(tx), settled, from: now }),
      attempts: 0,
      failing_since: null,
      failure: null,
      disabled_reason: null,
      idle: true,
      next_attempt_at: enabled ? now : NEVER,
      created_at: now,
      updated_at: now,
    }
    await insertWebhook(tx, hook).catch(whenTaken('name', 'The organization has a webhook of this name.'))
    await recordHook(context, tx, by, 'webhook.created', hook)
    return { hook, secret: shown(hook, secret) }
  })
}

/**
 * Returns the webhook with the changed values, the names of the changed fields, and the problems of the
 * change.
 *
 * @throws AppError 404 for a webhook that is unknown or of another organization
 */
export const judgeWebhookChange = async (
  context: Core,
  q: Queries,
  id: string,
  change: Partial<UpdateWebhook>,
  by: ChangedBy,
) => {
  const hook = await getWebhook(q, by.caller, id)
  const fields = changedFields(webhookAnswer(context, hook), change)
  const changed: Webhook = { ...hook, ...writableFields(change, writable) }
  const problems = [
    ...readOnlyProblems(fields, writable),
    ...ownerProblems(hook.organization_id, changed.all_organizations),
  ]
  return { hook: changed, fields, problems }
}

/**
 * Changes the given fields. An event whose delivery failed is tried again at once, because the change may
 * have fixed the cause.
 *
 * @throws AppError 404 for a webhook that is unknown or of another organization, 409 for a taken name, 422
 * for a field that cannot be changed
 */
export const updateWebhook = (
  context: Core,
  id: string,
  change: UpdateWebhook,
  by: ChangedBy,
): Promise<Webhook> =>
  writeAs(context, by.caller, async tx => {
    const { hook, fields, problems } = await judgeWebhookChange(context, tx, id, change, by)
    throwProblems(problems)
    if (fields.length === 0) return hook
    const now = context.clock.now()
    const changed = { ...hook, ...startedAt(now, hook.enabled), updated_at: now }
    await saveWebhook(tx, changed).catch(whenTaken('name', 'The organization has a webhook of this name.'))
    await recordHook(context, tx, by, 'webhook.updated', changed, { fields })
    return changed
  })

/**
 * Returns the columns that clear the failures of a webhook. If `enabled` is true, they also make the webhook
 * due now.
 */
const startedAt = (now: number, enabled: boolean) => ({
  attempts: 0,
  failing_since: null,
  failure: null,
  idle: false,
  next_attempt_at: enabled ? now : NEVER,
  ...(enabled && { disabled_reason: null }),
})

/** Deletes a webhook and its log. */
export const deleteWebhook = (context: Core, id: string, by: ChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const hook = await getWebhook(tx, by.caller, id)
    await removeWebhook(tx, hook)
    await recordHook(context, tx, by, 'webhook.deleted', hook)
  })

/**
 * Replaces the secret. For `overlap` seconds the old secret also signs, so that a receiver that still has the
 * old secret refuses no event. A running turn goes on with the new secret, so that no event is sent twice or
 * late. Returns the new secret as text. The secret is null for Ed25519.
 */
export const rotateWebhookSecret = (
  context: Core,
  id: string,
  { overlap, secret = newWebhookSecret() }: { overlap: number; secret?: Buffer },
  by: ChangedBy,
): Promise<{ hook: Webhook; secret: string | null }> =>
  writeAs(context, by.caller, async tx => {
    const hook = await getWebhook(tx, by.caller, id)
    const now = context.clock.now()
    const changed = {
      ...hook,
      secret: sealWebhookSecret(context, hook, secret),
      previous_secret: hook.secret,
      previous_until: now + overlap * SECOND,
      updated_at: now,
    }
    await saveWebhook(tx, changed)
    await recordHook(context, tx, by, 'webhook.secret_rotated', changed, { overlap })
    return { hook: changed, secret: shown(changed, secret) }
  })

/**
 * Enables the webhook and delivers all events since `from` (ms) in order, even if they were delivered before.
 * A receiver can thus restore what it has lost.
 */
export const replayWebhook = async (
  context: Core,
  id: string,
  from: number,
  by: ChangedBy,
): Promise<Webhook> => {
  const settled = await settledSeq(context.store)
  return writeAs(context, by.caller, async tx => {
    const hook = await getWebhook(tx, by.caller, id)
    const now = context.clock.now()
    const first = await seqBefore(tx, from, await lastSeq(tx))
    const cursor = await settledCursor(tx, { cursor: first, settled, from })
    const changed = { ...hook, ...startedAt(now, true), enabled: true, cursor, updated_at: now }
    await saveWebhook(tx, changed)
    await recordHook(context, tx, by, 'webhook.updated', changed, { fields: ['replay'], from })
    return changed
  })
}

/**
 * Sends one event now, even if the webhook is disabled or already got the event. The result is stored only in
 * the log, so that a test call cannot disable the webhook or skip an event.
 *
 * @throws AppError 404 for an unknown webhook, and for an event that is unknown or of an organization whose
 * events the webhook does not get; 429 for too many calls
 */
export const sendWebhookEvent = async (context: Context, id: string, event_id: string, by: ChangedBy) => {
  const { hook, event } = await context.store.read(async q => {
    const hook = await getWebhook(q, by.caller, id)
    const scope = hook.all_organizations ? undefined : hook.organization_id
    const event = await findEvent(q, scope, event_id)
    if (!event) throw notFound('The event')
    return { hook, event }
  })
  chargeAdminCall(context, hook.organization_id)
  const { log } = await sendEvent(context, hook, event)
  await writeAs(context, by.caller, async tx => {
    await getWebhook(tx, by.caller, id)
    await insertDelivery(tx, log, event.seq)
    await trimDeliveries(tx, hook.id)
  })
  return deliveryAnswer(log)
}
