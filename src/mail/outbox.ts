import type { Context, Core } from '#src/context.ts'
import { longestPause, pauseAfter, type Queue } from '#src/delivery/queue.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { CLOCK_SKEW, DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { Allowance } from '#src/lib/token-buckets.ts'
import { AWAITED, type MailKind } from '#src/storage/mail-kinds.ts'
import type { Transaction } from '#src/storage/store.ts'
import { ANSWER_TIMEOUT } from './smtp.ts'
import { claimMail, insertMail, listDueMails, type MailRow, releaseMails, removeMail } from './store.ts'

/**
 * Lifetime in milliseconds of links that allow their holder to sign in (sign-in, set-up, password reset). The
 * lifetime is short, because the recipient uses such a link at once. Another person who reads the mailbox
 * later must not find a usable link.
 */
export const LINK_LIFETIME = 30 * MINUTE

/**
 * Milliseconds after which an unsent mail of a kind is dropped. After this time, the person who asked for the
 * mail no longer waits for it.
 */
const SEND_WITHIN: Partial<Record<MailKind, number>> = {
  reset_password: LINK_LIFETIME,
  sign_in_code: 10 * MINUTE,
}
/**
 * Milliseconds after which any other unsent mail is dropped. The time is long, because a mail server may be
 * down for a weekend.
 */
const SEND_WITHIN_DEFAULT = 2 * DAY

/**
 * Returns the limit on notices of one kind to one user, which is 20 an hour in each process. The limit
 * protects strangers, because a user can cause any number of notices and may have a stranger's address. The
 * limit is high, because a lost notice is worse than an unneeded one. Each kind has its own limit, so that a
 * thief of the account cannot hide a change behind notices of other kinds.
 */
const noticesOf = ({ workers }: Core['config']): Allowance => ({
  burst: 20 * workers,
  per_second: (20 * workers) / 3_600,
})

/**
 * Pauses between attempts in milliseconds. Most failures are over in seconds. The pauses grow while a mail
 * server stays down.
 */
const PAUSES = { first: 15 * SECOND, factor: 4, longest: 6 * HOUR }

/**
 * End of the text of a refusal when no mail server is set. The text names the commands too, because a command
 * such as `apply` reads settings of its own.
 */
export const SET_MAIL = 'set smtp_url and mail_from for the server, and for commands such as apply.'

/** A mail to put into the outbox. The texts are rendered when the mail is sent. */
export interface NewMail {
  kind: MailKind
  organization_id: OrganizationId
  /** When null, the recipient is looked up by `data` at the time of sending. */
  user_id: UserId | null
  data?: Record<string, string>
}

type NoticeOrigin = { [Key in keyof ClientInfo]?: ClientInfo[Key] | undefined }

/** Puts a mail into the outbox, in the write that causes it. Does nothing when the server sends no mail. */
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

/**
 * Returns the facts about the request that caused a mail, for the data of the mail. Unknown facts are left
 * out.
 */
export const mailOrigin = ({ user_agent, ip_address, application, time_zone }: NoticeOrigin) =>
  Object.fromEntries(
    Object.entries({ user_agent, ip_address, application, time_zone }).filter(([, value]) => value),
  ) as Record<string, string>

/**
 * Returns the facts about factors for the data of a mail. If the name of a factor could be read as a message
 * to the recipient, the mail shows the factor's kind instead.
 */
export const factorFacts = (factors: readonly { name: string; type: 'passkey' | 'totp' }[]) => ({
  factor: factors.map(({ name }) => name).join(', '),
  factor_types: [...new Set(factors.map(({ type }) => type))].join(),
})

/**
 * Puts a notice about a change of the user's account into the outbox. The notice names the browser, IP
 * address and application of `client_info`. For a change by an administrator, `client_info` has only the
 * language, because the browser is not the user's. Beyond the limit of `noticesOf`, no notice is sent, but
 * the audit log still contains the change. The limit does not apply to mails that the user waits for
 * (`AWAITED`).
 */
export const enqueueNotice = async (
  context: Core,
  tx: Transaction,
  kind: MailKind,
  { id: user_id, organization_id }: { id: UserId; organization_id: OrganizationId },
  client_info: NoticeOrigin,
  data: Record<string, string> = {},
): Promise<void> => {
  if (!AWAITED.includes(kind)) {
    const { clock, charges, config } = context
    const key = `notice:${kind}:${user_id}`
    if (charges.mailboxes.wait(key, noticesOf(config), clock.now(), 1) > 0) return
    tx.after(() => charges.mailboxes.take(key, noticesOf(config), clock.now(), 1))
  }
  const facts = { ...mailOrigin(client_info), ...data }
  await enqueueMail(context, tx, { kind, organization_id, user_id, data: facts }, client_info)
}

/**
 * Returns the cause of a failed attempt for the log. Mail servers repeat the address of the recipient in
 * their answers. Only the codes of an answer are logged, because only the audit log may have personal data.
 */
const causeOf = (error: unknown): Record<string, unknown> => {
  const { response, code, command } = error as { response?: unknown; code?: unknown; command?: unknown }
  if (typeof response !== 'string') return { err: error }
  return { code, command, answer: /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?/.exec(response)?.[0] }
}

/**
 * Returns the queue of mails, in which each organization sends one mail at a time. `deliver` renders and
 * sends a mail. A failed mail is tried again at growing intervals until it expires.
 */
export const mailQueue = (deliver: (context: Context, mail: MailRow) => Promise<void>): Queue<MailRow> => ({
  topic: 'mails',
  // All mails go to one mail server, and many servers limit the connections of a client. An organization that
  // sends many mails at once uses one connection and leaves the other connections to other organizations.
  at_once: 4,
  at_once_each: 1,
  // Longer than `SEND_TIMEOUT` plus `CLOCK_SKEW`, because an attempt also reads and writes rows.
  lease: 2 * ANSWER_TIMEOUT + CLOCK_SKEW,
  longest: longestPause(PAUSES),
  due: listDueMails,
  claim: (tx, mail, until) => claimMail(tx, mail, until, mail.attempts + 1),
  release: releaseMails,
  attempt: async (context, mail, until) => {
    const { number, kind, attempts } = mail
    const done = () => context.store.write(tx => removeMail(tx, { ...mail, attempts: attempts + 1 }))
    if (mail.expires_at <= context.clock.now()) {
      context.log.error(
        { event: 'mail', mail: number, kind, attempts },
        'mail not sent before it expired: dropped',
      )
      await done()
      return
    }
    try {
      await deliver(context, mail)
    } catch (error) {
      context.log.warn(
        { event: 'mail', mail: number, kind, attempts, ...causeOf(error) },
        'mail not sent: trying again later',
      )
      const later = context.clock.now() + pauseAfter(attempts, PAUSES)
      await context.store.write(tx => claimMail(tx, { number, next_attempt_at: until }, later, attempts + 1))
      return
    }
    await done()
  },
})
