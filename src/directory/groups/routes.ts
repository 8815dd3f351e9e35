import type { Caller, Context } from '#src/context.ts'
import type { ChangedBy } from '#src/directory/access.ts'
import { ConfirmQuery } from '#src/directory/administrators.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { asShown } from '#src/directory/users/attributes.ts'
import { UserList, userAnswer } from '#src/directory/users/schema.ts'
import { roleNamesOf } from '#src/directory/users/store.ts'
import { type AdminRoute, type RouteInput, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import { countAll } from '#src/storage/counts.ts'
import {
  CreateGroup,
  GroupAnswer,
  GroupList,
  groupAnswer,
  ListGroups,
  ListMembers,
  UpdateGroup,
} from './schema.ts'
import {
  createGroup,
  deleteGroup,
  deleteMember,
  getGroup,
  judgeChange,
  judgeNew,
  putMember,
  updateGroup,
} from './service.ts'
import { countGroups, listGroups, listMembers } from './store.ts'

const list = (context: Context, caller: Caller, query: ListGroups) => {
  const { user_id, role } = query
  const organization_id = scopeOf(caller, query.organization_id)
  const filter = { organization_id, user_id, role }
  const isNarrowed = user_id !== undefined || role !== undefined
  return answerPage(context, {
    name: 'groups',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) =>
      context.store.read(q => listGroups(q, filter, { order: query.order, after, limit })),
    total: () =>
      context.store.read(q =>
        isNarrowed
          ? countGroups(q, filter)
          : countAll(q, 'groups', organization_id, query.organization_id !== undefined),
      ),
    keyset: group => [group.created_at, group.id],
    item: groupAnswer,
  })
}

const members = async (context: Context, caller: Caller, group_id: string, query: ListMembers) => {
  const group = await context.store.read(q => getGroup(q, caller, group_id))
  const organization = await findOrganization(context.store, group.organization_id)
  return answerPage(context, {
    name: `members of ${group.id}`,
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) =>
      context.store.read(async q =>
        roleNamesOf(q, await listMembers(q, group.id, { order: query.order, after, limit })),
      ),
    total: async () => group.member_count,
    keyset: user => [user.id],
    item: user => userAnswer(asShown(organization, user)),
  })
}

const confirmedBy = ({ caller, client_info, query }: RouteInput<unknown, ConfirmQuery>): ChangedBy => ({
  caller,
  client_info,
  confirmed: query.confirm,
})

/** Returns the admin routes of groups. */
export const groupRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'createGroup',
    method: 'POST',
    path: '/groups',
    permission: 'groups:create',
    summary: 'Create a group',
    body: CreateGroup,
    status: 201,
    answer: GroupAnswer,
    errors: [409],
    review: (q, input, good) => judgeNew(q, good, input),
    handle: async input => groupAnswer(await createGroup(context, input.body, input)),
  }),
  route({
    id: 'listGroups',
    method: 'GET',
    path: '/groups',
    permission: 'groups:read',
    summary: 'List groups',
    query: ListGroups,
    status: 200,
    answer: GroupList,
    handle: ({ caller, query }) => list(context, caller, query),
  }),
  route({
    id: 'getGroup',
    method: 'GET',
    path: '/groups/:group_id',
    permission: 'groups:read',
    summary: 'Get a group',
    status: 200,
    answer: GroupAnswer,
    errors: [404],
    read: async (q, { caller, params }) => groupAnswer(await getGroup(q, caller, params.group_id)),
  }),
  route({
    id: 'updateGroup',
    method: 'PUT',
    path: '/groups/:group_id',
    permission: 'groups:update',
    summary: 'Change the given fields of a group',
    query: ConfirmQuery,
    body: UpdateGroup,
    status: 200,
    answer: GroupAnswer,
    errors: [404, 409],
    review: (q, input, good) => judgeChange(q, input.params.group_id, good, input),
    handle: async input =>
      groupAnswer(await updateGroup(context, input.params.group_id, input.body, confirmedBy(input))),
  }),
  route({
    id: 'deleteGroup',
    method: 'DELETE',
    path: '/groups/:group_id',
    permission: 'groups:delete',
    fresh: true,
    summary: 'Delete a group; its members lose the roles that they inherit from it',
    query: ConfirmQuery,
    status: 204,
    errors: [404, 409],
    handle: input => deleteGroup(context, input.params.group_id, confirmedBy(input)),
  }),
  route({
    id: 'listGroupMembers',
    method: 'GET',
    path: '/groups/:group_id/members',
    permission: 'groups:read',
    summary: 'List the members of a group',
    query: ListMembers,
    status: 200,
    answer: UserList,
    errors: [404],
    handle: ({ caller, params, query }) => members(context, caller, params.group_id, query),
  }),
  route({
    id: 'addGroupMember',
    method: 'PUT',
    path: '/groups/:group_id/members/:user_id',
    permission: 'groups:update',
    summary: 'Add a user to a group',
    status: 204,
    errors: [404, 409],
    conflict: 'The user already has 200 groups.',
    handle: input => putMember(context, input.params.group_id, input.params.user_id, input),
  }),
  route({
    id: 'removeGroupMember',
    method: 'DELETE',
    path: '/groups/:group_id/members/:user_id',
    permission: 'groups:update',
    summary: 'Remove a user from a group',
    query: ConfirmQuery,
    status: 204,
    errors: [404, 409],
    handle: input => deleteMember(context, input.params.group_id, input.params.user_id, confirmedBy(input)),
  }),
]
