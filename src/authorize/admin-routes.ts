import { z } from 'zod'
import type { Context } from '#src/context.ts'
import { count, time } from '#src/directory/fields.ts'
import { getUser } from '#src/directory/users/change.ts'
import { example } from '#src/http/example.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import type { UserId } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import { listUserSessions, MAX_LISTED } from '#src/sessions/list-store.ts'
import type { Queries } from '#src/storage/store.ts'
import { listGrants } from './consent-store.ts'

const UserApplication = z
  .object({
    client_id: z.string().describe('Client that the user has used.'),
    name: z.string().describe('Name of the client.'),
    scopes: z
      .array(z.string())
      .describe(
        'Scopes that the user has consented to. A scope of an API is `API_ID/SCOPE`. An `API_ID` alone allows tokens for the API.',
      ),
    granted_at: time
      .nullable()
      .describe('Time of the first consent; null when none was needed or asked for.'),
    sessions: count.describe(
      `Number of active sessions at the client, among the user’s ${MAX_LISTED} newest sessions.`,
    ),
    last_active_at: time
      .nullable()
      .describe('Time of the latest use of one of these sessions; null without sessions.'),
  })
  .meta({
    id: 'UserApplication',
    description: 'A client to which a user has consented or at which the user has sessions.',
    example: {
      client_id: example.client_id,
      name: 'Shop',
      scopes: ['openid', 'profile'],
      granted_at: example.time,
      sessions: 1,
      last_active_at: example.time,
    },
  })
type UserApplication = z.output<typeof UserApplication>

const UserApplications = z
  .object({
    data: z
      .array(UserApplication)
      .describe('Clients with consent, the latest consent first; then clients that have only sessions.'),
  })
  .meta({
    id: 'UserApplications',
    description: 'Clients to which a user has consented or at which the user has sessions.',
    example: { data: [] },
  })

const applicationsOf = async (q: Queries, user_id: UserId, now: number): Promise<UserApplication[]> => {
  const grants = await listGrants(q, user_id)
  const sessions = Map.groupBy(await listUserSessions(q, user_id, now), ({ client_id }) => client_id)
  const granted = grants.map(({ client_id, client_name, scopes, created_at }) => ({
    client_id,
    name: client_name,
    scopes: [...scopes],
    granted_at: iso(created_at),
  }))
  const known = new Set(grants.map(({ client_id }) => client_id))
  const others = [...sessions].flatMap(([client_id, [session]]) =>
    session && !known.has(client_id)
      ? { client_id, name: session.client_name, scopes: [], granted_at: null }
      : [],
  )
  return [...granted, ...others].map(application => {
    const own = sessions.get(application.client_id) ?? []
    const latest = Math.max(...own.map(({ last_active_at }) => last_active_at))
    return {
      ...application,
      sessions: own.length,
      last_active_at: own.length > 0 ? iso(latest) : null,
    }
  })
}

/** Returns the route that shows administrators which clients a user has used. */
export const userApplicationRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'listUserApplications',
    method: 'GET',
    path: '/users/:user_id/applications',
    permission: 'sessions:read',
    summary: 'List the clients to which a user has consented or at which the user has sessions',
    status: 200,
    answer: UserApplications,
    errors: [404],
    read: async (q, { caller, params }) => {
      const { id } = await getUser(q, caller, params.user_id)
      return { data: await applicationsOf(q, id, context.clock.now()) }
    },
  }),
]
