import type { Caller, Context } from '#src/context.ts'
import { revokeAllSessions } from '#src/directory/users/revocation.ts'
import { type AdminRoute, route, writeAs } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import { notFound } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { UserId } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import {
  countSessions,
  findActiveSession,
  type ListedSession,
  listSessions,
} from '#src/sessions/list-store.ts'
import {
  ListSessions,
  RevokedSessions,
  RevokeSessions,
  revokedAnswer,
  type SessionAnswer,
  SessionList,
} from '#src/sessions/schema.ts'
import { type RevokedBy, revokeSession } from '#src/sessions/service.ts'
import { COUNT_LIMIT } from '#src/storage/counts.ts'

const sessionAnswer = (session: ListedSession): SessionAnswer => ({
  id: session.id,
  user_id: session.user_id,
  username: session.username,
  client_id: session.client_id,
  organization_id: session.organization_id,
  ip_address: session.ip_address,
  user_agent: session.user_agent,
  location: session.location,
  started_at: iso(session.started_at),
  last_active_at: iso(session.last_active_at),
  expires_at: iso(session.expires_at),
})

const byAdmin = ({ id, email }: Caller, client_info: ClientInfo): RevokedBy => ({
  actor: { id, email },
  client_info,
  reason: 'admin',
})

const list = (context: Context, caller: Caller, query: ListSessions) => {
  const { limit, cursor, order, organization_id, ...asked } = query
  const filter = {
    user_id: asked.user_id as UserId | undefined,
    client_id: asked.client_id,
    organization_id: organization_id === undefined ? undefined : scopeOf(caller, organization_id),
    within: within(caller),
    now: context.clock.now(),
  }
  return answerPage(context, {
    name: 'sessions',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) =>
      listSessions(context.store, { ...filter, order, after: after?.[0] as string | undefined, limit }),
    total: () => countSessions(context.store, filter, COUNT_LIMIT),
    keyset: session => [session.id],
    item: sessionAnswer,
  })
}

/** Returns the admin routes of sessions. */
export const sessionRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'listSessions',
    method: 'GET',
    path: '/sessions',
    permission: 'sessions:read',
    summary: 'List active sessions',
    query: ListSessions,
    status: 200,
    answer: SessionList,
    handle: ({ caller, query }) => list(context, caller, query),
  }),
  route({
    id: 'revokeSession',
    method: 'DELETE',
    path: '/sessions/:session_id',
    permission: 'sessions:revoke',
    summary: 'Revoke a session and end its login; Gatehouse refuses the tokens of the session at once',
    status: 204,
    errors: [404],
    handle: ({ caller, params, client_info }) =>
      writeAs(context, caller, async tx => {
        const session = await findActiveSession(tx, {
          session_id: params.session_id,
          organization_id: within(caller),
          now: context.clock.now(),
        })
        if (!session) throw notFound('The session')
        await revokeSession(context, tx, session, byAdmin(caller, client_info))
      }),
  }),
  route({
    id: 'revokeSessions',
    method: 'DELETE',
    path: '/sessions',
    permission: 'sessions:revoke',
    fresh: true,
    summary: 'Revoke all sessions that match every filter; at least one filter is required',
    query: RevokeSessions,
    status: 200,
    answer: RevokedSessions,
    handle: async ({ caller, query, client_info }) => {
      const filter = {
        user_id: query.user_id as UserId | undefined,
        client_id: query.client_id,
        // A session belongs to the organization of its user. A filter with an id from another organization
        // therefore matches nothing.
        organization_id: scopeOf(caller, query.organization_id),
      }
      return revokedAnswer(
        await revokeAllSessions(context, filter, { ...byAdmin(caller, client_info), caller }),
      )
    },
  }),
]
