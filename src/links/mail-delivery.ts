import type { Context } from '#src/context.ts'
import { findOrganization, settingsOf } from '#src/directory/organizations/store.ts'
import { findUser, findUserForLogin, takenName, type UserRow } from '#src/directory/users/store.ts'
import { SECOND } from '#src/lib/duration.ts'
import { emptyOutbox } from '#src/mail/outbox.ts'
import { renderMail } from '#src/mail/render.ts'
import type { MailRow } from '#src/mail/store.ts'
import { personOf } from '#src/pages/data.ts'
import { translator } from '#src/pages/translate.ts'
import { viewTools } from '#src/pages/view.ts'
import { openLocator } from '#src/sessions/location.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { createResetLink, createVerifyLink } from './links.ts'

/** Whoever never had a password here may get one by mail once the address is known to be theirs. */
export const mayReset = ({ enabled, password_hash, email_verified }: UserRow): boolean =>
  enabled && (password_hash !== null || email_verified)

/** Whom a mail is for, as things are now; undefined: nobody (any more), and nothing goes out. */
const recipientOf = async (q: Queries, mail: MailRow): Promise<UserRow | undefined> => {
  const { kind, organization_id, user_id, data } = mail
  const user = await (user_id
    ? findUser(q, organization_id, user_id)
    : findUserForLogin(q, organization_id, data.identifier ?? ''))
  if (kind === 'verify_email')
    return user?.enabled && (await isToVerify(q, user, data.email)) ? user : undefined
  if (kind !== 'reset_password') return user
  return user && mayReset(user) ? user : undefined
}

/** Nobody learns from the page who has an address: where another user has it, nothing comes. */
const isToVerify = async (q: Queries, user: UserRow, email?: string): Promise<boolean> => {
  if (!email) return false
  if (user.email === email) return !user.email_verified
  return user.pending_email === email && !(await takenName(q, { ...user, email }))
}

const urlOf = async (
  context: Context,
  tx: Transaction,
  { kind, data }: MailRow,
  user: UserRow,
): Promise<string | undefined> => {
  if (kind === 'reset_password') return createResetLink(context, tx, user)
  return kind === 'verify_email' ? createVerifyLink(context, tx, user, data.email ?? '') : undefined
}

/**
 * A name that programs would show as a link, or that carries a message, greets nobody: people choose theirs, and whom mail
 * goes to.
 */
const isBare = (name: string): boolean =>
  name.length <= 64 && !/[\p{L}\p{N}][.:][\p{L}\p{N}]|[/@]|\p{N}{4}/u.test(name)

/** The same for the name of an organization, which its administrators choose: no address, no line of its own. */
const isBareBrand = (name: string): boolean =>
  !/[\p{L}\p{N}][.:。．｡](?:\p{L}{2}|\p{N})|[/\\@\p{Cc}\u2028\u2029]/u.test(name)

const NEUTRAL_BRAND = 'Gatehouse'

const timeOf = (locale: string, ms: number): string =>
  new Intl.DateTimeFormat(locale, {
    year: 'numeric',
    month: 'long',
    day: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    timeZone: 'UTC',
    timeZoneName: 'short',
    numberingSystem: 'latn',
  }).format(ms)

/**
 * Makes the mail of a row and hands it over. Links are made here, so that their time runs from now and nobody but the mail
 * has them.
 */
const deliver = async (context: Context, mail: MailRow): Promise<void> => {
  const { kind, locale, organization_id, data, created_at } = mail
  // In one write: a change of the user in between would leave a link to whom it was ended for.
  const { user, url } = await context.store.write(async tx => {
    const user = context.mail && (await recipientOf(tx, mail))
    return { user, url: user && (await urlOf(context, tx, mail, user)) }
  })
  const organization = await findOrganization(context.store, organization_id)
  if (!user || !organization || !context.mail) return
  const { user_agent = '', ip_address = '' } = data
  const tools = viewTools(locale, translator(locale))
  const locate = await openLocator(context)
  const to = data.to ?? user.email
  const name = tools.displayName(personOf(user))
  const letter = renderMail({
    kind,
    locale,
    brand: isBareBrand(organization.display_name) ? organization.display_name : NEUTRAL_BRAND,
    accent: settingsOf(organization).accent_color,
    name: isBare(name) ? name : to,
    data: {
      username: user.username,
      email: user.email,
      time: timeOf(locale, created_at),
      device: tools.device(user_agent),
      place: locate(ip_address, locale) || ip_address,
      ...data,
    },
    is_change: kind === 'verify_email' && user.email !== data.email,
    ...(url && { url }),
  })
  await context.mail.send({ to, ...letter })
}

/** Sends what is due in the outbox; how many rows that were. */
export const deliverMails = (context: Context): Promise<number> =>
  emptyOutbox(context, mail => deliver(context, mail))

/** Sends mail as soon as it is in the outbox, and what failed when its time has come. Never two rounds at once. */
export const startMailDelivery = (context: Context): (() => void) => {
  if (!context.mail) return () => {}
  let isDue = false
  let isRunning = false
  let isStopped = false
  const round = async (): Promise<void> => {
    isDue = true
    if (isRunning) return
    isRunning = true
    while (isDue && !isStopped) {
      isDue = false
      try {
        while ((await deliverMails(context)) > 0);
      } catch (error) {
        context.log.error({ event: 'mail', err: error }, 'the outbox cannot be read and will be tried again')
      }
    }
    isRunning = false
  }
  // Not within the commit that names it: its writer is waiting.
  context.store.onChange(topics => {
    if (!topics || topics.has('mails')) setTimeout(round)
  })
  const timer = setInterval(round, 30 * SECOND)
  timer.unref()
  void round()
  return () => {
    isStopped = true
    clearInterval(timer)
  }
}
