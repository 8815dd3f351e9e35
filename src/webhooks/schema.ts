import { z } from 'zod'
import { eventTypes } from '#src/audit/types.ts'
import type { Core } from '#src/context.ts'
import {
  flag,
  integer,
  isWebUrl,
  line,
  maintained,
  oneOf,
  owner,
  readOnly,
  readOnlyStored,
  sameTime,
  set,
  stored,
  time,
} from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { iso, isoOrNull } from '#src/lib/text.ts'
import { publicKeyOf } from './signature.ts'
import type { DeliveryRow, Webhook } from './store.ts'

// An event contains personal data, so `http/outbound.ts` sends it over plain http only where the operator
// allows that.
const URI =
  'An absolute https URL of at most 2048 characters, without fragment or credentials. An http URL is allowed only when outbound_allow has its host and port.'

/**
 * True when the event type matches a pattern, in which `*` stands for any text. Patterns are not compiled to
 * regular expressions, because an organization can have thousands of patterns.
 */
export const fitsPattern = (pattern: string, type: string): boolean => {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return type === first
  return (
    type.length >= first.length + last.length &&
    type.startsWith(first) &&
    type.endsWith(last) &&
    rest.every(middle => type.slice(first.length, type.length - last.length).includes(middle))
  )
}

/**
 * A pattern has at most two `*`, so that matching stays fast. A pattern that matches no type is refused as a
 * typing mistake.
 */
export const pattern = z
  .string()
  .max(64, 'At most 64 characters.')
  .regex(/^[a-z_.]*(?:\*[a-z_.]*){0,2}$/, 'An event type such as user.created; `*` stands for any text.')
  .refine(text => eventTypes.some(type => fitsPattern(text, type)), 'No event type matches this pattern.')

export const writable = {
  name: line(128, 1).describe('Shown to administrators, unique in the organization.'),
  url: z.string(URI).max(2048, URI).refine(isWebUrl, URI).describe('Receiver of the events.'),
  events: set(pattern, 50)
    .min(1, 'At least one event type.')
    .describe('Event types that the webhook gets; `*` stands for any text: `user.*`.'),
  all_organizations: flag.describe(
    'Whether the webhook gets the events of all organizations; allowed only in the default organization.',
  ),
  enabled: flag.describe(
    'Whether events are delivered. A webhook that is enabled again gets the events that it missed, if the audit log still has them.',
  ),
}

// The kind of signature cannot be changed, because the receiver verifies with a key of this kind.
const signature = oneOf(['v1', 'v1a']).describe('`v1`: HMAC-SHA-256; `v1a`: Ed25519. A change is refused.')

const shop = { name: 'Shop', url: 'https://shop.example.com/events', events: ['user.*', 'session.revoked'] }

export const CreateWebhook = z
  .strictObject({
    organization_id: owner,
    ...writable,
    all_organizations: writable.all_organizations.default(false),
    enabled: writable.enabled.default(true),
    signature: signature.default('v1'),
  })
  .meta({ id: 'CreateWebhook', description: 'A new webhook.', example: shop })
export type CreateWebhook = z.output<typeof CreateWebhook>

const state = {
  public_key: z
    .string()
    .nullable()
    .describe('Public key that verifies `v1a` signatures, beginning with `whpk_`; null for `v1`.'),
  disabled_reason: z
    .enum(['gone', 'failing'])
    .nullable()
    .describe(
      'Why the server switched the webhook off: the receiver answered 410, or failed for 24 hours; null otherwise.',
    ),
  failing_since: time
    .nullable()
    .describe(
      'Time of the first failure since the last success or change, moved later by the time in which no server tried to deliver; null without a failure.',
    ),
  failure: z
    .string()
    .nullable()
    .describe('Reason of the last failed attempt; null when `failing_since` is null.'),
  next_attempt_at: time
    .nullable()
    .describe('When the failed event is tried again; null without a failure, or while disabled.'),
}
export const UpdateWebhook = z
  .strictObject({
    ...z.object(writable).partial().shape,
    ...readOnlyStored,
    signature: readOnly(z.string()),
    public_key: maintained(state.public_key),
    disabled_reason: maintained(state.disabled_reason),
    failing_since: maintained(sameTime.nullable()),
    failure: maintained(state.failure),
    next_attempt_at: maintained(sameTime.nullable()),
  })
  .meta({
    id: 'UpdateWebhook',
    description: 'The fields of a webhook to change.',
    example: { enabled: false },
  })
export type UpdateWebhook = z.output<typeof UpdateWebhook>

