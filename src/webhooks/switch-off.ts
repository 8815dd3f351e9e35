import { hostActor, record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { chargeAdminMail } from '#src/http/admin-mail-limits.ts'
import { enqueueMail } from '#src/mail/outbox.ts'
import type { Transaction } from '#src/storage/store.ts'
import { usersWith } from './holders-store.ts'
import type { Webhook } from './store.ts'

/**
 * Maximum number of administrators who get the mail about a disabled webhook. It is low, because the write
 * that disables the webhook also stores these mails.
 */
const TOLD = 20

/**
 * Charges a mail to the rate limits. Returns false when the limits allow no further mail. Without these
 * limits an administrator could fill any mailbox with mails about a webhook that is switched off again and
 * again. The audit event is recorded even when no mail is sent.
 */
const mayMail = (context: Context, tx: Transaction, to: Parameters<typeof chargeAdminMail>[2]): boolean => {
  try {
    chargeAdminMail(context, tx, to, 'webhook-notice')
    return true
  } catch {
    return false
  }
}

/**
 * Records that a webhook was switched off, and queues a mail to users who may change webhooks. `delivery.ts`
 * decides when a webhook is switched off.
 */
export const switchOff = async (
  context: Context,
  tx: Transaction,
  { id, organization_id, name }: Webhook,
  reason: 'gone' | 'failing',
  failure: string,
): Promise<void> => {
  await record(context, tx, {
    type: 'webhook.disabled',
    target_id: id,
    target_type: 'webhook',
    organization_id,
    ...hostActor,
    metadata: { name, reason, failure },
  })
  tx.changed('webhooks')
  if (!context.mail) return
  // A name is shown only if it consists of at most 64 letters, digits, spaces, `_` and `-`; otherwise the id
  // is shown. Mail programs would turn an address in a name into a link.
  const data = { webhook: /^[\p{L}\p{N} _-]{1,64}$/u.test(name) ? name : id }
  for (const { id: user_id, email } of await usersWith(tx, organization_id, ['webhooks:update', '*'], TOLD))
    if (mayMail(context, tx, { organization_id, email, name: user_id }))
      await enqueueMail(context, tx, { kind: 'webhook_disabled', organization_id, user_id, data }, {})
}
