import { z } from 'zod'
import { idFilter, listOf, listQuery } from '#src/http/list.ts'

const time = z.iso.datetime()

export const SessionAnswer = z.object({
  id: z.string(),
  user_id: z.string(),
  username: z.string(),
  client_id: z.string(),
  organization_id: z.string(),
  ip_address: z.string(),
  user_agent: z.string(),
  location: z.string(),
  started_at: time,
  last_active_at: time,
  expires_at: time,
})
export type SessionAnswer = z.output<typeof SessionAnswer>

const filters = {
  user_id: idFilter.optional(),
  client_id: idFilter.optional(),
  organization_id: idFilter.optional(),
}

export const ListSessions = listQuery(filters)
export type ListSessions = z.output<typeof ListSessions>

export const SessionList = listOf(SessionAnswer)

export const RevokeSessions = z
  .strictObject(filters)
  .refine(
    given => Object.values(given).some(value => value !== undefined),
    'At least one of user_id, client_id and organization_id is required.',
  )

export const RevokedSessions = z.object({ revoked_count: z.int(), message: z.string() })

export const revokedAnswer = (revoked_count: number): z.output<typeof RevokedSessions> => ({
  revoked_count,
  message: revoked_count === 1 ? '1 session was revoked.' : `${revoked_count} sessions were revoked.`,
})
