import type { Context, Core } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { MailKind } from '#src/storage/mail-kinds.ts'
import type { Transaction } from '#src/storage/store.ts'
import { claimMail, insertMail, listDueMails, type MailRow, removeMail } from './store.ts'

/** Lifetime of sign-in and password reset links. */
export const LINK_LIFETIME = 30 * MINUTE

/** Time after which an unsent mail is dropped, by kind. */
const SEND_WITHIN: Partial<Record<MailKind, number>> = { reset_password: LINK_LIFETIME }
const SEND_WITHIN_DEFAULT = 2 * DAY

/** Time that a sender has for one mail; afterwards any sender may try again. */
const LEASE = 2 * MINUTE
const MAX_WAIT = 6 * 60 * MINUTE
const BATCH = 20

/** A mail to put into the outbox. Texts are rendered when it is sent. */
export interface NewMail {
  kind: MailKind
  organization_id: OrganizationId
  /** null: the user is looked up when the mail is sent. */
  user_id: UserId | null
  data?: Record<string, string>
}

type NoticeOrigin = { [Key in keyof ClientInfo]?: ClientInfo[Key] | undefined }

/**
 * Puts a mail into the outbox, in the write of the change that it reports. Does nothing without a mail
 * server.
 */
export const enqueueMail = async (
  context: Core,
  tx: Transaction,
  { data = {}, ...mail }: NewMail,
  client_info: Pick<NoticeOrigin, 'locale'>,
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
    expires_at: now + (SEND_WITHIN[mail.kind] ?? SEND_WITHIN_DEFAULT),
  })
}

const originOf = ({ user_agent, ip_address, application, time_zone }: NoticeOrigin) =>
  Object.fromEntries(
    Object.entries({ user_agent, ip_address, application, time_zone }).filter(([, value]) => value),
  ) as Record<string, string>

/**
 * Puts a notice about a change of the user's account into the outbox. It names the browser, address and application
 * of `client_info`; a change by an administrator passes the language alone.
 */
export const enqueueNotice = (
  context: Core,
  tx: Transaction,
  kind: MailKind,
  { id: user_id, organization_id }: { id: UserId; organization_id: OrganizationId },
  client_info: NoticeOrigin,
  data: Record<string, string> = {},
): Promise<void> =>
  enqueueMail(
    context,
    tx,
    { kind, organization_id, user_id, data: { ...originOf(client_info), ...data } },
    client_info,
  )

/** Milliseconds until the next attempt: minutes after the first failures, hours after later ones. */
const waitAfter = (attempts: number): number => Math.min(MAX_WAIT, 15 * SECOND * 4 ** attempts)

/**
 * Delivers the due mails one after the other; `deliver` renders and sends each. Failed mails are tried again
 * at growing intervals until they expire. Returns the number of mails handled. A mail is never lost, but it
 * is sent twice when the process dies right after sending it.
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
      context.log.error(
        { event: 'mail', mail: number, kind, attempts },
        'mail not sent before it expired: dropped',
      )
      await done()
      continue
    }
    try {
      await deliver(mail)
      await done()
    } catch (error) {
      const later = context.clock.now() + waitAfter(attempts)
      context.log.warn(
        { event: 'mail', mail: number, kind, attempts, err: error },
        'mail not sent: trying again later',
      )
      await context.store.write(tx => claimMail(tx, claimed, later, attempts + 1))
    }
  }
  return due.length
}
