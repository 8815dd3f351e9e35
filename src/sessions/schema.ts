import { z } from 'zod'
import { example } from '#src/http/example.ts'
import { idFilter, listOf, listQuery, ofOrganization } from '#src/http/list.ts'

const time = z.iso.datetime()

export const SessionAnswer = z
  .object({
    id: z.string().describe('`sess_` and a UUID. The UUID is `sid` in tokens.'),
    user_id: z.string().describe('Id of the user.'),
    username: z.string().describe('User name of the user.'),
    client_id: z.string().describe('Client that the user signed in to.'),
    organization_id: z.string().describe('Organization of the user.'),
    ip_address: z.string().describe('IP address at the start of the session.'),
    user_agent: z.string().describe('User agent at the start of the session.'),
    location: z.string().describe('City and country of the IP address; empty when they are not known.'),
    started_at: time.describe('Time at which the session began (ISO 8601, UTC).'),
    last_active_at: time.describe('Time at which the client last got a token (ISO 8601, UTC).'),
    expires_at: time.describe('Time at which the session ends unless it is extended (ISO 8601, UTC).'),
  })
  .meta({
    id: 'Session',
    description: 'A user at a client.',
    example: {
      id: example.session_id,
      user_id: example.user_id,
      username: 'alice',
      client_id: example.client_id,
      organization_id: example.organization_id,
      ip_address: example.ip_address,
      user_agent: example.user_agent,
      location: '',
      started_at: example.time,
      last_active_at: example.time,
      expires_at: example.later,
    },
  })
export type SessionAnswer = z.output<typeof SessionAnswer>

const filters = {
  user_id: idFilter.optional().describe('Only sessions of this user.'),
  client_id: idFilter.optional().describe('Only sessions at this client.'),
  organization_id: ofOrganization,
}

export const ListSessions = listQuery(filters)
export type ListSessions = z.output<typeof ListSessions>

export const SessionList = listOf('SessionList', SessionAnswer)

/**
 * The call needs at least one filter that is not empty, because a mistake could otherwise sign everyone out.
 */
export const RevokeSessions = z
  .strictObject(filters)
  .refine(
    given => Object.values(given).some(value => value !== undefined),
    'At least one of user_id, client_id and organization_id is required.',
  )

export const RevokedSessions = z
  .object({
    revoked_count: z.int().describe('Number of sessions that ended.'),
    message: z.string().describe('A sentence with the number.'),
  })
  .meta({
    id: 'RevokedSessions',
    description: 'The sessions that ended.',
    example: { revoked_count: 1, message: '1 session was revoked.' },
  })

/** Returns the answer of a revocation: the number of sessions, and a sentence with the number. */
export const revokedAnswer = (revoked_count: number): z.output<typeof RevokedSessions> => ({
  revoked_count,
  message: revoked_count === 1 ? '1 session was revoked.' : `${revoked_count} sessions were revoked.`,
})
