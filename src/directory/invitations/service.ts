import type { Caller, Core } from '#src/context.ts'
import {
  type ChangedBy,
  mayActOn,
  mayGrant,
  permissionsOf,
  recordChange,
  requireOrganization,
} from '#src/directory/access.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { domainProblems, organizationById, rolesToGive } from '#src/directory/users/rules.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { chargeAdminMail } from '#src/http/admin-mail-limits.ts'
import { writeAs } from '#src/http/guard.ts'
import { within } from '#src/http/tenant.ts'
import { conflict, type Detail, forbidden, notFound, throwProblems, valueTaken } from '#src/lib/app-error.ts'
import { SECOND } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { enqueueMail, SET_MAIL } from '#src/mail/outbox.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { givenBy, groupsOf, isInvitedTaken, judgeAcceptance, mayInviteInto } from './rules.ts'
import { type CreateInvitation, INVITATION_TTL } from './schema.ts'
import {
  endInvitation,
  findInvitation,
  type Invitation,
  insertInvitation,
  replaceInvitationLink,
} from './store.ts'

/** Path of the page on which a person accepts an invitation. */
export const INVITATION_PATH = '/account/invitation'

/** An invitation. `url` is its link if `delivery` is `link`. */
export interface Sent {
  invitation: Invitation
  url?: string
}

/**
 * Returns an invitation of an organization that the caller may act on.
 *
 * @throws AppError 404 when the invitation is unknown or of another organization
 */
export const getInvitation = async (q: Queries, caller: Caller, id: string): Promise<Invitation> => {
  const invitation = await findInvitation(q, id, within(caller))
  if (!invitation) throw notFound('The invitation')
  return invitation
}

/**
 * Returns the organization and the problems of a new invitation.
 *
 * @throws AppError 403 for permissions that the caller lacks, 422 for an unknown organization
 */
export const judgeNew = async (
  q: Queries,
  input: Partial<CreateInvitation>,
  by: Pick<ChangedBy, 'caller'>,
) => {
  const { id } = await requireOrganization(q, by.caller, input.organization_id)
  const { problems } = await rolesToGive(q, by, id, input.roles ?? [])
  const { allowed_domains } = settingsOf(await organizationById(q, id))
  const wanted = input.groups ?? []
  mayInviteInto(by.caller, wanted)
  const groups = await groupsOf(q, { organization_id: id, groups: wanted })
  mayGrant(by.caller, permissionsOf(groups.flatMap(group => group.roles)))
  const unknown = wanted.flatMap((group, i): Detail[] =>
    groups.some(known => known.id === group)
      ? []
      : [{ field: `groups.${i}`, code: 'unknown_group', message: 'The organization has no such group.' }],
  )
  return {
    organization_id: id,
    problems: [
      ...problems,
      ...unknown,
      ...(input.email === undefined ? [] : domainProblems(allowed_domains, input.email)),
    ],
  }
}

/**
 * Invites a person. If the link is mailed, it is made when the mail is sent. The link is never stored, so
 * nobody can accept the invitation with a copy of the database.
 *
 * @throws AppError 409 when a user has the address, or when the server cannot mail the link; 422 with the
 * problems; 429 for too many mails; the errors of `judgeNew`
 */
export const createInvitation = (context: Core, input: CreateInvitation, by: ChangedBy): Promise<Sent> =>
  writeAs(context, by.caller, async tx => {
    const { organization_id, problems } = await judgeNew(tx, input, by)
    throwProblems(problems)
    const { delivery, email = null, roles, groups, max_uses, expires_in, locale } = input
    if (await isInvitedTaken(tx, { organization_id, user_id: null, email }))
      throw valueTaken('email', 'A user of the organization already has this e-mail address.')
    const invited = { organization_id, delivery, email, roles, groups, max_uses }
    const expires_in_ms = expires_in * SECOND
    return add(context, tx, { ...invited, user_id: null, locale }, expires_in_ms, by)
  })

/** Invites a new user who has no password. Returns the link if `delivery` is `link`. */
export const inviteUser = async (
  context: Core,
  tx: Transaction,
  { id: user_id, organization_id, email }: UserRow,
  delivery: Invitation['delivery'],
  by: ChangedBy,
): Promise<string | undefined> => {
  const invited = { organization_id, user_id, delivery, email, roles: [], groups: [], max_uses: 1 }
  const { url } = await add(context, tx, { ...invited, locale: undefined }, INVITATION_TTL, by)
  return url
}

type Invited = Pick<
  Invitation,
  'organization_id' | 'user_id' | 'delivery' | 'email' | 'roles' | 'groups' | 'max_uses'
> & { locale: string | undefined }

