import { z } from 'zod'
import { normalizeAddress } from '#src/http/client-address.ts'
import { example } from '#src/http/example.ts'
import { idFilter, listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { invalid } from '#src/lib/app-error.ts'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { iso } from '#src/lib/text.ts'
import type { EventRow } from './store.ts'
import { eventTypes } from './types.ts'

const EventType = z
  .enum(eventTypes, 'One of the event types of the documentation, such as user.login.')
  .meta({ id: 'EventType', description: 'Type of an audit event.' })

export const AuditEvent = z
  .object({
    id: z.string().describe('`evt_` and a UUID version 7 (RFC 9562).'),
    type: EventType,
    actor_id: z
      .string()
      .nullable()
      .describe(
        'Id of the user or client that acted; null for the server itself and its command line, and when nobody was authenticated, such as in a failed login.',
      ),
    actor_email: z
      .string()
      .nullable()
      .describe('E-mail address of the acting user at the time of the event; null when no user acted.'),
    target_id: z.string().describe('Id of the changed object.'),
    target_type: z.string().describe('Type of the changed object, such as `user`.'),
    organization_id: z.string().describe('Organization of the changed object.'),
    ip_address: z
      .string()
      .describe('Address that the request came from; empty for the server itself and its command line.'),
    user_agent: z
      .string()
      .describe(
        'User agent that the request came from; empty when the request named none, and for the server itself and its command line.',
      ),
    timestamp: z.iso.datetime().describe('Time of the change (ISO 8601, UTC).'),
    metadata: z
      .record(z.string(), z.unknown())
      .describe(
        'Further facts, which depend on the event type: `fields` names the changed fields; `roles_added` and `roles_removed` name the roles that a change assigns and removes.',
      ),
  })
  .meta({
    id: 'AuditEvent',
    description: 'An immutable record of one change.',
    example: {
      id: 'evt_019c1310-e404-7f02-9b8e-5d07a2c63e91',
      type: 'user.updated',
      actor_id: 'gatehouse-admin',
      actor_email: null,
      target_id: example.user_id,
      target_type: 'user',
      organization_id: example.organization_id,
      ip_address: example.ip_address,
      user_agent: 'curl/8.17.0',
      timestamp: example.time,
      metadata: { fields: ['roles'], roles_added: ['editor'] },
    },
  })
export type AuditEvent = z.output<typeof AuditEvent>

/** Returns an event as the admin API and webhooks show it. */
export const eventAnswer = ({ seq, subject_id, mac, timestamp, ...event }: EventRow) => ({
  ...event,
  timestamp: iso(timestamp),
})

const TIME =
  'An ISO 8601 time with its zone, such as 2026-01-31T08:00:00Z, or a day such as 2026-01-31 (UTC).'

/**
 * Returns the schema of a time in milliseconds. For `from`, a day without a time means the first millisecond
 * of this day. For `to`, it means the last millisecond. If both fields have the same day, they cover that
 * whole day.
 */
const moment = (time_of_day: string) =>
  z
    .union([z.iso.datetime({ offset: true }), z.iso.date()], TIME)
    .transform(text => Date.parse(text.includes('T') ? text : `${text}T${time_of_day}Z`))

const filters = {
  type: EventType.optional().describe('Only events of this type.'),
  actor_id: idFilter.optional().describe('Only events that this user or client caused.'),
  target_id: idFilter.optional().describe('Only events about this object.'),
  ip_address: z
    .string()
    .transform((text, issues) => {
      const address = normalizeAddress(text)
      if (address === undefined) issues.addIssue({ code: 'custom', message: 'An IPv4 or IPv6 address.' })
      return address ?? z.NEVER
    })
    .optional()
    .describe('Only events from this IPv4 or IPv6 address.'),
  organization_id: ofOrganization,
}

export const FollowEvents = z.strictObject(filters)
export type FollowEvents = z.output<typeof FollowEvents>

export const ListEvents = listQuery({
  ...filters,
  from: moment('00:00:00')
    .optional()
    .describe(
      'Only events at this time or later; a day without a time means the beginning of that day (UTC).',
    ),
  to: moment('23:59:59.999')
    .optional()
    .describe('Only events at this time or earlier; a day without a time means the end of that day (UTC).'),
})
export type ListEvents = z.output<typeof ListEvents>

export const EventList = listOf('AuditEventList', AuditEvent)

/** Maximum number of points in an answer: a year of days fits, and a chart needs no more. */
const POINTS = 400
const intervals = { hour: HOUR, day: DAY } as const
/**
 * Milliseconds that the statistics cover by default. Including the current hour or day, the answer has 49 or
 * 31 points, which a chart shows legibly.
 */
const spans = { hour: 2 * DAY, day: 30 * DAY } as const

const count = (text: string) => z.int().describe(text)

const point = {
  start: '2026-01-31T00:00:00.000Z',
  logins: 57,
  failed_logins: 3,
  new_users: 2,
  active_users: 41,
  tokens: 480,
}

const StatisticsPoint = z
  .object({
    start: z.iso.datetime().describe('Beginning of the hour or day (UTC).'),
    logins: count('Logins at clients and at the account pages.'),
    failed_logins: count('Failed logins.'),
    new_users: count('Users who were created.'),
    active_users: count(
      'Users who signed in at a client, or for whom a client refreshed a token, each counted once.',
    ),
    tokens: count('Issued access tokens.'),
  })
  .meta({
    id: 'StatisticsPoint',
    description: 'Counts of one hour or day.',
    example: point,
  })

export const Statistics = z
  .object({
    interval: z.enum(['hour', 'day']).describe('Length of a point.'),
    data: z
      .array(StatisticsPoint)
      .describe('One point for each hour or day, oldest first, including those without events.'),
  })
  .meta({
    id: 'Statistics',
    description: 'Counts over time. Later deletions do not change them.',
    example: { interval: 'day', data: [point] },
  })

export const ReadStatistics = z.strictObject({
  interval: z.enum(['hour', 'day']).default('day').describe('Length of a point.'),
  from: moment('00:00:00')
    .optional()
    .describe('Beginning; by default 30 days before `to`, or 2 days with `interval=hour`.'),
  to: moment('23:59:59.999').optional().describe('End; by default now.'),
  organization_id: ofOrganization,
})

export type ReadStatistics = z.output<typeof ReadStatistics>

/**
 * Returns the beginning of each hour or day from `from` to `to` (ms).
 *
 * @throws AppError 422 when there are no points, or more than 400
 */
export const pointsOf = (
  { interval, from, to }: ReadStatistics,
  now: number,
): { starts: number[]; length: number } => {
  const length = intervals[interval]
  const end = to ?? now
  const first = Math.floor((from ?? end - spans[interval]) / length)
  const points = Math.floor(end / length) - first + 1
  if (points < 1 || points > POINTS)
    throw invalid({
      field: 'from',
      code: 'custom',
      message: `Not after \`to\`, and at most ${POINTS - 1} hours or days before it.`,
    })
  return { length, starts: Array.from({ length: points }, (_, n) => (first + n) * length) }
}
