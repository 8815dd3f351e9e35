import {
  and,
  asc,
  type Column,
  desc,
  eq,
  gt,
  gte,
  inArray,
  lt,
  lte,
  not,
  or,
  type SQL,
  sql,
} from 'drizzle-orm'
import { COUNT_LIMIT } from '#src/http/count-limit.ts'
import type { Keyset } from '#src/lib/cursor.ts'
import { bareId, isUuid, type OrganizationId } from '#src/lib/ids.ts'
import { cached } from '#src/storage/cache.ts'
import { prepared, type Queries, type Store } from '#src/storage/store.ts'
import type { EventRow } from './store.ts'

/** Filters of the audit log; absent ones match all events. */
export interface EventFilter {
  type?: string | undefined
  actor_id?: string | undefined
  target_id?: string | undefined
  ip_address?: string | undefined
  organization_id?: OrganizationId | undefined
  /** Milliseconds, inclusive. */
  from?: number | undefined
  to?: number | undefined
}

const selectPurges = prepared((q, { purges }) =>
  q
    .select({ id: purges.id })
    .from(purges)
    .where(inArray(purges.kind, ['user', 'organization']))
    .limit(1),
)

/**
 * Excludes events of deleted organizations and events that name a deleted user, until a purge has removed
 * them. The event `user.deleted` stays. The condition is undefined while no purge is pending.
 */
export const visibleEvents = async (q: Queries): Promise<SQL | undefined> => {
  if ((await selectPurges(q, {})).length === 0) return undefined
  const { events, purges } = q.tables
  const gone = (column: Column, kind: 'user' | 'organization') =>
    sql`coalesce(${column}, '') IN ${q.select({ id: purges.id }).from(purges).where(eq(purges.kind, kind))}`
  return and(
    not(gone(events.organization_id, 'organization')),
    not(gone(events.subject_id, 'user')),
    or(not(gone(events.actor_id, 'user')), sql`${events.actor_id} = ${events.target_id}`),
    or(not(gone(events.target_id, 'user')), eq(events.type, 'user.deleted')),
  )
}

type Equal = 'type' | 'actor_id' | 'target_id' | 'ip_address' | 'organization_id'

/** The leading columns of each index; the timestamp follows them. */
const indexes: Equal[][] = [
  ['target_id'],
  ['actor_id'],
  ['organization_id', 'type'],
  ['type'],
  ['ip_address'],
  ['organization_id'],
]

/** Number of matches that `sample` skips: skipping 1,000 costs less than reading by the wrong index. */
const SAMPLE = 1000

const between = ({ tables: { events } }: Queries, { from, to }: EventFilter): SQL | undefined =>
  and(
    from === undefined ? undefined : gte(events.timestamp, from),
    to === undefined ? undefined : lte(events.timestamp, to),
  )

const given = (filter: EventFilter): Equal[] =>
  (['type', 'actor_id', 'target_id', 'ip_address', 'organization_id'] as const).filter(
    name => filter[name] !== undefined,
  )

const equal = ({ tables: { events } }: Queries, filter: EventFilter, names: Equal[]): SQL | undefined =>
  and(...names.map(name => eq(events[name], filter[name] ?? '')))

/**
 * Time of the match that has SAMPLE newer matches; -Infinity without such a match. An older time means fewer
 * matches.
 */
const sample = async (q: Queries, filter: EventFilter, index: Equal[]): Promise<number> => {
  const { events } = q.tables
  const [event] = await q
    .select({ timestamp: events.timestamp })
    .from(events)
    .where(and(equal(q, filter, index), between(q, filter)))
    .orderBy(desc(events.timestamp), desc(events.seq))
    .limit(1)
    .offset(SAMPLE)
  return event?.timestamp ?? Number.NEGATIVE_INFINITY
}

/**
 * Returns the index whose part of the filter matches the fewest events. Without an index for the whole filter
 * the other parts are compared event by event, so this choice decides how much a page reads.
 */
const rarest = async (q: Queries, filter: EventFilter): Promise<Equal[]> => {
  const names = given(filter)
  const usable = indexes.filter(index => index.every(name => names.includes(name)))
  const exact = usable.find(index => index.length === names.length)
  if (exact) return exact
  let best: Equal[] = []
  let longest = Number.POSITIVE_INFINITY
  for (const index of usable) {
    const timestamp = await sample(q, filter, index)
    if (timestamp < longest) [best, longest] = [index, timestamp]
  }
  return best
}