const answerExample = {
  id: example.webhook_id,
  organization_id: example.organization_id,
  ...shop,
  all_organizations: false,
  enabled: true,
  signature: 'v1',
  public_key: null,
  disabled_reason: null,
  failing_since: null,
  failure: null,
  next_attempt_at: null,
  created_at: example.time,
  updated_at: example.time,
}

export const WebhookAnswer = z.object({ ...stored, ...writable, signature, ...state }).meta({
  id: 'Webhook',
  description: 'An address that gets audit events (Standard Webhooks 1.0).',
  example: answerExample,
})

export const WebhookWithSecret = WebhookAnswer.extend({
  secret: z
    .string()
    .nullable()
    .describe(
      'Key that verifies `v1` signatures, beginning with `whsec_`; only this answer shows it. Null for `v1a`.',
    ),
}).meta({
  id: 'WebhookWithSecret',
  description: 'A webhook with its new secret.',
  example: { ...answerExample, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=' },
})

/** Returns a webhook in the form of the admin API's answer; the secret is left out. */
export const webhookAnswer = (core: Core, hook: Webhook): z.output<typeof WebhookAnswer> => ({
  id: hook.id,
  organization_id: hook.organization_id,
  name: hook.name,
  url: hook.url,
  events: hook.events,
  all_organizations: hook.all_organizations,
  enabled: hook.enabled,
  signature: hook.signature,
  public_key: publicKeyOf(core, hook),
  disabled_reason: hook.disabled_reason,
  failing_since: isoOrNull(hook.failing_since),
  failure: hook.failure,
  next_attempt_at: hook.enabled && hook.failing_since !== null ? iso(hook.next_attempt_at) : null,
  created_at: iso(hook.created_at),
  updated_at: iso(hook.updated_at),
})

export const ListWebhooks = listQuery({ organization_id: ofOrganization })
export type ListWebhooks = z.output<typeof ListWebhooks>
export const WebhookList = listOf('WebhookList', WebhookAnswer)

export const RotateWebhookSecret = z
  .strictObject({
    overlap: integer(0, (7 * DAY) / SECOND)
      .default(DAY / SECOND)
      .describe(
        'Seconds for which the replaced secret also signs. A secret that was replaced earlier stops at once.',
      ),
  })
  .meta({ id: 'RotateWebhookSecret', description: 'The rotation of a secret.', example: { overlap: 3600 } })

export const ReplayWebhook = z
  .strictObject({
    from: z.iso
      .datetime({ offset: true, error: 'A time such as 2026-01-31T08:00:00Z.' })
      .describe('Events from this time on are delivered, even if they were delivered before.'),
  })
  .meta({
    id: 'ReplayWebhook',
    description: 'The repeated delivery of events.',
    example: { from: example.time },
  })

export const SendWebhookEvent = z
  .strictObject({ event_id: line(64, 1).describe('Event to send now, even if it was sent before.') })
  .meta({
    id: 'SendWebhookEvent',
    description: 'An event to send.',
    example: { event_id: 'evt_019c1310-e406-7a10-8c3d-2b9f5e7a4410' },
  })

export const WebhookDelivery = z
  .object({
    event_id: z.string().describe('Id of the event and of the message (`webhook-id`).'),
    event_type: z.string().describe('Type of the event.'),
    attempted_at: time.describe('Time of the attempt (ISO 8601, UTC).'),
    duration: z.int().describe('Milliseconds until the answer or the failure.'),
    status: z.int().nullable().describe('HTTP status of the answer; null when no complete answer came.'),
    failure: z.string().nullable().describe('Why the attempt failed; null when the event was delivered.'),
    answer: z
      .string()
      .describe(
        'The first 2,048 characters of the body of the answer; empty when the event was deleted with its user.',
      ),
  })
  .meta({
    id: 'WebhookDelivery',
    description: 'An attempt to deliver an event.',
    example: {
      event_id: 'evt_019c1310-e406-7a10-8c3d-2b9f5e7a4410',
      event_type: 'user.created',
      attempted_at: example.time,
      duration: 42,
      status: 204,
      failure: null,
      answer: '',
    },
  })

/** Returns an attempt in the form of the admin API's answer. */
export const deliveryAnswer = (row: Omit<DeliveryRow, 'number'>): z.output<typeof WebhookDelivery> => ({
  event_id: row.event_id,
  event_type: row.event_type,
  attempted_at: iso(row.created_at),
  duration: row.duration,
  status: row.status,
  failure: row.failure,
  answer: row.answer,
})

export const ListDeliveries = listQuery({})
export const WebhookDeliveryList = listOf('WebhookDeliveryList', WebhookDelivery)
