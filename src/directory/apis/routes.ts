import type { Caller, Context } from '#src/context.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import { ApiAnswer, ApiList, apiAnswer, CreateApi, ListApis, UpdateApi } from './schema.ts'
import { createApi, deleteApi, getApi, judgeChange, judgeNew, updateApi } from './service.ts'
import { countApis, listApis } from './store.ts'

const list = (context: Context, caller: Caller, query: ListApis) => {
  const organization_id = scopeOf(caller, query.organization_id)
  return answerPage(context, {
    name: 'apis',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) =>
      context.store.read(q => listApis(q, organization_id, { order: query.order, after, limit })),
    total: () => context.store.read(q => countApis(q, organization_id)),
    keyset: api => [api.created_at, api.id],
    item: apiAnswer,
  })
}

/** Returns the admin routes of APIs. */
export const apiRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'createApi',
    method: 'POST',
    path: '/apis',
    permission: 'apis:create',
    summary: 'Register an API',
    body: CreateApi,
    status: 201,
    answer: ApiAnswer,
    errors: [409],
    review: (q, input, good) => judgeNew(context, q, good, input),
    handle: async input => apiAnswer(await createApi(context, input.body, input)),
  }),
  route({
    id: 'listApis',
    method: 'GET',
    path: '/apis',
    permission: 'apis:read',
    summary: 'List APIs',
    query: ListApis,
    status: 200,
    answer: ApiList,
    handle: ({ caller, query }) => list(context, caller, query),
  }),
  route({
    id: 'getApi',
    method: 'GET',
    path: '/apis/:api_id',
    permission: 'apis:read',
    summary: 'Get an API',
    status: 200,
    answer: ApiAnswer,
    errors: [404],
    read: async (q, { caller, params }) => apiAnswer(await getApi(q, caller, params.api_id)),
  }),
  route({
    id: 'updateApi',
    method: 'PUT',
    path: '/apis/:api_id',
    permission: 'apis:update',
    summary: 'Change the given fields of an API',
    body: UpdateApi,
    status: 200,
    answer: ApiAnswer,
    errors: [404],
    review: (q, input, good) => judgeChange(q, input.params.api_id, good, input),
    handle: async input => apiAnswer(await updateApi(context, input.params.api_id, input.body, input)),
  }),
  route({
    id: 'deleteApi',
    method: 'DELETE',
    path: '/apis/:api_id',
    permission: 'apis:delete',
    fresh: true,
    summary: 'Delete an API; no further token is issued for it',
    status: 204,
    errors: [404],
    handle: input => deleteApi(context, input.params.api_id, input),
  }),
]
