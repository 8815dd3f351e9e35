import type { Caller, Context } from '#src/context.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import { countAll } from '#src/storage/counts.ts'
import { CreateRole, ListRoles, RoleAnswer, RoleList, roleAnswer, UpdateRole } from './schema.ts'
import { createRole, deleteRole, getRole, judgeChange, judgeNew, updateRole } from './service.ts'
import { countRoles, listRoles } from './store.ts'

const list = (context: Context, caller: Caller, query: ListRoles) => {
  const { search, order } = query
  const organization_id = scopeOf(caller, query.organization_id)
  const filter = { organization_id, search }
  return answerPage(context, {
    name: 'roles',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) => listRoles(context.store, filter, { order, after, limit }),
    total: () =>
      search
        ? countRoles(context.store, filter)
        : context.store.read(q => countAll(q, 'roles', organization_id, query.organization_id !== undefined)),
    keyset: role => [role.created_at, role.id],
    item: roleAnswer,
  })
}

/** Returns the admin routes of roles. */
export const roleRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'createRole',
    method: 'POST',
    path: '/roles',
    permission: 'roles:create',
    summary: 'Create a role',
    body: CreateRole,
    status: 201,
    answer: RoleAnswer,
    errors: [409],
    review: (q, input, good) => judgeNew(q, good, input),
    handle: async input => roleAnswer(await createRole(context, input.body, input)),
  }),
  route({
    id: 'listRoles',
    method: 'GET',
    path: '/roles',
    permission: 'roles:read',
    summary: 'List roles',
    query: ListRoles,
    status: 200,
    answer: RoleList,
    handle: ({ caller, query }) => list(context, caller, query),
  }),
  route({
    id: 'getRole',
    method: 'GET',
    path: '/roles/:role_id',
    permission: 'roles:read',
    summary: 'Get a role',
    status: 200,
    answer: RoleAnswer,
    errors: [404],
    read: async (q, { caller, params }) => roleAnswer(await getRole(q, caller, params.role_id)),
  }),
  route({
    id: 'updateRole',
    method: 'PUT',
    path: '/roles/:role_id',
    permission: 'roles:update',
    summary: 'Change the given fields of a role',
    body: UpdateRole,
    status: 200,
    answer: RoleAnswer,
    errors: [404, 409],
    review: (q, input, good) => judgeChange(q, input.params.role_id, good, input),
    handle: async input => roleAnswer(await updateRole(context, input.params.role_id, input.body, input)),
  }),
  route({
    id: 'deleteRole',
    method: 'DELETE',
    path: '/roles/:role_id',
    permission: 'roles:delete',
    fresh: true,
    summary: 'Delete a role; users and groups lose it',
    status: 204,
    errors: [404, 409],
    handle: input => deleteRole(context, input.params.role_id, input),
  }),
]