const add = async (
  context: Core,
  tx: Transaction,
  { locale, ...invited }: Invited,
  lifetime: number,
  by: ChangedBy,
): Promise<Sent> => {
  const now = context.clock.now()
  const token = newSecret()
  const { kind, id } = by.caller
  const invitation: Invitation = {
    ...invited,
    id: newId('inv', now),
    link_hash: invited.delivery === 'link' ? hashSecret(token) : null,
    uses: 0,
    is_registration: false,
    locale: locale ?? by.client_info.locale ?? 'en',
    created_by: id ? { kind, id } : null,
    created_at: now,
    lifetime,
    expires_at: now + lifetime,
    withdrawn_at: null,
  }
  await insertInvitation(tx, invitation)
  await recordInvitation(context, tx, by, 'invitation.created', invitation)
  return send(context, tx, by, invitation, token)
}

const send = async (
  context: Core,
  tx: Transaction,
  { caller }: ChangedBy,
  invitation: Invitation,
  token: string,
): Promise<Sent> => {
  const { id, delivery, email, organization_id, locale } = invitation
  if (delivery === 'link') return { invitation, url: invitationUrl(context, token) }
  if (!context.mail) throw conflict(`No mail can be sent: ${SET_MAIL}`)
  // Only callers of the API are limited. A seed file (`serverActor`) may invite a whole organization.
  if (caller.id) chargeAdminMail(context, tx, { organization_id, email: email ?? '', name: 'invitation' })
  const mail = { kind: 'invitation', organization_id, user_id: null, data: { invitation_id: id } } as const
  await enqueueMail(context, tx, mail, { locale })
  return { invitation }
}

/** Returns the address of an invitation's page. */
export const invitationUrl = ({ config }: Core, token: string): string =>
  `${config.url}${INVITATION_PATH}?token=${token}`

/**
 * Makes a new link for an invitation, mails or returns the link, and restarts the lifetime. The old link
 * stops working, because it may have reached the wrong person.
 *
 * @throws AppError 403 when the caller lacks permissions that the invitation gives, `groups:update` for an
 * invitation into groups, or `users:update` for a new link for a user; 404 for an unknown invitation; 409
 * when the invitation was accepted or withdrawn, when nobody could accept it, or when the server sends no
 * mail; 429 for too many mails
 */
export const resendInvitation = (context: Core, id: string, by: ChangedBy): Promise<Sent> =>
  writeAs(context, by.caller, async tx => {
    const before = await getInvitation(tx, by.caller, id)
    // The answer may contain the link. With this link, the caller could join the groups or sign in as the
    // user.
    mayInviteInto(by.caller, before.groups)
    if (before.delivery === 'link' && before.user_id && !by.caller.permissions.has('users:update'))
      throw forbidden('A new link for a user needs the permission users:update.')
    mayActOn(by.caller, await givenBy(tx, before))
    const token = newSecret()
    const link = {
      link_hash: before.delivery === 'link' ? hashSecret(token) : null,
      expires_at: context.clock.now() + before.lifetime,
    }
    if (!(await replaceInvitationLink(tx, before.id, link)))
      throw conflict('The invitation was accepted or withdrawn. Create another one.')
    const { obstacle } = await judgeAcceptance(tx, before, context.clock.now())
    const reason = obstacle ?? ((await isInvitedTaken(tx, before)) && 'a user has its e-mail address by now')
    if (reason) throw conflict(`The invitation cannot be accepted: ${reason}.`)
    const invitation = { ...before, ...link }
    await recordInvitation(context, tx, by, 'invitation.sent', invitation)
    return send(context, tx, by, invitation, token)
  })

/**
 * Withdraws an invitation. Users who were created with it are kept.
 *
 * @throws AppError 403 when the invitation gives permissions that the caller lacks; 404 for an unknown
 * invitation; 409 when the invitation was already accepted or withdrawn
 */
export const withdrawInvitation = (context: Core, id: string, by: ChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const invitation = await getInvitation(tx, by.caller, id)
    mayActOn(by.caller, await givenBy(tx, invitation))
    if (!(await endInvitation(tx, invitation.id, context.clock.now())))
      throw conflict('The invitation was already accepted or withdrawn.')
    await recordInvitation(context, tx, by, 'invitation.withdrawn', invitation)
  })

const recordInvitation = (
  context: Core,
  tx: Transaction,
  by: ChangedBy,
  type: 'invitation.created' | 'invitation.sent' | 'invitation.withdrawn',
  { id, organization_id, user_id, delivery, roles, groups, max_uses }: Invitation,
): Promise<void> =>
  recordChange(context, tx, by, {
    type,
    target_id: id,
    organization_id,
    metadata: user_id ? { delivery, user_id } : { delivery, roles, groups, max_uses },
    ...(user_id && { subject_id: user_id }),
  })
