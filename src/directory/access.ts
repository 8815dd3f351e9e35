import { hostActor, record } from '#src/audit/record.ts'
import type { EventType, TargetType } from '#src/audit/types.ts'
import type { Caller, Core } from '#src/context.ts'
import { scopeOf } from '#src/http/tenant.ts'
import { type Detail, forbidden, invalid } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DEFAULT_ORGANIZATION, type OrganizationId, type UserId } from '#src/lib/ids.ts'
import { exceeding, expand, type Permission, permissions } from '#src/lib/permission.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { findIdentity } from './store.ts'

/** Returns the permissions that roles grant. */
export const permissionsOf = (roles: { permissions: string[] }[]): Set<Permission> =>
  expand(roles.flatMap(role => role.permissions))

/**
 * Refuses to grant permissions that the caller lacks. Otherwise the caller could extend its own rights,
 * directly or through a second account.
 *
 * @throws AppError 403
 */
export const mayGrant = (caller: Caller, wanted: Iterable<string>): void => {
  const lacking = exceeding(caller.permissions, wanted)
  if (lacking.length > 0)
    throw forbidden(`You can grant only permissions that you hold. Missing: ${lacking.join(', ')}.`)
}

/**
 * Refuses to change a user, client or other object that has permissions which the caller lacks. Otherwise the
 * caller could take over the object, for example with a new password or secret.
 *
 * @throws AppError 403
 */
export const mayActOn = (caller: Caller, held: Iterable<string>): void => {
  const lacking = exceeding(caller.permissions, held)
  if (lacking.length > 0) throw forbidden(`The target has permissions that you lack: ${lacking.join(', ')}.`)
}

/**
 * The origin of a change: the caller, whose permissions limit the change, and facts about the sender of the
 * request. Admin routes pass this object to the services. Services that change users take `UserChangedBy`
 * instead.
 */
export interface ChangedBy {
  caller: Caller
  client_info: ClientInfo
  /**
   * Query parameter `confirm`. The caller sends the name of the changed user or group, and thereby accepts
   * that the organization loses its last administrator. The value true means that the server itself makes the
   * change.
   */
  confirmed?: string | true | undefined
}

/** Records an event about a change to a resource of the admin API. */
export const recordChange = (
  context: Core,
  tx: Transaction,
  { caller, client_info }: ChangedBy,
  event: {
    type: EventType
    target_id: string
    organization_id: OrganizationId
    metadata: Record<string, unknown>
    subject_id?: UserId
  },
): Promise<void> =>
  record(context, tx, {
    ...event,
    target_type: event.type.split('.')[0] as TargetType,
    actor: { id: caller.id || null, email: caller.email },
    client_info,
  })

/**
 * The origin of changes by the server itself, a seed file or a command. The caller has all permissions, and
 * the events name no actor.
 */
export const serverActor: ChangedBy = {
  caller: {
    kind: 'client',
    id: '',
    email: null,
    organization_id: DEFAULT_ORGANIZATION,
    instance: true,
    permissions: new Set(permissions),
    scopes: [],
    withheld: new Set(),
    is_fresh: true,
    confirm: async () => {},
  },
  client_info: hostActor.client_info,
  confirmed: true,
}

/**
 * Returns the names of the fields of a PUT whose values differ from the resource. If nothing differs, the
 * service stores nothing and records no event, because the audit log lists changes, not calls.
 */
export const changedFields = (shown: object, change: object): string[] =>
  Object.entries(change)
    .filter(([name, value]) => value !== undefined && !Bun.deepEquals(value, Reflect.get(shown, name)))
    .map(([name]) => name)

const change = (kind: string, before: readonly string[], after: readonly string[]) => {
  const added = after.filter(name => !before.includes(name))
  const removed = before.filter(name => !after.includes(name))
  return {
    ...(added.length > 0 && { [`${kind}_added`]: added }),
    ...(removed.length > 0 && { [`${kind}_removed`]: removed }),
  }
}

/**
 * Returns the roles that a change adds and removes, as metadata of its event. The result is empty if no role
 * was added or removed. Without this metadata, an auditor could not see who became an administrator.
 */
export const roleChange = (before: readonly string[], after: readonly string[]): Record<string, string[]> =>
  change('roles', before, after)

/**
 * Does for the scopes of a client what {@link roleChange} does for roles. Omits the scopes that grant no
 * permission.
 */
export const permissionChange = (
  before: readonly string[],
  after: readonly string[],
): Record<string, string[]> => {
  const granting = (scopes: readonly string[]) => scopes.filter(scope => expand([scope]).size > 0)
  return change('permissions', granting(before), granting(after))
}

/**
 * Returns a detail for each changed field that is read-only. A PUT may contain a read-only field with its
 * current value.
 */
export const readOnlyProblems = (changed: string[], writable: object): Detail[] =>
  changed
    .filter(name => !Object.hasOwn(writable, name))
    .map(field => ({ field, code: 'read_only', message: 'This field cannot be changed.' }))

/** Returns the fields of a PUT that are given and may change. */
export const writableFields = (change: object, writable: object): object =>
  Object.fromEntries(
    Object.entries(change).filter(([name, value]) => value !== undefined && Object.hasOwn(writable, name)),
  )

/**
 * Returns the organization of a new resource: `wanted`, or by default the caller's organization. Callers thus
 * need not know the id of their own organization.
 */
export const organizationFor = (caller: Caller, wanted?: string): OrganizationId =>
  scopeOf(caller, wanted) ?? caller.organization_id

/**
 * Returns the organization of a new resource after checking that this organization exists.
 *
 * @throws AppError 422 for an unknown organization, with `others` added to the details. An organization that
 * the caller may not act on is refused with the same text, so its existence is not revealed.
 */
export const requireOrganization = async (
  q: Queries,
  caller: Caller,
  wanted?: string,
  others: Detail[] = [],
): Promise<{ id: OrganizationId; slug: string }> => {
  const organization = await findIdentity(q, organizationFor(caller, wanted))
  if (!organization)
    throw invalid(
      {
        field: 'organization_id',
        code: 'unknown_organization',
        message: 'There is no such organization.',
      },
      ...others,
    )
  return organization
}
