import type { Actor } from '#src/audit/record.ts'
import type { Caller } from '#src/context.ts'
import { changedFields, mayActOn, permissionsOf, readOnlyProblems } from '#src/directory/access.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { searchableNames } from '#src/directory/organizations/user-attributes.ts'
import { within } from '#src/http/tenant.ts'
import { notFound } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { isSameEmail } from '#src/lib/email.ts'
import type { Queries } from '#src/storage/store.ts'
import { judgeAttributes, withOwnAttributes } from './attributes.ts'
import { domainProblems, organizationById, rolesToGive } from './rules.ts'
import { type UpdateUser, userAnswer, writable } from './schema.ts'
import { findUser, roleNames, type UserRow } from './store.ts'

/**
 * The actor of a change. In the admin API, the permissions of `caller` limit the change. Without a caller,
 * the server or the user makes the change.
 */
export interface UserChangedBy {
  actor: Actor
  client_info: ClientInfo
  caller?: Caller
  /**
   * Query parameter `confirm`: the user name of the changed user. It allows the removal of the last
   * administrator.
   */
  confirmed?: string | undefined
}

/**
 * Returns the user whom a call is about to change.
 *
 * @throws AppError 404 when the user is unknown or of another organization, 403 when the user has permissions
 * that the caller lacks
 */
export const getUserToChange = async (
  q: Queries,
  { caller }: Pick<UserChangedBy, 'caller'>,
  id: string,
): Promise<UserRow> => {
  const user = await getUser(q, caller, id)
  if (caller) mayActOn(caller, permissionsOf(await effectiveRoles(q, user.id)))
  return user
}

/**
 * Returns a user. Without a caller, the user may belong to any organization.
 *
 * @throws AppError 404 when the user is unknown or of an organization that the caller may not act on
 */
export const getUser = async (q: Queries, caller: Caller | undefined, id: string): Promise<UserRow> => {
  const user = await findUser(q, caller && within(caller), id)
  if (!user) throw notFound('The user')
  return user
}

/** The fields of a PUT, and further fields that the user's own pages change. */
export type UserChange = UpdateUser & {
  /** The address that awaits verification. */
  pending_email?: string | null
  /** Changed attributes. The value `undefined` removes an attribute. */
  own_attributes?: Record<string, unknown>
}

/**
 * True when the change has a new address. Another spelling of the same address is not new: other letter case,
 * or the `xn--` form of the domain.
 */
const isMoved = (user: UserRow, { email }: UserChange): boolean =>
  email !== undefined && !isSameEmail(email, user.email)

/** Returns the user with the changed fields. */
export const changedUser = (user: UserRow, change: UserChange, updated_at: number): UserRow => {
  const {
    username = user.username,
    email = user.email,
    pending_email = user.pending_email,
    first_name = user.first_name,
    last_name = user.last_name,
    enabled = user.enabled,
    email_verified = user.email_verified,
    email_code = user.email_code,
    attributes = user.attributes,
  } = change
  const changed = {
    username,
    email,
    pending_email,
    first_name,
    last_name,
    enabled,
    email_verified,
    email_code,
    attributes,
  }
  return { ...user, ...changed, updated_at }
}

/**
 * Returns the user before the change (`before` includes the roles), the values to store, the names of the
 * changed fields, whether the address is new (`is_moved`), the new roles, the names of the searchable
 * attributes (`indexed`), and the problems of the change.
 *
 * @throws AppError 404 when the user is unknown or of another organization; 403 when the user or the new
 * roles have permissions that the caller lacks
 */
export const judgeChange = async (
  q: Queries,
  id: string,
  given: UserChange,
  by: Pick<UserChangedBy, 'caller'>,
) => {
  const user = await getUserToChange(q, by, id)
  const isChangedAddress = isMoved(user, given)
  const { user_attributes, allowed_domains } = settingsOf(await organizationById(q, user.organization_id))
  const { own_attributes, ...fields } = given
  const attributes = own_attributes ? withOwnAttributes(user.attributes, own_attributes) : fields.attributes
  const judged =
    attributes && judgeAttributes(user_attributes, user.attributes, attributes, by.caller !== undefined)
  const change = {
    // A new address is unverified, because only the old address was verified. The change itself can set
    // `email_verified` to true.
    ...(isChangedAddress && { email_verified: false }),
    ...fields,
    ...(judged && { attributes: judged.attributes }),
  }
  const roles = change.roles && (await rolesToGive(q, by, user.organization_id, change.roles))
  const before = { ...user, roles: await roleNames(q, user.id) }
  const { pending_email } = user
  const changed = changedFields({ ...userAnswer(before), pending_email }, change)
  const addresses = [change.email ?? user.email, change.pending_email ?? user.email]
  const problems = [
    ...readOnlyProblems(changed, { ...writable, pending_email }),
    ...(roles?.problems ?? []),
    ...(judged?.problems ?? []),
    ...addresses.flatMap(email => (email === user.email ? [] : domainProblems(allowed_domains, email))),
  ]
  const indexed = searchableNames(user_attributes)
  return { user, before, change, changed, is_moved: isChangedAddress, roles, indexed, problems }
}
