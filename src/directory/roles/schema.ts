import { z } from 'zod'
import {
  count,
  flag,
  line,
  lines,
  maintained,
  oneOf,
  owner,
  readOnly,
  readOnlyStored,
  set,
  stored,
} from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { permissions } from '#src/lib/permission.ts'
import { iso } from '#src/lib/text.ts'
import type { Role as Row } from './store.ts'

/** The name is fixed, because applications, mappings and seed files contain it. */
const name = line(128, 1).describe('Unique in the organization. It cannot be changed.')
const description = lines(1000).describe('Shown to administrators.')
const PERMISSIONS = 'Permissions that the role grants.'
const Permission = oneOf(permissions).meta({ id: 'Permission', description: 'A permission of a role.' })
const editor = { name: 'editor', description: 'Manages users', permissions: ['users:read', 'users:update'] }

export const CreateRole = z
  .strictObject({
    name,
    description: description.default(''),
    organization_id: owner,
    permissions: set(Permission, 100).describe(
      'Permissions that the role grants. The caller must hold all of them, except `profile:read` and `profile:update`.',
    ),
  })
  .meta({ id: 'CreateRole', description: 'A new role.', example: editor })
export type CreateRole = z.output<typeof CreateRole>

/** The schema accepts `*`, so that a PUT may send back the unchanged built-in role `admin`. */
export const writable = {
  description,
  permissions: set(
    oneOf(['*', ...permissions]).meta({
      id: 'RolePermission',
      description: 'A permission, or `*` for every permission. Only the built-in role `admin` has `*`.',
    }),
    100,
  ).describe(PERMISSIONS),
}

export const UpdateRole = z
  .strictObject({
    ...z.object(writable).partial().shape,
    ...readOnlyStored,
    name: readOnly(z.string()),
    built_in: readOnly(flag),
    user_count: maintained(count),
  })
  .meta({
    id: 'UpdateRole',
    description: 'The fields of a role to change.',
    example: { permissions: ['users:read'] },
  })
export type UpdateRole = z.output<typeof UpdateRole>

export const RoleAnswer = z
  .object({
    ...stored,
    name,
    description,
    permissions: writable.permissions,
    built_in: flag.describe('Whether the role is built in: every organization has it, and it never changes.'),
    user_count: count.describe('Number of users that hold the role directly.'),
  })
  .meta({
    id: 'Role',
    description: 'A named list of permissions in an organization.',
    example: {
      id: example.role_id,
      ...editor,
      organization_id: example.organization_id,
      built_in: false,
      user_count: 0,
      created_at: example.time,
      updated_at: example.time,
    },
  })

/** Returns a role in the form of the admin API's answer. */
export const roleAnswer = (role: Row): z.output<typeof RoleAnswer> => ({
  id: role.id,
  name: role.name,
  description: role.description,
  organization_id: role.organization_id,
  built_in: role.built_in,
  permissions: role.permissions as z.output<typeof RoleAnswer>['permissions'],
  user_count: role.user_count,
  created_at: iso(role.created_at),
  updated_at: iso(role.updated_at),
})

export const ListRoles = listQuery({
  search: line(256).optional().describe('Part of name, in upper or lower case.'),
  organization_id: ofOrganization,
})
export type ListRoles = z.output<typeof ListRoles>

export const RoleList = listOf('RoleList', RoleAnswer)
