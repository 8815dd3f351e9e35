import type { Caller, Context } from '#src/context.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import { notFound } from '#src/lib/app-error.ts'
import { iso } from '#src/lib/text.ts'
import { countAll } from '#src/storage/counts.ts'
import { followEvents } from './event-streams.ts'
import { countEvents, eventKeyset, findEvent, listEvents } from './list-store.ts'
import {
  AuditEvent,
  EventList,
  eventAnswer,
  FollowEvents,
  ListEvents,
  pointsOf,
  ReadStatistics,
  Statistics,
} from './schema.ts'
import { readCounts } from './statistics-store.ts'

/**
 * Counts of an hour or day without events. The answer includes these hours and days, so that a chart has no
 * gaps.
 */
const NOTHING = { logins: 0, failed_logins: 0, new_users: 0, active_users: 0, tokens: 0 }

const list = (context: Context, caller: Caller, query: ListEvents) => {
  const { limit, cursor, order, ...asked } = query
  const filter = { ...asked, organization_id: scopeOf(caller, asked.organization_id) }
  const filtered = Object.values(asked).some(value => value !== undefined)
  return answerPage(context, {
    name: 'events',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) => listEvents(context.store, filter, { order, after, limit }),
    total: () =>
      filtered
        ? countEvents(context.store, filter)
        : context.store.read(q => countAll(q, 'events', filter.organization_id)),
    keyset: eventKeyset,
    item: eventAnswer,
  })
}

const statistics = async (context: Context, caller: Caller, query: ReadStatistics) => {
  const { interval } = query
  const { starts, length } = pointsOf(query, context.clock.now())
  const [first = 0, last = 0] = [starts[0], starts.at(-1)]
  const organization_id = scopeOf(caller, query.organization_id) ?? ''
  const counts = await context.store.read(q =>
    readCounts(q, organization_id, [first, last + length - 1], length),
  )
  const found = new Map(counts.map(({ start, ...point }) => [start, point]))
  const data = starts.map(start => ({ start: iso(start), ...(found.get(start) ?? NOTHING) }))
  return { interval, data }
}

/** Returns the admin routes of the audit log. */
export const eventRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'listEvents',
    method: 'GET',
    path: '/events',
    permission: 'events:read',
    summary: 'List audit events',
    query: ListEvents,
    status: 200,
    answer: EventList,
    handle: ({ caller, query }) => list(context, caller, query),
  }),
  route({
    id: 'followEvents',
    method: 'GET',
    path: '/events/stream',
    permission: 'events:read',
    summary: 'Follow the audit log: each new event as a server-sent event',
    stream: true,
    query: FollowEvents,
    status: 200,
    answer: AuditEvent,
    errors: [429],
    handle: ({ caller, query }) => followEvents(context, caller, query),
  }),
  route({
    id: 'getEvent',
    method: 'GET',
    path: '/events/:event_id',
    permission: 'events:read',
    summary: 'Get an audit event',
    status: 200,
    answer: AuditEvent,
    errors: [404],
    handle: async ({ caller, params }) => {
      const event = await context.store.read(q => findEvent(q, within(caller), params.event_id))
      if (!event) throw notFound('The event')
      return eventAnswer(event)
    },
  }),
  route({
    id: 'getStatistics',
    method: 'GET',
    path: '/statistics',
    permission: 'events:read',
    summary: 'Count logins, users and tokens over time',
    query: ReadStatistics,
    status: 200,
    answer: Statistics,
    handle: ({ caller, query }) => statistics(context, caller, query),
  }),
]
