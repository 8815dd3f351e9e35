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

/** What a user with these roles may do. */
export const permissionsOf = (roles: { permissions: string[] }[]): Set<Permission> =>
  expand(roles.flatMap(role => role.permissions))

/** 403 when a role, scope or group would hand out a permission that the caller lacks. */
export const mayGrant = (caller: Caller, wanted: Iterable<string>): void => {
  const lacking = exceeding(caller.permissions, wanted)
  if (lacking.length > 0)
    throw forbidden(`Nobody grants what they lack. You do not hold: ${lacking.join(', ')}.`)
}

/** 403 when a user, role, group or client holds a permission that the caller lacks. */
export const mayActOn = (caller: Caller, held: Iterable<string>): void => {
  const lacking = exceeding(caller.permissions, held)
  if (lacking.length > 0) throw forbidden(`It has permissions that you do not hold: ${lacking.join(', ')}.`)
}

/** Who asks, with the rights that bound what may be done, and from where: every admin route has it in its input. */
export interface ChangedBy {
  caller: Caller
  client_info: ClientInfo
}

/** Writes the event of a change to something that administrators manage. */
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

/** The server itself, working off a file: it may do everything, and events name no actor. */
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
    confirm: async () => {},
  },
  client_info: hostActor.client_info,
}

export const refuse = ([first, ...others]: Detail[]): void => {
  if (first) throw invalid(first, ...others)
}

/** The names of the fields of a PUT whose values are not those that the resource shows. */
export const changedFields = (shown: object, change: object): string[] =>
  Object.entries(change)
    .filter(([name, value]) => value !== undefined && !Bun.deepEquals(value, Reflect.get(shown, name)))
    .map(([name]) => name)

/** One detail for each changed field that never changes: an object that was read can be sent back as it is. */
export const readOnlyProblems = (changed: string[], writable: object): Detail[] =>
  changed
    .filter(name => !Object.hasOwn(writable, name))
    .map(field => ({ field, code: 'read_only', message: 'This field cannot be changed.' }))

/** The organization of something new: the one that the body names, else the caller's own. */
export const organizationFor = (caller: Caller, wanted?: string): OrganizationId =>
  scopeOf(caller, wanted) ?? caller.organization_id

/**
 * The same, when it exists: 422 with one text for an unknown and for another tenant's organization, and with the other
 * problems that are known by then.
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
