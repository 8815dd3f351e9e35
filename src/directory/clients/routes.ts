import type { Caller, Context } from '#src/context.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import { countAll } from '#src/storage/counts.ts'
import { ClientLogoutList, ListClientLogouts, listClientLogouts } from './logouts.ts'
import {
  ClientAnswer,
  ClientList,
  ClientSecret,
  CreateClient,
  CreatedClient,
  clientAnswer,
  clientItem,
  ListClients,
  UpdateClient,
} from './schema.ts'
import {
  BUILT_IN,
  createClient,
  deleteClient,
  getClient,
  judgeChange,
  judgeNew,
  regenerateSecret,
  updateClient,
} from './service.ts'
import { countClients, listSummaries } from './store.ts'

const list = (context: Context, caller: Caller, query: ListClients) => {
  const { type, grant_type, search, order } = query
  const organization_id = scopeOf(caller, query.organization_id)
  const filter = { type, grant_type, search, organization_id }
  const isFiltered = type !== undefined || grant_type !== undefined || Boolean(search)
  return answerPage(context, {
    name: 'clients',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) => listSummaries(context.store, filter, { order, after, limit }),
    total: () =>
      isFiltered
        ? countClients(context.store, filter)
        : context.store.read(q =>
            countAll(q, 'clients', organization_id, query.organization_id !== undefined),
          ),
    keyset: client => [client.created_at, client.client_id],
    item: clientItem,
  })
}

/** Returns the admin routes of clients. */
export const clientRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'createClient',
    method: 'POST',
    path: '/clients',
    permission: 'clients:create',
    fresh: true,
    summary: 'Register a client; only this answer contains its secret',
    body: CreateClient,
    status: 201,
    answer: CreatedClient,
    errors: [409],
    review: (q, input, good) => judgeNew(q, good, input),
    handle: async input => {
      const { client, secret } = await createClient(context, input.body, input)
      return { ...clientAnswer(client), ...(secret && { client_secret: secret }) }
    },
  }),
  route({
    id: 'listClients',
    method: 'GET',
    path: '/clients',
    permission: 'clients:read',
    summary: 'List clients',
    query: ListClients,
    status: 200,
    answer: ClientList,
    handle: ({ caller, query }) => list(context, caller, query),
  }),
  route({
    id: 'getClient',
    method: 'GET',
    path: '/clients/:client_id',
    permission: 'clients:read',
    summary: 'Get a client, without its secret',
    status: 200,
    answer: ClientAnswer,
    errors: [404],
    read: async (q, { caller, params }) => clientAnswer(await getClient(q, caller, params.client_id)),
  }),
  route({
    id: 'listClientLogouts',
    method: 'GET',
    path: '/clients/:client_id/logouts',
    permission: 'clients:read',
    summary: 'List the logouts that are reported to the application, and their failures',
    query: ListClientLogouts,
    status: 200,
    answer: ClientLogoutList,
    errors: [404],
    handle: ({ caller, params, query }) => listClientLogouts(context, caller, params.client_id, query),
  }),
  route({
    id: 'updateClient',
    method: 'PUT',
    path: '/clients/:client_id',
    permission: 'clients:update',
    summary: 'Change the given fields of a client',
    body: UpdateClient,
    status: 200,
    answer: ClientAnswer,
    errors: [404, 409],
    conflict: BUILT_IN,
    review: (q, input, good) => judgeChange(q, input.params.client_id, good, input),
    handle: async input =>
      clientAnswer(await updateClient(context, input.params.client_id, input.body, input)),
  }),
  route({
    id: 'regenerateClientSecret',
    method: 'POST',
    path: '/clients/:client_id/secret',
    permission: 'clients:update',
    fresh: true,
    summary: 'Make a new secret; the old secret stops working at once',
    status: 200,
    answer: ClientSecret,
    errors: [404, 409],
    conflict: BUILT_IN,
    handle: async input => ({
      client_id: input.params.client_id,
      client_secret: await regenerateSecret(context, input.params.client_id, input),
    }),
  }),
  route({
    id: 'deleteClient',
    method: 'DELETE',
    path: '/clients/:client_id',
    permission: 'clients:delete',
    fresh: true,
    summary: 'Delete a client; its sessions and refresh tokens end',
    status: 204,
    errors: [404, 409],
    conflict: BUILT_IN,
    handle: input => deleteClient(context, input.params.client_id, input),
  }),
]
