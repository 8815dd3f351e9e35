import type { Caller, Core } from '#src/context.ts'
import {
  type ChangedBy,
  changedFields,
  mayActOn,
  mayGrant,
  readOnlyProblems,
  recordChange,
  requireOrganization,
} from '#src/directory/access.ts'
import { chosenId, whenTaken } from '#src/directory/store.ts'
import { writeAs } from '#src/http/guard.ts'
import { within } from '#src/http/tenant.ts'
import { conflict, type Detail, notFound, throwProblems } from '#src/lib/app-error.ts'
import { newId, type RoleId } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'
import { type CreateRole, roleAnswer, type UpdateRole, writable } from './schema.ts'
import { findRole, insertRole, type Role, removeRole, saveRole } from './store.ts'

/**
 * Returns a role of an organization that the caller may act on.
 *
 * @throws AppError 404 when the role is unknown or of another organization
 */
export const getRole = async (q: Queries, caller: Caller, id: string): Promise<Role> => {
  const role = await findRole(q, id, within(caller))
  if (!role) throw notFound('The role')
  return role
}

/**
 * Returns the organization and the problems of a new role.
 *
 * @throws AppError 403 for permissions that the caller lacks, 422 for an unknown organization
 */
export const judgeNew = async (
  q: Queries,
  { organization_id, permissions = [] }: Partial<CreateRole>,
  by: ChangedBy,
) => {
  mayGrant(by.caller, permissions)
  const { id } = await requireOrganization(q, by.caller, organization_id)
  return { organization_id: id, problems: [] }
}

/**
 * Creates a role. The id is `input.id`, otherwise a new one.
 *
 * @throws AppError 409 when the name is taken; the errors of `judgeNew` and `chosenId`
 */
export const createRole = (
  context: Core,
  input: CreateRole & { id?: RoleId },
  by: ChangedBy,
): Promise<Role> =>
  writeAs(context, by.caller, async tx => {
    const { organization_id } = await judgeNew(tx, input, by)
    const now = context.clock.now()
    const role = {
      ...input,
      organization_id,
      id: (await chosenId(tx, 'role', input.id)) ?? newId('role', now),
      built_in: false,
      created_at: now,
      updated_at: now,
    }
    await insertRole(tx, role).catch(whenTaken('name', 'The organization already has a role of this name.'))
    const { id: target_id, name, permissions } = role
    await recordChange(context, tx, by, {
      type: 'role.created',
      target_id,
      organization_id,
      metadata: { name, permissions },
    })
    return { ...role, user_count: 0 }
  })

const wildcardProblems = (changed: string[], { permissions }: UpdateRole): Detail[] =>
  changed.includes('permissions') && permissions?.includes('*')
    ? [
        {
          field: 'permissions',
          code: 'wildcard',
          message: 'Only the built-in role admin has the permission *.',
        },
      ]
    : []

/**
 * Returns the role before the change, the names of the changed fields, and the problems of the change.
 *
 * @throws AppError 403 when the caller lacks permissions that the role has before or after the change; 404
 * when the role is unknown or of another organization
 */
export const judgeChange = async (q: Queries, id: string, change: UpdateRole, by: ChangedBy) => {
  const role = await getRole(q, by.caller, id)
  mayActOn(by.caller, role.permissions)
  mayGrant(by.caller, change.permissions ?? [])
  const fields = changedFields(roleAnswer(role), change)
  return {
    role,
    fields,
    problems: [...readOnlyProblems(fields, writable), ...wildcardProblems(fields, change)],
  }
}

/**
 * Changes the given fields.
 *
 * @throws AppError 409 for a built-in role; 422 with the problems of the change; the errors of `judgeChange`
 */
export const updateRole = (context: Core, id: string, change: UpdateRole, by: ChangedBy): Promise<Role> =>
  writeAs(context, by.caller, async tx => {
    const { role, fields, problems } = await judgeChange(tx, id, change, by)
    throwProblems(problems)
    if (fields.length === 0) return role
    // Every organization relies on the built-in roles: `admin` also gets the permissions that later versions
    // add, and `user` lets users read and update their own profile.
    if (role.built_in) throw conflict('Built-in roles cannot be changed.')
    const { description = role.description, permissions = role.permissions } = change
    const changed = { ...role, description, permissions, updated_at: context.clock.now() }
    await saveRole(tx, changed)
    await recordChange(context, tx, by, {
      type: 'role.updated',
      target_id: role.id,
      organization_id: role.organization_id,
      metadata: { name: role.name, fields, ...(fields.includes('permissions') && { permissions }) },
    })
    return changed
  })

/**
 * Deletes a role. Its users and groups lose the role at once.
 *
 * @throws AppError 404 when the role is unknown or of another organization; 403 when it has permissions that
 * the caller lacks; 409 for a built-in role
 */
export const deleteRole = (context: Core, id: string, by: ChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const role = await getRole(tx, by.caller, id)
    mayActOn(by.caller, role.permissions)
    if (role.built_in) throw conflict('Built-in roles cannot be deleted.')
    await removeRole(tx, role.id, context.clock.now())
    await recordChange(context, tx, by, {
      type: 'role.deleted',
      target_id: role.id,
      organization_id: role.organization_id,
      metadata: { name: role.name },
    })
  })
