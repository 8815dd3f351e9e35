import type { Caller, Context } from '#src/context.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import {
  CreateIdentityProvider,
  IdentityProviderAnswer,
  IdentityProviderList,
  ListIdentityProviders,
  providerAnswer,
  UpdateIdentityProvider,
} from './schema.ts'
import {
  createProvider,
  deleteProvider,
  getProvider,
  judgeChange,
  reviewNew,
  updateProvider,
} from './service.ts'
import { countProviders, listProviders } from './store.ts'
import type { ProviderWithRoles } from './types.ts'

const list = (context: Context, caller: Caller, query: ListIdentityProviders) => {
  const { type, order } = query
  const filter = { type, organization_id: scopeOf(caller, query.organization_id) }
  const now = context.clock.now()
  return answerPage(context, {
    name: 'identity_providers',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) => context.store.read(q => listProviders(q, filter, { order, after, limit })),
    total: () => context.store.read(q => countProviders(q, filter)),
    keyset: provider => [provider.created_at, provider.id],
    item: provider => providerAnswer(provider, now),
  })
}

/** Returns the admin routes of identity providers. */
export const identityProviderRoutes = (context: Context): AdminRoute[] => {
  const answer = (provider: ProviderWithRoles) => providerAnswer(provider, context.clock.now())
  return [
    route({
      id: 'createIdentityProvider',
      method: 'POST',
      path: '/identity-providers',
      permission: 'identity_providers:create',
      summary: 'Add an identity provider; its client secret can never be read again',
      body: CreateIdentityProvider,
      status: 201,
      answer: IdentityProviderAnswer,
      errors: [409, 429],
      review: (q, input, good, bad) => reviewNew(context, q, good, bad, input),
      handle: async input => answer(await createProvider(context, input.body, input)),
    }),
    route({
      id: 'listIdentityProviders',
      method: 'GET',
      path: '/identity-providers',
      permission: 'identity_providers:read',
      summary: 'List identity providers',
      query: ListIdentityProviders,
      status: 200,
      answer: IdentityProviderList,
      handle: ({ caller, query }) => list(context, caller, query),
    }),
    route({
      id: 'getIdentityProvider',
      method: 'GET',
      path: '/identity-providers/:provider_id',
      permission: 'identity_providers:read',
      summary: 'Get an identity provider by id or alias',
      status: 200,
      answer: IdentityProviderAnswer,
      errors: [404],
      read: async (q, { caller, params }) => answer(await getProvider(q, caller, params.provider_id)),
    }),
    route({
      id: 'updateIdentityProvider',
      method: 'PUT',
      path: '/identity-providers/:provider_id',
      permission: 'identity_providers:update',
      summary: 'Change the given fields of an identity provider',
      body: UpdateIdentityProvider,
      status: 200,
      answer: IdentityProviderAnswer,
      errors: [404, 409, 429],
      review: (q, input, good) => judgeChange(context, q, input.params.provider_id, good, input),
      handle: async input =>
        answer(await updateProvider(context, input.params.provider_id, input.body, input)),
    }),
    route({
      id: 'deleteIdentityProvider',
      method: 'DELETE',
      path: '/identity-providers/:provider_id',
      permission: 'identity_providers:delete',
      fresh: true,
      summary: 'Delete an identity provider; users who were created through it are kept',
      status: 204,
      errors: [404],
      handle: input => deleteProvider(context, input.params.provider_id, input),
    }),
  ]
}
