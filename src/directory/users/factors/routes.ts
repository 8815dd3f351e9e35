import { z } from 'zod'
import type { Context } from '#src/context.ts'
import { stored, switched, time } from '#src/directory/fields.ts'
import { getUser, getUserToChange } from '#src/directory/users/change.ts'
import { byCaller } from '#src/directory/users/service.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { isOnlyWayIn, listWaysIn, type WayIn } from '#src/directory/users/ways-in-store.ts'
import { example } from '#src/http/example.ts'
import { type AdminRoute, route, writeAs } from '#src/http/guard.ts'
import { answerPage, listOf, listQuery, pageOf } from '#src/http/list.ts'
import { within } from '#src/http/tenant.ts'
import { conflict, notFound } from '#src/lib/app-error.ts'
import { iso, isoOrNull } from '#src/lib/text.ts'
import type { Transaction } from '#src/storage/store.ts'
import { removeFactor, removeFactors } from './service.ts'
import { listFactors, type Factor as Row } from './store.ts'

const Factor = z
  .object({
    id: stored.id,
    type: z.enum(['totp', 'passkey']).describe('Authenticator app or passkey.'),
    name: z.string().describe('Name of the factor, which the user can change.'),
    created_at: stored.created_at,
    last_used_at: time
      .nullable()
      .describe('Time of the last login with the factor; null before the first login.'),
  })
  .meta({
    id: 'Factor',
    description: 'A second factor of a user.',
    example: {
      id: 'fac_019c1310-e406-7d8b-b1f4-2e6a09c75d34',
      type: 'passkey',
      name: 'Laptop',
      created_at: example.time,
      last_used_at: null,
    },
  })

const factorAnswer = ({ id, type, name, created_at, last_used_at }: Row): z.output<typeof Factor> => ({
  id,
  type,
  name,
  created_at: iso(created_at),
  last_used_at: isoOrNull(last_used_at),
})

const ListFactors = listQuery({})

const RemoveFactors = z.strictObject({
  only_way_in: switched
    .optional()
    .describe(
      '`true` removes the factor even if the user has no other way to sign in. Such a user needs a sign-in link afterwards.',
    ),
})
const LOCKED_OUT =
  'The user has no other way to sign in. Add ?only_way_in=true, and give the user a sign-in link afterwards.'

/**
 * Prevents an administrator from locking a user out by mistake. `factor_id` is the factor to remove. If
 * `factor_id` is undefined, all factors will be removed. Only the removal of passkeys is checked, because an
 * authenticator app alone is not a way to sign in.
 *
 * @throws AppError 409 when the removal would take away the user's last way to sign in and `only_way_in` is
 * not set
 */
const keepWayIn = async (
  tx: Transaction,
  user: UserRow,
  { only_way_in }: z.output<typeof RemoveFactors>,
  factor_id?: string,
): Promise<void> => {
  const isGone = (way: WayIn) => way.by === 'passkey' && (!factor_id || way.factor_id === factor_id)
  if (!only_way_in && isOnlyWayIn(await listWaysIn(tx, user), isGone)) throw conflict(LOCKED_OUT)
}

/**
 * Returns the routes of a user's second factors. Administrators list and remove factors. Only the user adds
 * factors, because this needs the user's device.
 */
export const factorRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'listUserFactors',
    method: 'GET',
    path: '/users/:user_id/factors',
    permission: 'users:read',
    summary: 'List the second factors of a user',
    query: ListFactors,
    status: 200,
    answer: listOf('FactorList', Factor),
    errors: [404],
    handle: async ({ caller, params, query }) => {
      const rows = await context.store.read(async q =>
        listFactors(q, (await getUser(q, caller, params.user_id)).id),
      )
      return answerPage(context, {
        name: `factors:${params.user_id}`,
        query,
        scope: within(caller) ?? '',
        fetch: async (after, limit) => pageOf(rows, query.order, after, limit),
        total: async () => rows.length,
        keyset: ({ id }) => [id],
        item: factorAnswer,
      })
    },
  }),
  route({
    id: 'deleteUserFactor',
    method: 'DELETE',
    path: '/users/:user_id/factors/:factor_id',
    permission: 'users:update',
    fresh: true,
    summary: 'Remove a second factor of a user and end all sessions and logins of the user',
    query: RemoveFactors,
    status: 204,
    errors: [404, 409],
    conflict: LOCKED_OUT,
    handle: ({ caller, params, query, client_info }) =>
      writeAs(context, caller, async tx => {
        const by = byCaller(caller, client_info)
        const user = await getUserToChange(tx, by, params.user_id)
        await keepWayIn(tx, user, query, params.factor_id)
        if (!(await removeFactor(context, tx, user, params.factor_id, by))) throw notFound('The factor')
      }),
  }),
  route({
    id: 'deleteUserFactors',
    method: 'DELETE',
    path: '/users/:user_id/factors',
    permission: 'users:update',
    fresh: true,
    summary:
      'Remove all second factors and recovery codes of a user, and end all sessions and logins of the user',
    query: RemoveFactors,
    status: 204,
    errors: [404, 409],
    conflict: LOCKED_OUT,
    handle: ({ caller, params, query, client_info }) =>
      writeAs(context, caller, async tx => {
        const by = byCaller(caller, client_info)
        const user = await getUserToChange(tx, by, params.user_id)
        await keepWayIn(tx, user, query)
        await removeFactors(context, tx, user, by)
      }),
  }),
]
