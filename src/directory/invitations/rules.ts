import type { Caller } from '#src/context.ts'
import { mayActOn, permissionsOf, serverActor } from '#src/directory/access.ts'
import { readClient } from '#src/directory/clients/store.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { findGroup, type GroupWithRoles } from '#src/directory/groups/store.ts'
import { listFactors } from '#src/directory/users/factors/store.ts'
import { findUser, rolesNamed, takenName, type UserRow } from '#src/directory/users/store.ts'
import { AppError, forbidden } from '#src/lib/app-error.ts'
import { CLOCK_SKEW } from '#src/lib/duration.ts'
import { isSameEmail } from '#src/lib/email.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { expand, type Permission } from '#src/lib/permission.ts'
import type { Queries } from '#src/storage/store.ts'
import type { Invitation } from './store.ts'

/** Returns the groups of an invitation that still exist. */
export const groupsOf = async (
  q: Queries,
  { organization_id, groups }: Pick<Invitation, 'organization_id' | 'groups'>,
): Promise<GroupWithRoles[]> =>
  (await Promise.all(groups.map(id => findGroup(q, id, organization_id)))).filter(
    group => group !== undefined,
  )

/**
 * Returns the permissions that an invitation grants now. If the invitation has a user, these are the user's
 * permissions. Otherwise they are the permissions of its roles and groups.
 */
export const givenBy = async (q: Queries, invitation: Invitation): Promise<Set<Permission>> => {
  if (invitation.user_id) return permissionsOf(await effectiveRoles(q, invitation.user_id))
  const roles = await rolesNamed(q, invitation.organization_id, invitation.roles)
  const groups = await groupsOf(q, invitation)
  return permissionsOf([...roles, ...groups.flatMap(group => group.roles)])
}

/**
 * Accepting an invitation into a group adds a member, so the caller must be allowed to add members to groups.
 *
 * @throws AppError 403
 */
export const mayInviteInto = (
  { permissions }: Pick<Caller, 'permissions'>,
  groups: readonly string[],
): void => {
  if (groups.length > 0 && !permissions.has('groups:update'))
    throw forbidden('An invitation into a group needs the permission groups:update.')
}

/**
 * Returns the user, client or server that made an invitation. The acceptance runs with the current
 * permissions of the maker, so the invitation of a dismissed administrator grants nothing.
 *
 * @throws AppError 403 when the maker was deleted or disabled, when the maker may no longer create users in
 * the organization, or when the maker may no longer add members to the groups
 */
export const inviterOf = async (q: Queries, invitation: Invitation, now: number): Promise<Caller> => {
  const { created_by, organization_id } = invitation
  if (!created_by) return serverActor.caller
  const maker = await (created_by.kind === 'user'
    ? invitingUser(q, created_by.id)
    : invitingClient(q, created_by.id, invitation, now))
  const isAllowed =
    maker?.permissions.has('users:create') &&
    (maker.organization_id === organization_id || maker.organization_id === DEFAULT_ORGANIZATION)
  if (!maker || !isAllowed) throw forbidden('The person who made the invitation may no longer invite people.')
  mayInviteInto(maker, invitation.groups)
  const caller: Caller = {
    ...created_by,
    ...maker,
    instance: maker.organization_id === DEFAULT_ORGANIZATION,
    scopes: [],
    withheld: new Set(),
    is_fresh: true,
    confirm: async own =>
      void Object.assign(caller, { permissions: (await inviterOf(own, invitation, now)).permissions }),
  }
  return caller
}

type Maker = Pick<Caller, 'email' | 'organization_id' | 'permissions'>

const invitingUser = async (q: Queries, id: string): Promise<Maker | undefined> => {
  const user = await findUser(q, undefined, id)
  if (!user?.enabled) return undefined
  const { email, organization_id } = user
  return { email, organization_id, permissions: permissionsOf(await effectiveRoles(q, user.id)) }
}

const invitingClient = async (
  q: Queries,
  id: string,
  invitation: Invitation,
  now: number,
): Promise<Maker | undefined> => {
  const client = await readClient(q, id)
  if (!client) return undefined
  // If the client was created after the invitation, a deleted client with the same id made the invitation. A
  // `created_at` in the future was stored before the clock was set back, and is ignored.
  if (client.created_at > invitation.created_at && client.created_at <= now + CLOCK_SKEW) return undefined
  return { email: null, organization_id: client.organization_id, permissions: expand(client.scopes) }
}

/**
 * Returns the invited user, if the invitation has one, and the obstacle to an acceptance, if there is one.
 * While an obstacle exists, the link of an open invitation does not work. Obstacles are: the maker may no
 * longer grant the roles and groups; the user is disabled; the user already has a credential or has signed
 * in; the user now has another address. An old link must not open an account that is in use.
 */
export const judgeAcceptance = async (
  q: Queries,
  invitation: Invitation,
  now: number,
): Promise<{ user: UserRow | undefined; obstacle: string | undefined }> => {
  const { organization_id, user_id } = invitation
  const user = user_id ? await findUser(q, organization_id, user_id) : undefined
  const obstacle = user_id ? await obstacleOfUser(q, invitation, user) : undefined
  return { user, obstacle: obstacle ?? (await obstacleOfMaker(q, invitation, now)) }
}

/**
 * True when a user has the address of an invitation for a new user. The page of the invitation would refuse
 * the address. Its link stays open, because a user can accept the invitation through a provider.
 */
export const isInvitedTaken = async (
  q: Queries,
  { organization_id, user_id, email }: Pick<Invitation, 'organization_id' | 'user_id' | 'email'>,
): Promise<boolean> =>
  user_id === null &&
  email !== null &&
  (await takenName(q, { id: 'usr_', organization_id, username: '', email })) !== undefined

const obstacleOfUser = async (
  q: Queries,
  { email }: Invitation,
  user: UserRow | undefined,
): Promise<string | undefined> => {
  if (!user?.enabled) return 'its user is disabled'
  if (!isSameEmail(user.email, email ?? '')) return 'its user has another e-mail address by now'
  const { id, password_hash, last_login } = user
  const isInUse = password_hash !== null || last_login !== null || (await listFactors(q, id)).length > 0
  return isInUse ? 'its user can sign in already' : undefined
}

const obstacleOfMaker = async (
  q: Queries,
  invitation: Invitation,
  now: number,
): Promise<string | undefined> => {
  try {
    mayActOn(await inviterOf(q, invitation, now), await givenBy(q, invitation))
    return undefined
  } catch (error) {
    if (error instanceof AppError && error.status === 403)
      return 'the user or client that made it may no longer grant what it gives'
    throw error
  }
}
