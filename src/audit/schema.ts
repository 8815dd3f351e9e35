import { z } from 'zod'
import { normalizeAddress } from '#src/http/client-address.ts'
import { idFilter, listOf, listQuery } from '#src/http/list.ts'
import { eventTypes } from './types.ts'

export const AuditEvent = z.object({
  id: z.string(),
  type: z.enum(eventTypes),
  actor_id: z.string().nullable(),
  actor_email: z.string().nullable(),
  target_id: z.string(),
  target_type: z.string(),
  organization_id: z.string(),
  ip_address: z.string(),
  user_agent: z.string(),
  timestamp: z.iso.datetime(),
  metadata: z.record(z.string(), z.unknown()),
})
export type AuditEvent = z.output<typeof AuditEvent>

const TIME =
  'An ISO 8601 time with its zone, such as 2026-01-31T08:00:00Z, or a day such as 2026-01-31 (UTC).'

/**
 * A time in milliseconds. A day without a time means its first (`from`) or last (`to`) millisecond, both
 * inclusive.
 */
const moment = (time_of_day: string) =>
  z
    .union([z.iso.datetime({ offset: true }), z.iso.date()], TIME)
    .transform(text => Date.parse(text.includes('T') ? text : `${text}T${time_of_day}Z`))

export const ListEvents = listQuery({
  type: z.enum(eventTypes, 'One of the event types of the documentation, such as user.login.').optional(),
  actor_id: idFilter.optional(),
  target_id: idFilter.optional(),
  ip_address: z
    .string()
    .transform((text, issues) => {
      const address = normalizeAddress(text)
      if (address === undefined) issues.addIssue({ code: 'custom', message: 'An IPv4 or IPv6 address.' })
      return address ?? z.NEVER
    })
    .optional(),
  organization_id: idFilter.optional(),
  from: moment('00:00:00').optional(),
  to: moment('23:59:59.999').optional(),
})
export type ListEvents = z.output<typeof ListEvents>

export const EventList = listOf(AuditEvent)
