import { z } from 'zod'
import { count, flag, line, lines, oneOf, reference, set, time } from '#src/directory/fields.ts'
import { idFilter, listOf, listQuery } from '#src/http/list.ts'
import { permissions } from '#src/lib/permission.ts'
import { iso } from '#src/lib/text.ts'
import type { Role as Row } from './store.ts'

export const CreateRole = z.strictObject({
  name: line(128, 1),
  description: lines(1000).default(''),
  organization_id: reference.optional(),
  permissions: set(oneOf(permissions), 100),
})
export type CreateRole = z.output<typeof CreateRole>

/** `*` is accepted here: the built-in role `admin` may be sent back as it was read. */
export const writable = {
  description: lines(1000).optional(),
  permissions: set(oneOf(['*', ...permissions]), 100).optional(),
}

export const UpdateRole = z.strictObject({
  ...writable,
  id: z.string().optional(),
  name: z.string().optional(),
  organization_id: z.string().optional(),
  built_in: flag.optional(),
  user_count: count.optional(),
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
})
export type UpdateRole = z.output<typeof UpdateRole>

export const RoleAnswer = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  organization_id: z.string(),
  built_in: z.boolean(),
  permissions: z.array(z.string()),
  user_count: count,
  created_at: time,
  updated_at: time,
})

export const roleAnswer = (role: Row): z.output<typeof RoleAnswer> => ({
  id: role.id,
  name: role.name,
  description: role.description,
  organization_id: role.organization_id,
  built_in: role.built_in,
  permissions: role.permissions,
  user_count: role.user_count,
  created_at: iso(role.created_at),
  updated_at: iso(role.updated_at),
})

export const ListRoles = listQuery({ organization_id: idFilter.optional() })
export type ListRoles = z.output<typeof ListRoles>

export const RoleList = listOf(RoleAnswer)
