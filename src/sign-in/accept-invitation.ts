import { record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { mayActOn } from '#src/directory/access.ts'
import { joinGroup } from '#src/directory/groups/service.ts'
import { givenBy, groupsOf, inviterOf, judgeAcceptance } from '#src/directory/invitations/rules.ts'
import { findOpenInvitation, type Invitation, useInvitation } from '#src/directory/invitations/store.ts'
import { findOrganization, type Organization, readOrganization } from '#src/directory/organizations/store.ts'
import { mayRegister, needsApproval, recordRegistration } from '#src/directory/registrations/service.ts'
import { costOf, rememberCost } from '#src/directory/users/hash-costs.ts'
import { changedAt, hashPassword } from '#src/directory/users/password.ts'
import { recordUser } from '#src/directory/users/record.ts'
import { createUser } from '#src/directory/users/service.ts'
import { rolesNamed, saveUser, type UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { NewUserFields } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { chargeBrowser } from './known-browsers.ts'

const gone = (): PageError => new PageError('link', 410)

/** An open invitation, with its organization. */
export interface Found {
  invitation: Invitation
  organization: Organization
  /** The user who was created with the invitation. */
  user: UserRow | undefined
}

/**
 * Returns the open invitation with this `link_hash`. Refuses an invitation when `judgeAcceptance` finds an
 * obstacle. Also refuses a registration when the address is no longer allowed to register.
 *
 * @throws PageError 410
 */
export const findInvited = async (context: Context, q: Queries, link_hash: SecretHash): Promise<Found> => {
  const invitation = await findOpenInvitation(q, link_hash, context.clock.now())
  const organization = invitation && (await findOrganization(context.store, invitation.organization_id))
  if (!organization) throw gone()
  const { is_registration, email } = invitation
  if (is_registration && !mayRegister(context, organization, email ?? '')) throw gone()
  const { user, obstacle } = await judgeAcceptance(q, invitation, context.clock.now())
  if (obstacle) throw gone()
  return { invitation, organization, user }
}

/**
 * Throws a 410 in place of a 403, and any other error unchanged. A 403 means that the creator of the
 * invitation lacks permissions. The text of the 410 says that the link no longer works.
 */
export const refuse = (error: unknown): never => {
  throw error instanceof AppError && error.status === 403 ? gone() : error
}

/** Further changes that are made in the write that stores the user. */
type Also = (tx: Transaction, user: UserRow) => Promise<void>

/**
 * Charges the caller for the hash of a password. The link stays valid when the form is refused, so without
 * this charge the form could be submitted any number of times.
 */
const chargeHash = async (
  context: Context,
  call: Call,
  { id: organization_id }: Organization,
  password: string | undefined,
): Promise<void> => {
  if (password !== undefined) await chargeBrowser(context, call, { organization_id, kind: 'hash' })
}

/**
 * Creates the user of an invitation. The creator of the invitation must still have the permission to grant
 * its roles.
 */
export const createInvited = async (
  context: Context,
  call: Call,
  { invitation, organization, user_id }: Pick<Found, 'invitation' | 'organization'> & { user_id: UserId },
  values: NewUserFields,
  password: string | undefined,
  also: Also,
): Promise<void> => {
  await chargeHash(context, call, organization, password)
  const [caller, known] = await context.store.read(async q =>
    Promise.all([
      inviterOf(q, invitation, context.clock.now()),
      rolesNamed(q, organization.id, invitation.roles),
    ]),
  )
  const given = {
    ...values,
    id: user_id,
    organization_id: organization.id,
    // An administrator's invitation is already an approval. Only a registration needs an approval.
    enabled: !(invitation.is_registration && needsApproval(organization)),
    // A person who has the link from the mail can read the mail of this address. This verifies the address.
    email_verified: invitation.delivery === 'mail',
    roles: known.map(({ name }) => name),
    attributes: {},
    ...(password === undefined ? { password_hash: null } : { password }),
  }
  const actor = { id: user_id, email: values.email }
  await createUser(context, given, { actor, client_info: call, caller }, also)
}

/**
 * Sets the password of the user who was created with the invitation. Runs `also` in the same write. If there
 * is no password, `also` adds another credential.
 */
export const completeUser = async (
  context: Context,
  call: Call,
  { organization, link_hash }: Pick<Found, 'organization'> & { link_hash: SecretHash },
  password: string | undefined,
  also: Also,
): Promise<void> => {
  await chargeHash(context, call, organization, password)
  const lane = { work: 'change', organization: organization.id } as const
  const password_hash = password === undefined ? undefined : await hashPassword(context, password, lane)
  await context.store.write(async tx => {
    const { invitation, user } = await findInvited(context, tx, link_hash)
    if (!user) throw gone()
    const now = context.clock.now()
    const by = { actor: { id: user.id, email: user.email }, client_info: call }
    const isVerified = invitation.delivery === 'mail' && !user.email_verified
    await saveUser(tx, {
      ...user,
      ...(password_hash !== undefined && {
        password_hash,
        password_changed_at: changedAt(user, now),
      }),
      email_verified: user.email_verified || isVerified,
      updated_at: now,
    })
    if (password_hash !== undefined) {
      await rememberCost(context, tx, costOf(password_hash))
      await recordUser(context, tx, by, 'user.password_changed', user)
    }
    if (isVerified) await recordUser(context, tx, by, 'user.updated', user, { fields: ['email_verified'] })
    await also(tx, user)
  })
}

/**
 * Uses up the invitation and adds the user to the groups of the invitation. Runs in the write that stores the
 * user.
 */
export const useUp = async (
  context: Context,
  tx: Transaction,
  call: Call,
  { invitation }: Pick<Found, 'invitation'>,
  user: UserRow,
): Promise<void> => {
  if (!(await useInvitation(tx, invitation, user.id, context.clock.now()))) throw gone()
  if (invitation.is_registration) {
    const organization = await readOrganization(tx, invitation.organization_id)
    // The policy may have changed since the form was read. A user must not skip an approval that is now
    // required, and must not wait for an approval that is no longer required. The error rolls the write back,
    // so that the link then shows the new form.
    if (!organization || needsApproval(organization) === user.enabled) throw gone()
    if (!mayRegister(context, organization, user.email)) throw gone()
    return recordRegistration(context, tx, user, call)
  }
  const caller = await inviterOf(tx, invitation, context.clock.now())
  mayActOn(caller, await givenBy(tx, invitation))
  await record(context, tx, {
    type: 'invitation.accepted',
    actor: { id: user.id, email: user.email },
    target_id: invitation.id,
    target_type: 'invitation',
    organization_id: invitation.organization_id,
    client_info: call,
    subject_id: user.id,
  })
  for (const group of await groupsOf(tx, invitation))
    await joinGroup(context, tx, group, user, { caller, client_info: call })
}
