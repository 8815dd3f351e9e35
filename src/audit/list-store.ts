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
import type { Keyset } from '#src/lib/cursor.ts'
import { bareId, isUuid, type OrganizationId } from '#src/lib/ids.ts'
import { cached } from '#src/storage/cache.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import { inSlices, SLICE } from '#src/storage/slices.ts'
import { prepared, type Queries, type Store } from '#src/storage/store.ts'
import type { EventRow } from './store.ts'

/** Filters of the audit log. An absent filter matches all events. */
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
 * Returns a condition that excludes the events which a pending purge will remove: events of deleted
 * organizations, and events whose actor, target or subject is a deleted user. The event `user.deleted` of
 * this user stays. Returns undefined while no such purge is pending.
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

/**
 * Number of matches that `sample` skips. Skipping 1,000 matches costs less than reading by the wrong index.
 */
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
 * Returns the time of the match that has SAMPLE newer matches. Returns -Infinity when no match has SAMPLE
 * newer matches. An older time means fewer matches.
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
 * Returns the index through which a page reads the fewest events. If no index covers the whole filter, the
 * page reads the events that match the covered part. It compares each of these events with the other part of
 * the filter.
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

/**
 * Returns the condition that is compared event by event. Returns undefined when the index covers the whole
 * filter and no purge is pending. `coalesce` hides the compared columns from the planner, which would
 * otherwise use their indexes.
 */
const comparison = async (q: Queries, filter: EventFilter, index: Equal[]): Promise<SQL | undefined> => {
  const { events } = q.tables
  const others = given(filter).filter(name => !index.includes(name))
  return and(
    ...others.map(name => sql`coalesce(${events[name]}, '') = ${filter[name]}`),
    await visibleEvents(q),
  )
}

/** Returns the keyset from which the page after this event continues. */
export const eventKeyset = ({ timestamp, seq }: Pick<EventRow, 'timestamp' | 'seq'>): Keyset => [
  timestamp,
  seq,
]

interface Start {
  order: 'asc' | 'desc'
  /** The event after which to start. */
  after?: Keyset | undefined
}

/**
 * Calls `read` with the condition of each slice of the matching events, until `read` returns true or no slice
 * is left. Other requests run between two slices. If no condition is compared event by event (`comparison`),
 * all events are one slice.
 */
const readSlices = async (
  store: Store,
  filter: EventFilter,
  { order, after }: Start,
  read: (q: Queries, condition: SQL | undefined) => Promise<boolean>,
): Promise<void> => {
  const [direction, beyond, upTo] = order === 'asc' ? [asc, gt, lte] : [desc, lt, gte]
  let index: Equal[] | undefined
  await inSlices(after, from =>
    store.read(async q => {
      const { events } = q.tables
      const place = sql`(${events.timestamp}, ${events.seq})`
      index ??= await rarest(q, filter)
      const compared = await comparison(q, filter, index)
      const found = and(
        equal(q, filter, index),
        between(q, filter),
        from && beyond(place, sql`(${from[0]}, ${from[1]})`),
      )
      const [last] = compared
        ? await q
            .select({ timestamp: events.timestamp, seq: events.seq })
            .from(events)
            .where(found)
            .orderBy(direction(events.timestamp), direction(events.seq))
            .limit(1)
            .offset(SLICE - 1)
        : []
      const end = last && eventKeyset(last)
      const isDone = await read(q, and(found, end && upTo(place, sql`(${end[0]}, ${end[1]})`), compared))
      return isDone ? undefined : end
    }),
  )
}

/** Returns events by time; events of the same millisecond are in the order of writing. */
export const listEvents = async (
  store: Store,
  filter: EventFilter,
  { limit, ...start }: Start & { limit: number },
): Promise<EventRow[]> => {
  const direction = start.order === 'asc' ? asc : desc
  const rows: EventRow[] = []
  await readSlices(store, filter, start, async (q, condition) => {
    const { events } = q.tables
    const more = await q
      .select()
      .from(events)
      .where(condition)
      .orderBy(direction(events.timestamp), direction(events.seq))
      .limit(limit - rows.length)
    return rows.push(...more) === limit
  })
  return rows
}

/**
 * Filters that match more than 10,000 events. Their matches are not counted again until events are removed
 * or hidden.
 */
const beyondCount = cached('events', async () => new Set<string>())
/** Maximum number of filters in `beyondCount`. */
const MAX_BEYOND = 1000

/** Returns the exact count up to 10,000, and 10,001 for any larger count. */
export const countEvents = async (store: Store, filter: EventFilter): Promise<number> => {
  const many = await beyondCount(store, '')
  const key = JSON.stringify(filter)
  if (many.has(key)) return COUNT_LIMIT + 1
  let total = 0
  await readSlices(store, filter, { order: 'desc' }, async (q, condition) => {
    const { events } = q.tables
    const found = q.select({ seq: events.seq }).from(events).where(condition)
    total += await countUpTo(q, found, COUNT_LIMIT + 1 - total)
    return total > COUNT_LIMIT
  })
  if (total > COUNT_LIMIT && many.size < MAX_BEYOND) many.add(key)
  return total
}

/**
 * Returns the time in a UUIDv7 id in milliseconds. Returns -1 for an id without a UUID:
 * https://www.rfc-editor.org/rfc/rfc9562#section-5.7
 */
const timeOf = (id: string): number =>
  isUuid(bareId(id)) ? Number.parseInt(bareId(id).replace('-', '').slice(0, 12), 16) : -1

/**
 * Maximum milliseconds by which the time in an id is later than the timestamp of the event.
 * `Bun.randomUUIDv7` makes 2,048 to 4,096 ids with one millisecond. Further ids get the next millisecond, so
 * 100 ms suffice for 200,000 ids made at once.
 */
const AHEAD = 100

/** Returns an event by its id. If `organization_id` is given, the event must belong to this organization. */
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
