import { anonymousActor, record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { deliverDue, type Stop, startDelivery } from '#src/delivery/queue.ts'
import { isInvitedTaken, judgeAcceptance } from '#src/directory/invitations/rules.ts'
import { invitationUrl } from '#src/directory/invitations/service.ts'
import { findInvitation, insertInvitation, replaceInvitationLink } from '#src/directory/invitations/store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { findOrganization, type Organization, readOrganization } from '#src/directory/organizations/store.ts'
import { mayRegister } from '#src/directory/registrations/service.ts'
import { findUser, findUserForLogin, takenName, type UserRow } from '#src/directory/users/store.ts'
import { DAY } from '#src/lib/duration.ts'
import { isSameEmail } from '#src/lib/email.ts'
import { newId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { mailQueue } from '#src/mail/outbox.ts'
import { isNotice, renderMail } from '#src/mail/render.ts'
import type { MailRow } from '#src/mail/store.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { translator } from '#src/pages/translate.ts'
import { viewTools } from '#src/pages/view.ts'
import { CODE_LIFETIME, createEmailCode } from '#src/sign-in/email-codes.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { createResetLink, createVerifyLink } from './links.ts'
import { factorIn, isBare, mailBrandOf, originDetails, timeOf } from './mail-texts.ts'

/**
 * True when the user may reset the password by mail. A user without a password needs a verified address,
 * because a provider may have reported the address of somebody else. That person must not gain access.
 */
export const mayReset = ({ enabled, password_hash, email_verified }: UserRow): boolean =>
  enabled && (password_hash !== null || email_verified)

/** Returns the current recipient of a mail. Returns undefined when the mail must no longer be sent. */
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

/**
 * True when the address is the user's current or pending address and still has to be verified. No mail goes
 * to a pending address that another user has. The user gets no message about this, because a message would
 * reveal that the address is taken.
 */
const isToVerify = async (q: Queries, user: UserRow, email?: string): Promise<boolean> => {
  if (!email) return false
  if (isSameEmail(user.email, email)) return !user.email_verified
  return isSameEmail(user.pending_email ?? '', email) && !(await takenName(q, { ...user, email }))
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
 * Notices without a link to the security page of an account. `email_changed` goes to a former address, which
 * might not belong to the user. `webhook_disabled` concerns a webhook, which is not part of the recipient's
 * account.
 */
const WITHOUT_BUTTON: ReadonlySet<MailRow['kind']> = new Set(['email_changed', 'webhook_disabled'])

/** Returns the address of the user's security page, for notices about the account. */
const securityUrl = ({ config }: Context, { slug }: { slug: string }): string =>
  `${config.url}/account/security?organization=${slug}`

const signInUrl = ({ config }: Context, { slug }: { slug: string }): string =>
  `${config.url}/account?organization=${slug}`

const buttonUrl = (context: Context, kind: MailRow['kind'], organization: Organization) => {
  if (WITHOUT_BUTTON.has(kind)) return undefined
  return kind === 'registration_approved'
    ? signInUrl(context, organization)
    : securityUrl(context, organization)
}

/**
 * Sends an invitation that may still be accepted. The mail has a new link, because only the hash of the
 * former link is stored. The former link stops working.
 */
const deliverInvitation = async (
  context: Context,
  { kind, locale, organization_id, data }: MailRow,
): Promise<void> => {
  const token = newSecret()
  const invitation = await context.store.write(async tx => {
    const found = await findInvitation(tx, data.invitation_id ?? '', organization_id)
    if (!found || found.expires_at <= context.clock.now()) return undefined
    if ((await judgeAcceptance(tx, found, context.clock.now())).obstacle) return undefined
    if (await isInvitedTaken(tx, found)) return undefined
    const link = { link_hash: hashSecret(token), expires_at: found.expires_at }
    return (await replaceInvitationLink(tx, found.id, link)) ? found : undefined
  })
  const organization = await findOrganization(context.store, organization_id)
  if (!invitation?.email || !organization || !context.mail) return
  const message = renderMail({
    kind,
    locale,
    brand: mailBrandOf(organization),
    accent: settingsOf(organization).accent_color,
    name: invitation.email,
    data: { time: timeOf(locale, invitation.expires_at, []) },
    url: invitationUrl(context, token),
  })
  await context.mail.send({ to: invitation.email, ...message })
}

/**
 * Lifetime of a registration link. It is longer than the lifetime of a reset link, because a registration
 * link gives access to no account and the person may read the mail a day later.
 */
const REGISTER_WITHIN = DAY

/**
 * Sends the link with which a person registers. If a user already has the address, the mail says that an
 * account exists.
 */
const deliverRegistration = async (context: Context, mail: MailRow): Promise<void> => {
  const { organization_id, locale, data } = mail
  const { email = '', request } = data
  const token = newSecret()
  const created_at = context.clock.now()
  const expires_at = created_at + REGISTER_WITHIN
  const sent = await context.store.write(async tx => {
    const organization = await readOrganization(tx, organization_id)
    if (!organization || !mayRegister(context, organization, email)) return undefined
    if (await takenName(tx, { id: 'usr_', organization_id, username: '', email }))
      return { organization, kind: 'registration_known', url: signInUrl(context, organization) } as const
    await insertInvitation(tx, {
      id: newId('inv', created_at),
      organization_id,
      delivery: 'mail',
      is_registration: true,
      user_id: null,
      email,
      link_hash: hashSecret(token),
      roles: ['user'],
      groups: [],
      max_uses: 1,
      uses: 0,
      locale,
      created_by: null,
      created_at,
      lifetime: REGISTER_WITHIN,
      expires_at,
      withdrawn_at: null,
    })
    const url = `${invitationUrl(context, token)}${request ? `&request=${request}` : ''}`
    return { organization, kind: 'registration', url } as const
  })
  if (!sent || !context.mail) return
  const message = renderMail({
    kind: sent.kind,
    locale,
    brand: mailBrandOf(sent.organization),
    accent: settingsOf(sent.organization).accent_color,
    name: email,
    data: { time: timeOf(locale, expires_at, [data.time_zone]) },
    url: sent.url,
  })
  await context.mail.send({ to: email, ...message })
}

/**
 * Sends a code to a user who may sign in with a code, and records an event when the mail server has accepted
 * the mail. The code works only in the authorization request of the browser that asked for it.
 */
const deliverCode = async (context: Context, mail: MailRow): Promise<void> => {
  const { kind, organization_id, locale, data, attempts, created_at: requested_at } = mail
  const { identifier = '', request = '', known_to, user_agent = '', ip_address = '' } = data
  const { user, code } = await context.store.write(async tx => {
    const user = await findUserForLogin(tx, organization_id, identifier)
    const is_known = known_to === user?.id
    const asked = { request_hash: hashSecret(request), is_known, requested_at, is_retry: attempts > 0 }
    return { user, code: user && (await createEmailCode(context, tx, user, asked)) }
  })
  const organization = await findOrganization(context.store, organization_id)
  if (!user || !code || !organization || !context.mail) return
  const name = viewTools(locale, translator(locale)).displayName(pageUserOf(user))
  const expires_at = context.clock.now() + CODE_LIFETIME
  const query = new URLSearchParams({ request, code })
  const message = renderMail({
    kind,
    locale,
    brand: mailBrandOf(organization),
    accent: settingsOf(organization).accent_color,
    name: isBare(name) ? name : user.email,
    code,
    data: {
      username: user.username,
      time: timeOf(locale, expires_at, [user.attributes.zoneinfo, data.time_zone]),
    },
    details: await originDetails(context, locale, data),
    url: `${context.config.url}/oauth/email-code?${query}`,
  })
  await context.mail.send({ to: user.email, ...message })
  await context.store.write(async tx => {
    // If the user was deleted in the meantime, the user's events are already removed, and no new event may
    // follow.
    if (!(await findUser(tx, organization_id, user.id))) return
    await record(context, tx, {
      type: 'user.code_sent',
      actor: anonymousActor,
      target_id: user.id,
      target_type: 'user',
      organization_id,
      client_info: { user_agent, ip_address },
      subject_id: user.id,
    })
  })
}

/**
 * Renders a queued mail and hands it to the mail server. The link of the mail is created at this time. The
 * lifetime of the link thus begins when the mail is sent, and only the mail contains the link.
 */
const deliver = async (context: Context, mail: MailRow): Promise<void> => {
  const { kind, locale, organization_id, data, created_at } = mail
  if (kind === 'invitation') return deliverInvitation(context, mail)
  if (kind === 'registration') return deliverRegistration(context, mail)
  if (kind === 'sign_in_code') return deliverCode(context, mail)
  // One write reads the user and creates the link. With two writes, a change of the user between them would
  // not revoke the link.
  const { user, url } = await context.store.write(async tx => {
    const user = context.mail && (await recipientOf(tx, mail))
    return { user, url: user && (await urlOf(context, tx, mail, user)) }
  })
  const organization = await findOrganization(context.store, organization_id)
  if (!user || !organization || !context.mail) return
  // A link that verifies an address goes to that address only. The user's address may have changed while the
  // mail waited.
  const to = (kind === 'verify_email' ? data.email : data.to) ?? user.email
  const t = translator(locale)
  const name = viewTools(locale, t).displayName(pageUserOf(user))
  const message = renderMail({
    kind,
    locale,
    brand: mailBrandOf(organization),
    accent: settingsOf(organization).accent_color,
    name: isBare(name) ? name : to,
    data: {
      username: user.username,
      email: user.email,
      time: timeOf(locale, created_at, [user.attributes.zoneinfo, data.time_zone]),
      ...data,
      ...factorIn(t, data),
    },
    is_change: kind === 'verify_email' && !isSameEmail(user.email, to),
    // Only the current address gets the details, because a former address may have been mistyped and may
    // belong to a stranger.
    ...(isNotice(kind) &&
      isSameEmail(to, user.email) && { details: await originDetails(context, locale, data) }),
    url: url ?? buttonUrl(context, kind, organization),
  })
  await context.mail.send({ to, ...message })
}

const queue = mailQueue(deliver)

/** Sends the mail that is due. Returns the number of attempts. */
export const deliverMails = (context: Context): Promise<number> => deliverDue(context, queue)

/**
 * Sends new mail at once and retries failed mail when it is due. Returns a function that stops the delivery.
 */
export const startMailDelivery = (context: Context): Stop =>
  context.mail ? startDelivery(context, queue) : async () => {}
