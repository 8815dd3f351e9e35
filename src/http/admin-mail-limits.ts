import type { Core } from '#src/context.ts'
import { mailboxOf } from '#src/lib/email.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { Allowance } from '#src/lib/token-buckets.ts'
import type { Transaction } from '#src/storage/store.ts'
import { type Due, takeAll } from './rate-limits.ts'

/**
 * Limit on mail that administrators send to one mailbox. It is enough for an invitation, a reset and a
 * verification, each sent twice.
 */
const PER_MAILBOX: Allowance = { burst: 6, per_second: 6 / 3_600 }
/**
 * The mails that one organization may send to a mailbox before the shared budget of the mailbox is charged.
 * The reserve refills more slowly than `PER_MAILBOX`, so that a steady sender also pays from the shared
 * budget.
 */
const RESERVE: Allowance = { burst: 2, per_second: 2 / 3_600 }
/**
 * Limit on all mail that administrators of one organization send. It is enough to invite a department at
 * once.
 */
const PER_ORGANIZATION: Allowance = { burst: 500, per_second: 500 / 3_600 }

/** A mail that an administrator causes. */
interface AdminMail {
  email: string
  organization_id: OrganizationId
  /** Distinguishes the mail from other mails of the same write. */
  name: string
}

/**
 * Charges for a mail that an administrator sends. The organization pays from its budget for all mail and from
 * its budget for this mailbox. A mail is also charged to the organization's reserve for this mailbox. When
 * this reserve is empty, the mail is charged instead to the budget that all organizations share for the
 * mailbox. One organization thus cannot stop the mail of another organization to the same mailbox. Notices
 * about webhooks (`kind`) have separate budgets, because the receiver of a webhook causes them and must not
 * use up the budgets for resets and invitations. A write that runs again is charged once.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`; in this case nothing is charged
 */
export const chargeAdminMail = (
  { clock, charges }: Pick<Core, 'clock' | 'charges'>,
  tx: Pick<Transaction, 'once'>,
  { email, organization_id, name }: AdminMail,
  kind: 'admin-mail' | 'webhook-notice' = 'admin-mail',
): void =>
  tx.once(`${kind}:${name}`, () => {
    const { mailboxes, organizations } = charges
    const now = clock.now()
    const mailbox = `${kind}:${mailboxOf(email)}`
    const own = `${organization_id}:${mailbox}`
    const reserve: Due = [mailboxes, `${own}:reserve`, RESERVE]
    const isReserved = mailboxes.wait(reserve[1], RESERVE, now, 1) === 0
    takeAll(
      [
        [mailboxes, own, PER_MAILBOX],
        [organizations, `${kind}:${organization_id}`, PER_ORGANIZATION],
        isReserved ? reserve : [mailboxes, mailbox, PER_MAILBOX],
      ],
      1,
      now,
      'Too many mails were sent by administrators to this mailbox or in this organization.',
    )
  })
