import { z } from 'zod'
import type { Caller, Context } from '#src/context.ts'
import { NEVER } from '#src/delivery/queue.ts'
import { example } from '#src/http/example.ts'
import { answerPage, listOf, listQuery } from '#src/http/list.ts'
import { within } from '#src/http/tenant.ts'
import { iso, isoOrNull } from '#src/lib/text.ts'
import type { LogoutRow } from '#src/sessions/logout-store.ts'
import { countLogouts, listLogouts } from './logout-store.ts'
import { getClient } from './service.ts'

const LogoutItem = z
  .object({
    jti: z.string().describe('`jti` of the logout token. All attempts use the same value.'),
    user_id: z.string().describe('The user whose session has ended.'),
    session_id: z.string().describe('The session that has ended.'),
    status: z
      .enum(['waiting', 'delivered', 'failed'])
      .describe(
        '`failed`: the application refused the logout token (status 400), the logout was not delivered within two days, or `backchannel_logout_uri` was removed from the client.',
      ),
    attempts: z.int().describe('Number of attempts so far.'),
    failure: z
      .string()
      .nullable()
      .describe(
        'Why the last attempt failed, or why Gatehouse gave the logout up. Null before the first failure and after the delivery.',
      ),
    created_at: z
      .string()
      .describe(
        'Time at which Gatehouse ended the session. An expired session is ended shortly after its expiry.',
      ),
    next_attempt_at: z
      .string()
      .nullable()
      .describe(
        'Time of the next attempt. Null when no attempt follows, or while an earlier logout of the client waits for delivery.',
      ),
    done_at: z
      .string()
      .nullable()
      .describe('Time at which Gatehouse delivered the logout or gave it up. Null while the logout waits.'),
  })
  .meta({
    id: 'ClientLogout',
    description: 'A logout that was or will be reported to the application.',
    example: {
      jti: '0b6f1c4e-5f0f-4a55-9c0a-3a1f3f3a8f11',
      user_id: example.user_id,
      session_id: 'sess_019bc1a0-0000-7000-8000-000000000001',
      status: 'waiting',
      attempts: 1,
      failure: 'The application answered 503.',
      created_at: example.time,
      next_attempt_at: example.time,
      done_at: null,
    },
  })

const statusOf = ({ done_at, failure }: LogoutRow) => {
  if (done_at === null) return 'waiting'
  return failure === null ? 'delivered' : 'failed'
}

// The column `next_attempt_at` is `NEVER` for a finished logout, and for a logout that waits for an earlier
// logout of the same client. Only the oldest logout of a client is sent, so an application that is down gets
// one call at a time.
const logoutItem = (row: LogoutRow): z.output<typeof LogoutItem> => ({
  jti: row.jti,
  user_id: row.user_id,
  session_id: row.session_id,
  status: statusOf(row),
  attempts: row.attempts,
  failure: row.failure,
  created_at: iso(row.created_at),
  next_attempt_at: row.next_attempt_at === NEVER ? null : iso(row.next_attempt_at),
  done_at: isoOrNull(row.done_at),
})

export const ListClientLogouts = listQuery({})
export const ClientLogoutList = listOf('ClientLogoutList', LogoutItem)

/**
 * Lists the logouts of a client. Delivered and failed logouts are listed until their deletion some days
 * later.
 *
 * @throws AppError 404 when the client is unknown or of another organization
 */
export const listClientLogouts = async (
  context: Context,
  caller: Caller,
  client_id: string,
  query: z.output<typeof ListClientLogouts>,
) => {
  const client = await context.store.read(q => getClient(q, caller, client_id))
  const { order } = query
  return answerPage(context, {
    name: 'client-logouts',
    query: { ...query, client_id },
    scope: within(caller) ?? '',
    fetch: (after, limit) => context.store.read(q => listLogouts(q, client, { order, after, limit })),
    total: () => context.store.read(q => countLogouts(q, client)),
    keyset: row => [row.created_at, row.jti],
    item: logoutItem,
  })
}
