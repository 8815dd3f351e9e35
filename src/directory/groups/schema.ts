import { z } from 'zod'
import { count, line, lines, reference, set, time } from '#src/directory/fields.ts'
import { idFilter, listOf, listQuery } from '#src/http/list.ts'
import { iso } from '#src/lib/text.ts'
import type { GroupWithRoles } from './store.ts'

export const writable = {
  name: line(128, 1),
  description: lines(1000),
  /** Names; answered in their order. */
  roles: set(line(128), 100).overwrite(names => names.sort()),
}

export const CreateGroup = z.strictObject({
  name: writable.name,
  description: writable.description.default(''),
  organization_id: reference.optional(),
  roles: writable.roles.default([]),
})
export type CreateGroup = z.output<typeof CreateGroup>

export const UpdateGroup = z.strictObject({
  ...z.object(writable).partial().shape,
  id: z.string().optional(),
  organization_id: z.string().optional(),
  member_count: count.optional(),
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
})
export type UpdateGroup = z.output<typeof UpdateGroup>

export const GroupAnswer = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  organization_id: z.string(),
  roles: z.array(z.string()),
  member_count: count,
  created_at: time,
  updated_at: time,
})

export const groupAnswer = (group: GroupWithRoles): z.output<typeof GroupAnswer> => ({
  id: group.id,
  name: group.name,
  description: group.description,
  organization_id: group.organization_id,
  roles: group.roles.map(role => role.name),
  member_count: group.member_count,
  created_at: iso(group.created_at),
  updated_at: iso(group.updated_at),
})

export const ListGroups = listQuery({ organization_id: idFilter.optional() })
export type ListGroups = z.output<typeof ListGroups>

export const GroupList = listOf(GroupAnswer)

export const ListMembers = listQuery({})
export type ListMembers = z.output<typeof ListMembers>
