import type { Caller, Context } from '#src/context.ts'
import type { ChangedBy } from '#src/directory/access.ts'
import { ConfirmQuery } from '#src/directory/administrators.ts'
import { findOrganization, readOrganization } from '#src/directory/organizations/store.ts'
import { type AdminRoute, type RouteInput, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import { throwProblems } from '#src/lib/app-error.ts'
import { RevokedSessions, revokedAnswer } from '#src/sessions/schema.ts'
import { countAll } from '#src/storage/counts.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { countByAttributes, listByAttributes } from './attribute-search-store.ts'
import { asShown } from './attributes.ts'
import { getUser, judgeChange } from './change.ts'
import { keysetOf } from './list-store.ts'
import { setPicture } from './picture.ts'
import { judgePassword, resetPassword } from './reset-password.ts'
import { judgeNew } from './rules.ts'
import {
  CreatedUser,
  CreateUserBody,
  ListUsers,
  ResetPassword,
  UpdateUser,
  UserAnswer,
  UserList,
  userAnswer,
} from './schema.ts'
import { countUsers, listUsers } from './search-store.ts'
import { byCaller, createUser, deleteUser, revokeUserSessions, updateUser } from './service.ts'
import { roleNames, roleNamesOf, type UserRow, type UserWithRoles } from './store.ts'
import { acceptedTerms, TermsList } from './terms.ts'

const answerOf = async (q: Queries, user: UserWithRoles): Promise<UserAnswer> =>
  userAnswer(asShown(await readOrganization(q, user.organization_id), user))

const list = async (context: Context, caller: Caller, query: ListUsers) => {
  const { search, enabled, role, email_verified, attribute, sort, order } = query
  const values = Object.entries(attribute ?? {})
  const filter = {
    search,
    enabled,
    role,
    email_verified,
    organization_id: scopeOf(caller, query.organization_id),
  }
  const unfiltered = [search, enabled, role, email_verified, attribute, query.organization_id].every(
    value => value === undefined,
  )
  const { store } = context
  return answerPage(context, {
    name: 'users',
    query,
    scope: within(caller) ?? '',
    fetch: async (after, limit) => {
      const page = { sort, order, after, limit }
      const users =
        values.length > 0
          ? await listByAttributes(store, filter, values, page)
          : await listUsers(store, filter, page)
      const named = await store.read(q => roleNamesOf(q, users))
      return Promise.all(
        named.map(async user => asShown(await findOrganization(store, user.organization_id), user)),
      )
    },
    total: () => {
      if (values.length > 0) return countByAttributes(store, filter, values)
      return unfiltered
        ? store.read(q => countAll(q, 'users', filter.organization_id))
        : countUsers(store, filter)
    },
    keyset: keysetOf(query.sort),
    item: userAnswer,
  })
}

/** Invites a user in the write that creates the user. Returns the link if `delivery` is `link`. */
export type InviteUser = (
  context: Context,
  tx: Transaction,
  user: UserRow,
  delivery: 'mail' | 'link',
  by: ChangedBy,
) => Promise<string | undefined>

const create = async (
  context: Context,
  { caller, body, client_info }: RouteInput<unknown, unknown, CreateUserBody>,
  inviteUser: InviteUser,
) => {
  const { invite, password, ...given } = body
  const { problems } = await context.store.read(q => judgeNew(q, caller, body))
  throwProblems(problems)
  let invitation_url: string | undefined
  const user = await createUser(
    context,
    { ...given, ...(password === undefined ? { password_hash: null } : { password }) },
    byCaller(caller, client_info),
    async (tx, row) => {
      if (invite) invitation_url = await inviteUser(context, tx, row, invite, { caller, client_info })
    },
  )
  return { ...(await context.store.read(q => answerOf(q, user))), ...(invitation_url && { invitation_url }) }
}

/** Returns the admin routes of users. `inviteUser` sends the invitation of a new user. */
export const userRoutes = (context: Context, inviteUser: InviteUser): AdminRoute[] => [
  route({
    id: 'createUser',
    method: 'POST',
    path: '/users',
    permission: 'users:create',
    summary: 'Create a user',
    body: CreateUserBody,
    status: 201,
    answer: CreatedUser,
    errors: [409, 429],
    review: (q, { caller }, good, bad) => judgeNew(q, caller, good, bad),
    handle: input => create(context, input, inviteUser),
  }),
  route({
    id: 'listUsers',
    method: 'GET',
    path: '/users',
    permission: 'users:read',
    summary: 'List users',
    query: ListUsers,
    status: 200,
    answer: UserList,
    handle: ({ caller, query }) => list(context, caller, query),
  }),
  route({
    id: 'getUser',
    method: 'GET',
    path: '/users/:user_id',
    permission: 'users:read',
    summary: 'Get a user',
    status: 200,
    answer: UserAnswer,
    errors: [404],
    read: async (q, { caller, params }) => {
      const user = await getUser(q, caller, params.user_id)
      return answerOf(q, { ...user, roles: await roleNames(q, user.id) })
    },
  }),
  route({
    id: 'updateUser',
    method: 'PUT',
    path: '/users/:user_id',
    permission: 'users:update',
    summary: 'Change the given fields of a user',
    query: ConfirmQuery,
    body: UpdateUser,
    status: 200,
    answer: UserAnswer,
    errors: [404, 409, 429],
    review: (q, { caller, params }, good) => judgeChange(q, params.user_id, good, { caller }),
    handle: async ({ caller, params, query, body, client_info }) => {
      const by = byCaller(caller, client_info, query.confirm)
      const user = await updateUser(context, params.user_id, body, by)
      return context.store.read(q => answerOf(q, user))
    },
  }),
  route({
    id: 'resetUserPassword',
    method: 'POST',
    path: '/users/:user_id/reset-password',
    permission: 'users:update',
    fresh: true,
    summary: 'Set a new password and end all sessions and logins of the user',
    body: ResetPassword,
    status: 204,
    errors: [404, 429],
    review: (q, { caller, params }, good) => judgePassword(q, params.user_id, good.password, { caller }),
    handle: ({ caller, params, body, client_info }) =>
      resetPassword(context, params.user_id, body, byCaller(caller, client_info)),
  }),
  route({
    id: 'deleteUser',
    method: 'DELETE',
    path: '/users/:user_id',
    permission: 'users:delete',
    fresh: true,
    summary:
      'Delete a user, the sessions and tokens of the user, and all events that name the user except the event of the deletion',
    query: ConfirmQuery,
    status: 204,
    errors: [404, 409],
    handle: ({ caller, params, query, client_info }) =>
      deleteUser(context, params.user_id, byCaller(caller, client_info, query.confirm)),
  }),
  route({
    id: 'listAcceptedTerms',
    method: 'GET',
    path: '/users/:user_id/terms',
    permission: 'users:read',
    summary: 'List the versions of the terms that a user has accepted',
    status: 200,
    answer: TermsList,
    errors: [404],
    read: async (q, { caller, params }) => ({
      data: await acceptedTerms(q, (await getUser(q, caller, params.user_id)).id),
    }),
  }),
  route({
    id: 'removeUserPicture',
    method: 'DELETE',
    path: '/users/:user_id/picture',
    permission: 'users:update',
    summary: 'Remove the picture that a user has uploaded',
    status: 204,
    errors: [404],
    handle: ({ caller, params, client_info }) =>
      setPicture(context, params.user_id, undefined, byCaller(caller, client_info)),
  }),
  route({
    id: 'revokeUserSessions',
    method: 'DELETE',
    path: '/users/:user_id/sessions',
    permission: 'sessions:revoke',
    summary: 'Revoke all sessions and logins of a user',
    status: 200,
    answer: RevokedSessions,
    errors: [404],
    handle: async ({ caller, params, client_info }) =>
      revokedAnswer(await revokeUserSessions(context, params.user_id, byCaller(caller, client_info))),
  }),
]
