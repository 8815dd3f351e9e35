import type { Caller, Context } from '#src/context.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import {
  CreateWebhook,
  deliveryAnswer,
  ListDeliveries,
  ListWebhooks,
  ReplayWebhook,
  RotateWebhookSecret,
  SendWebhookEvent,
  UpdateWebhook,
  WebhookAnswer,
  WebhookDelivery,
  WebhookDeliveryList,
  WebhookList,
  WebhookWithSecret,
  webhookAnswer,
} from './schema.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  judgeNewWebhook,
  judgeWebhookChange,
  replayWebhook,
  rotateWebhookSecret,
  sendWebhookEvent,
  updateWebhook,
} from './service.ts'
import { countDeliveries, countWebhooks, listDeliveries, listWebhooks } from './store.ts'

const list = (context: Context, caller: Caller, query: ListWebhooks) => {
  const organization_id = scopeOf(caller, query.organization_id)
  return answerPage(context, {
    name: 'webhooks',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) =>
      context.store.read(q => listWebhooks(q, organization_id, { order: query.order, after, limit })),
    total: () => context.store.read(q => countWebhooks(q, organization_id)),
    keyset: hook => [hook.created_at, hook.id],
    item: hook => webhookAnswer(context, hook),
  })
}

const listAttempts = async (context: Context, caller: Caller, id: string, query: ListWebhooks) => {
  await context.store.read(q => getWebhook(q, caller, id))
  const { order } = query
  return answerPage(context, {
    name: 'webhook-deliveries',
    query: { ...query, webhook_id: id },
    scope: within(caller) ?? '',
    fetch: (after, limit) => context.store.read(q => listDeliveries(q, id, { order, after, limit })),
    total: () => context.store.read(q => countDeliveries(q, id)),
    keyset: row => [row.number, row.event_id],
    item: row => deliveryAnswer(row),
  })
}

/**
 * A webhook sends the events of the organization to another server, so the caller must be allowed to read
 * them.
 */
const changes = { permission: 'webhooks:update', also: 'events:read' } as const

/** Returns the admin routes of webhooks. */
export const webhookRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'createWebhook',
    method: 'POST',
    path: '/webhooks',
    permission: 'webhooks:create',
    also: 'events:read',
    fresh: true,
    summary: 'Create a webhook; only this answer shows its secret',
    body: CreateWebhook,
    status: 201,
    answer: WebhookWithSecret,
    errors: [409],
    review: (q, input, good) => judgeNewWebhook(q, good, input),
    handle: async input => {
      const { hook, secret } = await createWebhook(context, input.body, input)
      return { ...webhookAnswer(context, hook), secret }
    },
  }),
  route({
    id: 'listWebhooks',
    method: 'GET',
    path: '/webhooks',
    permission: 'webhooks:read',
    summary: 'List webhooks',
    query: ListWebhooks,
    status: 200,
    answer: WebhookList,
    handle: ({ caller, query }) => list(context, caller, query),
  }),
  route({
    id: 'getWebhook',
    method: 'GET',
    path: '/webhooks/:webhook_id',
    permission: 'webhooks:read',
    summary: 'Get a webhook',
    status: 200,
    answer: WebhookAnswer,
    errors: [404],
    read: async (q, { caller, params }) =>
      webhookAnswer(context, await getWebhook(q, caller, params.webhook_id)),
  }),
  route({
    ...changes,
    id: 'updateWebhook',
    method: 'PUT',
    path: '/webhooks/:webhook_id',
    // This route is `fresh` like `createWebhook`, because a new URL sends the events to another receiver.
    fresh: true,
    summary: 'Change the given fields of a webhook',
    body: UpdateWebhook,
    status: 200,
    answer: WebhookAnswer,
    errors: [404, 409],
    review: (q, input, good) => judgeWebhookChange(context, q, input.params.webhook_id, good, input),
    handle: async input =>
      webhookAnswer(context, await updateWebhook(context, input.params.webhook_id, input.body, input)),
  }),
  route({
    id: 'deleteWebhook',
    method: 'DELETE',
    path: '/webhooks/:webhook_id',
    permission: 'webhooks:delete',
    fresh: true,
    summary: 'Delete a webhook and its log',
    status: 204,
    errors: [404],
    handle: input => deleteWebhook(context, input.params.webhook_id, input),
  }),
  route({
    ...changes,
    errors: [404],
    id: 'rotateWebhookSecret',
    method: 'POST',
    path: '/webhooks/:webhook_id/rotate-secret',
    fresh: true,
    summary: 'Replace the secret of a webhook; only this answer shows the new one',
    body: RotateWebhookSecret,
    status: 200,
    answer: WebhookWithSecret,
    handle: async input => {
      const { hook, secret } = await rotateWebhookSecret(context, input.params.webhook_id, input.body, input)
      return { ...webhookAnswer(context, hook), secret }
    },
  }),
  route({
    ...changes,
    errors: [404],
    id: 'replayWebhook',
    method: 'POST',
    path: '/webhooks/:webhook_id/replay',
    // This route is `fresh` like `updateWebhook`, because both can enable the webhook.
    fresh: true,
    summary: 'Repeat the delivery of all events since a given time, in order',
    body: ReplayWebhook,
    status: 200,
    answer: WebhookAnswer,
    handle: async input => {
      const from = Date.parse(input.body.from)
      return webhookAnswer(context, await replayWebhook(context, input.params.webhook_id, from, input))
    },
  }),
  route({
    id: 'listWebhookDeliveries',
    method: 'GET',
    path: '/webhooks/:webhook_id/deliveries',
    permission: 'webhooks:read',
    summary: 'List the latest attempts of a webhook',
    query: ListDeliveries,
    status: 200,
    answer: WebhookDeliveryList,
    errors: [404],
    handle: ({ caller, params, query }) => listAttempts(context, caller, params.webhook_id, query),
  }),
  route({
    ...changes,
    errors: [404, 429],
    id: 'sendWebhookEvent',
    method: 'POST',
    path: '/webhooks/:webhook_id/deliveries',
    summary: 'Send one event now, even if it was sent before',
    body: SendWebhookEvent,
    status: 201,
    answer: WebhookDelivery,
    handle: input => sendWebhookEvent(context, input.params.webhook_id, input.body.event_id, input),
  }),
]
