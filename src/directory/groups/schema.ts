import { z } from 'zod'
import { count, line, lines, maintained, owner, readOnlyStored, set, stored } from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { idFilter, listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { iso } from '#src/lib/text.ts'
import type { ListedGroup } from './store.ts'

export const writable = {
  name: line(128, 1).describe(
    'Unique in the organization. A new name also replaces the old name in `allowed_groups` of the clients of the organization. Clients with `cross_organization` keep the old name.',
  ),
  description: lines(1000).describe('Shown to administrators.'),
  // At most 100 roles, because each token request of a member reads them. A user has at most 100 roles too.
  roles: set(line(128), 100)
    .overwrite(names => names.sort())
    .describe('Names of the roles that every member has, sorted.'),
}

const staff = { name: 'Staff', description: 'Everyone at the head office', roles: ['editor'] }

export const CreateGroup = z
  .strictObject({
    name: writable.name,
    description: writable.description.default(''),
    organization_id: owner,
    roles: writable.roles.default([]),
  })
  .meta({ id: 'CreateGroup', description: 'A new group.', example: staff })
export type CreateGroup = z.output<typeof CreateGroup>

export const UpdateGroup = z
  .strictObject({
    ...z.object(writable).partial().shape,
    ...readOnlyStored,
    member_count: maintained(count),
  })
  .meta({
    id: 'UpdateGroup',
    description: 'The fields of a group to change.',
    example: { description: 'Everyone' },
  })
export type UpdateGroup = z.output<typeof UpdateGroup>

export const GroupAnswer = z
  .object({ ...stored, ...writable, member_count: count.describe('Number of members.') })
  .meta({
    id: 'Group',
    description: 'A set of users of an organization who share roles.',
    example: {
      id: example.group_id,
      ...staff,
      organization_id: example.organization_id,
      member_count: 0,
      created_at: example.time,
      updated_at: example.time,
    },
  })

/** Returns a group in the form of the admin API's answer. */
export const groupAnswer = (group: ListedGroup): z.output<typeof GroupAnswer> => ({
  id: group.id,
  name: group.name,
  description: group.description,
  organization_id: group.organization_id,
  roles: group.roles.map(role => role.name),
  member_count: group.member_count,
  created_at: iso(group.created_at),
  updated_at: iso(group.updated_at),
})

export const ListGroups = listQuery({
  user_id: idFilter.optional().describe('Only groups of this user.'),
  role: idFilter.optional().describe('Only groups that grant a role of this name.'),
  organization_id: ofOrganization,
})
export type ListGroups = z.output<typeof ListGroups>

export const GroupList = listOf('GroupList', GroupAnswer)

export const ListMembers = listQuery({})
export type ListMembers = z.output<typeof ListMembers>
