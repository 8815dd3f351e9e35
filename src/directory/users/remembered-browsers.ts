import { z } from 'zod'
import type { Context, Core } from '#src/context.ts'
import { stored, time } from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { type AdminRoute, route, writeAs } from '#src/http/guard.ts'
import { answerPage, listOf, listQuery, pageOf } from '#src/http/list.ts'
import { within } from '#src/http/tenant.ts'
import { notFound } from '#src/lib/app-error.ts'
import { iso } from '#src/lib/text.ts'
import {
  listRemembered,
  type RememberedBrowser as Row,
  removeRemembered,
} from '#src/sessions/remembered-store.ts'
import type { Transaction } from '#src/storage/store.ts'
import { getUser, getUserToChange, type UserChangedBy } from './change.ts'
import { recordUser } from './record.ts'
import { byCaller } from './service.ts'
import type { UserRow } from './store.ts'

/**
 * Forgets the remembered browser `id` of a user. Without `id`, forgets all remembered browsers of the user.
 * Records an event for each forgotten browser, and returns the number of forgotten browsers.
 */
export const forgetBrowsers = async (
  context: Core,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'organization_id'>,
  by: Pick<UserChangedBy, 'actor' | 'client_info'>,
  id?: string,
): Promise<number> => {
  const forgotten = await removeRemembered(tx, user.id, id)
  for (const { id: browser_id } of forgotten)
    await recordUser(context, tx, by, 'user.browser_forgotten', user, { browser_id })
  return forgotten.length
}

const RememberedBrowser = z
  .object({
    id: stored.id,
    ip_address: z.string().describe('IP address from which the user chose to remember the browser.'),
    user_agent: z.string().describe('`User-Agent` of the browser.'),
    created_at: stored.created_at,
    expires_at: time.describe(
      'Stored time from which the second factor is required again. If `remember_browser_days` has been lowered since `created_at`, the second factor is required as soon as the new number of days has passed since `created_at`.',
    ),
  })
  .meta({
    id: 'RememberedBrowser',
    description:
      'A browser in which a login of the user needs no second factor. The description of the setting `remember_browser_days` lists the exceptions.',
    example: {
      id: 'brw_019c1310-e406-7d8b-b1f4-2e6a09c75d35',
      ip_address: '203.0.113.7',
      user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
      created_at: example.time,
      expires_at: '2026-02-14T08:00:00.000Z',
    },
  })

const browserAnswer = ({
  id,
  ip_address,
  user_agent,
  created_at,
  expires_at,
}: Row): z.output<typeof RememberedBrowser> => ({
  id,
  ip_address,
  user_agent,
  created_at: iso(created_at),
  expires_at: iso(expires_at),
})

/**
 * Returns the routes of a user's remembered browsers. Administrators can list and forget browsers. Only the
 * user can add a browser, because the browser keeps the secret in a cookie.
 */
export const rememberedBrowserRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'listRememberedBrowsers',
    method: 'GET',
    path: '/users/:user_id/remembered-browsers',
    permission: 'users:read',
    summary: 'List the browsers in which a user needs no second factor',
    query: listQuery({}),
    status: 200,
    answer: listOf('RememberedBrowserList', RememberedBrowser),
    errors: [404],
    handle: async ({ caller, params, query }) => {
      const now = context.clock.now()
      const rows = await context.store.read(async q =>
        listRemembered(q, (await getUser(q, caller, params.user_id)).id, now),
      )
      return answerPage(context, {
        name: `remembered-browsers:${params.user_id}`,
        query,
        scope: within(caller) ?? '',
        fetch: async (after, limit) => pageOf(rows.toReversed(), query.order, after, limit),
        total: async () => rows.length,
        keyset: ({ id }) => [id],
        item: browserAnswer,
      })
    },
  }),
  route({
    id: 'deleteRememberedBrowser',
    method: 'DELETE',
    path: '/users/:user_id/remembered-browsers/:browser_id',
    permission: 'users:update',
    summary: 'Forget a browser, in which the user then needs the second factor again',
    status: 204,
    errors: [404],
    handle: ({ caller, params, client_info }) =>
      writeAs(context, caller, async tx => {
        const by = byCaller(caller, client_info)
        const user = await getUserToChange(tx, by, params.user_id)
        if ((await forgetBrowsers(context, tx, user, by, params.browser_id)) === 0)
          throw notFound('The remembered browser')
      }),
  }),
  route({
    id: 'deleteRememberedBrowsers',
    method: 'DELETE',
    path: '/users/:user_id/remembered-browsers',
    permission: 'users:update',
    summary: 'Forget all remembered browsers of a user',
    status: 204,
    errors: [404],
    handle: ({ caller, params, client_info }) =>
      writeAs(context, caller, async tx => {
        const by = byCaller(caller, client_info)
        await forgetBrowsers(context, tx, await getUserToChange(tx, by, params.user_id), by)
      }),
  }),
]
