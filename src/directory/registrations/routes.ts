import type { Caller, Context } from '#src/context.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { asShown } from '#src/directory/users/attributes.ts'
import { UserAnswer, userAnswer } from '#src/directory/users/schema.ts'
import { byCaller } from '#src/directory/users/service.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import { ListRegistrations, RegistrationList, registrationAnswer } from './schema.ts'
import { approveRegistration } from './service.ts'
import { countWaiting, listWaiting } from './store.ts'

const list = (context: Context, caller: Caller, query: ListRegistrations) => {
  const organization_id = scopeOf(caller, query.organization_id)
  return answerPage(context, {
    name: 'registrations',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) =>
      context.store.read(q => listWaiting(q, organization_id, { order: query.order, after, limit })),
    total: () => context.store.read(q => countWaiting(q, organization_id)),
    keyset: ({ created_at, user_id }) => [created_at, user_id],
    item: registrationAnswer,
  })
}

/** Returns the admin routes of registrations. */
export const registrationRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'listRegistrations',
    method: 'GET',
    path: '/registrations',
    permission: 'users:read',
    summary: 'List users who wait for approval',
    query: ListRegistrations,
    status: 200,
    answer: RegistrationList,
    handle: ({ caller, query }) => list(context, caller, query),
  }),
  route({
    id: 'approveRegistration',
    method: 'POST',
    path: '/registrations/:registration_id/approve',
    permission: 'users:update',
    summary: 'Approve a user who waits for approval; to refuse a user, delete the user',
    status: 200,
    answer: UserAnswer,
    errors: [404, 429],
    handle: async ({ caller, params, client_info }) => {
      const user = await approveRegistration(context, params.registration_id, byCaller(caller, client_info))
      return userAnswer(asShown(await findOrganization(context.store, user.organization_id), user))
    },
  }),
]
