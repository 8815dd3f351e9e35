import { eventAnswer } from '#src/audit/schema.ts'
import type { EventRow } from '#src/audit/store.ts'
import type { Context } from '#src/context.ts'
import { WEBHOOKS } from '#src/delivery/families.ts'
import { findIdentity } from '#src/directory/store.ts'
import { SECOND } from '#src/lib/duration.ts'
import { signaturesOf } from './signature.ts'
import { type DeliveryRow, findWebhook, type Webhook } from './store.ts'

/** Milliseconds within which an answer must be complete. Standard Webhooks advises 15 to 30 seconds. */
const TIMEOUT = 15 * SECOND
/** Maximum bytes of an answer. Receivers answer with a few words, or with an error page. */
const ANSWER = 64 * 1024
/** Maximum characters of an answer in the log. The beginning of an error page usually names the error. */
const SHOWN = 2048

/**
 * The result of an attempt: the row for the webhook's log, the `Retry-After` of the answer, and an error that
 * only the server's log shows.
 */
export interface Attempt {
  log: Omit<DeliveryRow, 'number'>
  retry_after: string | null
  err?: unknown
}

/**
 * Returns body and headers of the message of an event; `now` is in ms. The signature covers the id and the
 * time, so that a receiver can refuse a replay:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export const messageOf = (
  { type, timestamp, ...data }: ReturnType<typeof eventAnswer>,
  now: number,
  sign: (content: string) => string,
) => {
  const body = JSON.stringify({ type, timestamp, data })
  const seconds = Math.floor(now / SECOND)
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Gatehouse-Webhooks',
    'webhook-id': data.id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': sign(`${data.id}.${seconds}.${body}`),
  }
  return { body, headers }
}

/**
 * Posts an event to its webhook. The signature is made with the secrets that the webhook has now: `hook` may
 * have been read before a rotation.
 */
export const sendEvent = async (context: Context, hook: Webhook, event: EventRow): Promise<Attempt> => {
  const [organization, current = hook] = await context.store.read(q =>
    Promise.all([findIdentity(q, hook.organization_id), findWebhook(q, hook.id)]),
  )
  const now = context.clock.now()
  const { body, headers } = messageOf(eventAnswer(event), now, content =>
    signaturesOf(context, current, content),
  )
  const log = {
    webhook_id: hook.id,
    organization_id: hook.organization_id,
    event_id: event.id,
    event_type: event.type,
    created_at: now,
  }
  const begun = performance.now()
  const ended = (status: number | null, failure: string | null, answer = '') => {
    context.store.metrics.count(WEBHOOKS, failure === null ? 'delivered' : 'failed')
    const duration = Math.round(performance.now() - begun)
    return { ...log, duration, status, failure, answer: answer.replaceAll('\0', '').slice(0, SHOWN) }
  }
  try {
    const answer = await context.fetch(hook.url, {
      organization: organization ?? { id: hook.organization_id, slug: '' },
      method: 'POST',
      body,
      headers,
      bytes: ANSWER,
      timeout: TIMEOUT,
    })
    const failure = answer.ok ? null : `The receiver answered ${answer.status}.`
    return {
      log: ended(answer.status, failure, await answer.text()),
      retry_after: answer.headers.get('retry-after'),
    }
  } catch (error) {
    return { log: ended(null, (error as Error).message), retry_after: null, err: error }
  }
}