/** Builds the condition. `coalesce` hides all columns except those of the chosen index from the planner. */
const matching = async (q: Queries, filter: EventFilter): Promise<SQL | undefined> => {
  const { events } = q.tables
  const index = await rarest(q, filter)
  const others = given(filter).filter(name => !index.includes(name))
  return and(
    equal(q, filter, index),
    between(q, filter),
    ...others.map(name => sql`coalesce(${events[name]}, '') = ${filter[name]}`),
    await visibleEvents(q),
  )
}

/** Returns the keyset from which the page after this event continues. */
export const eventKeyset = (event: EventRow): Keyset => [event.timestamp, event.seq]

/**
 * Returns events by time; events of the same millisecond are in the order of writing. A page has no bound on
 * the events that it reads: for a filter without an index of its own, it reads the events of the chosen index
 * until `limit` of them match. With a bound, a page could have fewer than `limit` events although more events
 * follow. `listSignIns` (account/store.ts) has such a bound. PostgreSQL ends the statement after
 * `STATEMENT_TIMEOUT`; SQLite has no such limit.
 */
export const listEvents = async (
  q: Queries,
  filter: EventFilter,
  page: { order: 'asc' | 'desc'; after: Keyset | undefined; limit: number },
): Promise<EventRow[]> => {
  const { events } = q.tables
  const [direction, beyond] = page.order === 'asc' ? [asc, gt] : [desc, lt]
  const [timestamp, seq] = page.after ?? []
  const next = page.after && beyond(sql`(${events.timestamp}, ${events.seq})`, sql`(${timestamp}, ${seq})`)
  return q
    .select()
    .from(events)
    .where(and(await matching(q, filter), next))
    .orderBy(direction(events.timestamp), direction(events.seq))
    .limit(page.limit)
}

/** Counts events without a filter, from counters that triggers maintain. */
export const countAllEvents = async (
  q: Queries,
  organization_id: OrganizationId | undefined,
): Promise<number> => {
  const { counters } = q.tables
  const own = organization_id && eq(counters.organization_id, organization_id)
  const [row] = await q
    .select({ total: sql<number>`coalesce(sum(${counters.total}), 0)`.mapWith(Number) })
    .from(counters)
    .where(and(eq(counters.kind, 'events'), own))
  return row?.total ?? 0
}

/** Filters that match more than 10,000 events. They need no new count until events are removed or hidden. */
const beyondCount = cached('events', async () => new Set<string>())
/** Maximum number of these filters in memory. */
const MAX_BEYOND = 1000

/** Returns the count: exact up to 10,000, and 10,001 above. */
export const countEvents = async (store: Store, filter: EventFilter): Promise<number> => {
  const many = await beyondCount(store, '')
  const key = JSON.stringify(filter)
  if (many.has(key)) return COUNT_LIMIT + 1
  const total = await store.read(async q => {
    const { events } = q.tables
    const found = q
      .select({ seq: events.seq })
      .from(events)
      .where(await matching(q, filter))
      .limit(COUNT_LIMIT + 1)
    return q.$count(sql`${found} AS found`)
  })
  if (total > COUNT_LIMIT && many.size < MAX_BEYOND) many.add(key)
  return total
}

/**
 * Returns the milliseconds in a UUIDv7 id, -1 for an id without a UUID:
 * https://www.rfc-editor.org/rfc/rfc9562#section-5.7
 */
const timeOf = (id: string): number =>
  isUuid(bareId(id)) ? Number.parseInt(bareId(id).replace('-', '').slice(0, 12), 16) : -1

/**
 * Milliseconds by which the time in an id may be later than that of its event. After 2,048 to 4,096 ids in
 * one millisecond the runtime uses the next millisecond, so 100 ms suffice for 200,000 ids made at once.
 */
const AHEAD = 100

/** Returns an event of the organization; of any organization when `organization_id` is undefined. */
export const findEvent = async (
  q: Queries,
  organization_id: OrganizationId | undefined,
  id: string,
): Promise<EventRow | undefined> => {
  const { events } = q.tables
  const [event] = await q
    .select()
    .from(events)
    .where(
      and(
        gte(events.timestamp, timeOf(id) - AHEAD),
        lte(events.timestamp, timeOf(id)),
        sql`${events.id} = ${id}`,
        organization_id && eq(events.organization_id, organization_id),
        await visibleEvents(q),
      ),
    )
  return event
}
