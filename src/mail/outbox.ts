import type { Context } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { MailKind } from '#src/storage/mail-kinds.ts'
import type { Transaction } from '#src/storage/store.ts'
import { claimMail, insertMail, listDueMails, type MailRow, removeMail } from './store.ts'

/** For how long a link lets its holder in. */
export const LINK_LIFETIME = 30 * MINUTE

/** What is late by so much is not sent any more. */
const KEPT: Partial<Record<MailKind, number>> = { reset_password: LINK_LIFETIME }
const KEPT_ELSE = 2 * DAY

/** Of one sender: when it is over, the mail is tried again by whoever comes first. */
const LEASE = 2 * MINUTE
const LONGEST_WAIT = 6 * 60 * MINUTE
const BATCH = 20

export interface NewMail {
  kind: MailKind
  organization_id: OrganizationId
  /** Null: whoever sends it looks for the user. */
  user_id: UserId | null
  data?: Record<string, string>
}

/** Puts a mail into the outbox, in the write of what it tells of. Where no mail server is configured there is nothing to tell. */
export const enqueueMail = async (
  context: Pick<Context, 'mail' | 'clock'>,
  tx: Transaction,
  { data = {}, ...mail }: NewMail,
  client_info: Pick<ClientInfo, 'locale'>,
): Promise<void> => {
  if (!context.mail) return
  const now = context.clock.now()
  await insertMail(tx, {
    ...mail,
    data,
    locale: client_info.locale ?? 'en',
    attempts: 0,
    created_at: now,
    next_attempt_at: now,
    expires_at: now + (KEPT[mail.kind] ?? KEPT_ELSE),
  })
}

/** Tells a user what has just happened to their account. */
export const enqueueNotice = (
  context: Pick<Context, 'mail' | 'clock'>,
  tx: Transaction,
  kind: MailKind,
  { id: user_id, organization_id }: { id: UserId; organization_id: OrganizationId },
  client_info: Pick<ClientInfo, 'locale'>,
  data: Record<string, string> = {},
): Promise<void> => enqueueMail(context, tx, { kind, organization_id, user_id, data }, client_info)

/** After the first failures within minutes, later ones within hours. */
const waitAfter = (attempts: number): number => Math.min(LONGEST_WAIT, 15 * SECOND * 4 ** attempts)

/**
 * Hands over what is due, one mail after the other: `deliver` makes and sends it. What fails is tried again later and
 * later, until the mail is of no use any more. Says how many were dealt with. A mail may go out twice when the process
 * dies right after it went out; it is never lost.
 */
export const emptyOutbox = async (
  context: Context,
  deliver: (mail: MailRow) => Promise<void>,
): Promise<number> => {
  const now = context.clock.now()
  const due = await context.store.read(q => listDueMails(q, now, BATCH))
  for (const mail of due) {
    const { number, kind, attempts } = mail
    if (!(await context.store.write(tx => claimMail(tx, mail, now + LEASE, attempts + 1)))) continue
    const done = () => context.store.write(tx => removeMail(tx, number))
    const claimed = { number, next_attempt_at: now + LEASE }
    if (mail.expires_at <= now) {
      context.log.error({ event: 'mail', mail: number, kind, attempts }, 'gave up sending a mail')
      await done()
      continue
    }
    try {
      await deliver(mail)
      await done()
    } catch (error) {
      const later = context.clock.now() + waitAfter(attempts)
      context.log.warn({ event: 'mail', mail: number, kind, attempts, err: error }, 'a mail did not go out')
      await context.store.write(tx => claimMail(tx, claimed, later, attempts + 1))
    }
  }
  return due.length
}
