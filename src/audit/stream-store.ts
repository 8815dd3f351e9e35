import { type AnyColumn, and, asc, desc, eq, gt, inArray, lt, lte, sql } from 'drizzle-orm'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { Queries, Store } from '#src/storage/store.ts'
import { visibleEvents } from './list-store.ts'
import type { EventRow } from './store.ts'

/**
 * The horizon: every event that is stored from now on has a larger `seq`. `next.seq` replaces `seq` when all
 * transactions with an id below `next.before` have ended.
 */
interface Horizon {
  seq: number
  next?: { seq: number; before: bigint } | undefined
}

/** Key of the horizon among the caches of a store. */
const HORIZON = { name: 'horizon' }

const horizonOf = ({ caches }: Store): Horizon => {
  const known = caches.get(HORIZON) as Horizon | undefined
  if (known) return known
  const horizon: Horizon = { seq: 0 }
  caches.set(HORIZON, horizon)
  return horizon
}

/** Returns the largest `seq` that is stored. Returns 0 when no event is stored. */
export const lastSeq = async (q: Queries): Promise<number> => {
  const { events } = q.tables
  const [row] = await q
    .select({ seq: sql<number>`coalesce(max(${events.seq}), 0)`.mapWith(Number) })
    .from(events)
  return row?.seq ?? 0
}

/** The last event that a reader has read. `id` is a result of {@link lastId}. */
export interface Seen {
  seq: number
  id: string
}

/** Returns the event with the largest `seq`, or with the largest one up to `most`. */
export const newestEvent = async (q: Queries, most?: number): Promise<Seen | undefined> => {
  const { events } = q.tables
  const [row] = await q
    .select({ seq: events.seq, id: events.id })
    .from(events)
    .where(most === undefined ? undefined : lte(events.seq, most))
    .orderBy(desc(events.seq))
    .limit(1)
  return row
}

/**
 * Returns the id of the last event up to `seq`. Returns '' when there is no such event. A reader compares the
 * id with an earlier result for the same `seq`. SQLite may give the `seq` of a removed event to a new event,
 * and PostgreSQL that of an event that was lost in a failover, but the new event has another id.
 */
export const lastId = async (store: Store, seq: number): Promise<string> =>
  (await store.read(q => newestEvent(q, seq)))?.id ?? ''

/** Returns the last settled event: see {@link settledSeq}. */
export const lastSettled = async (store: Store): Promise<Seen> => {
  const seq = await settledSeq(store)
  return { seq, id: await lastId(store, seq) }
}

/** True if the event `seen` was removed. Reads nothing if `newest` has the same `seq`, which is usual. */
export const wasRemoved = async (store: Store, seen: Seen, newest: Seen): Promise<boolean> =>
  seen.id !== (seen.seq === newest.seq ? newest.id : await lastId(store, seen.seq))

/**
 * Returns the `seq` of the last event that was created before the event with this id. Returns 0 when there is
 * no earlier event. Ids sort by creation, unless the clock was set back meanwhile. The search goes through
 * all newer events. These are few, because the caller has read events a moment ago.
 */
export const seqBeforeId = async (q: Queries, id: string): Promise<number> => {
  const { events } = q.tables
  const [row] = await q
    .select({ seq: events.seq })
    .from(events)
    .where(sql`${events.id} < ${id}`)
    .orderBy(desc(events.seq))
    .limit(1)
  return row?.seq ?? 0
}

/**
 * Returns the `seq` up to which all events are known: no open transaction will add an event with a smaller
 * `seq`. Readers of {@link eventsUpTo} read up to this `seq`, so they skip no event.
 *
 * On PostgreSQL a trigger gives a transaction its id before its first `seq`. An id that is taken after the
 * last `seq` was read is therefore larger than the ids of all transactions that have a `seq` up to this one.
 * These transactions have ended when the `xmin` of a snapshot has reached that id. The `xmax` of a snapshot
 * cannot replace that id: it follows the last *ended* transaction, and an open one can have a larger id. If
 * no event is new, no id is taken, so that an idle server uses up no ids.
 *
 * When the largest `seq` has fallen, a standby without the newest events was promoted, and it gives their
 * `seq` to new events. The horizon then starts again at 0.
 * https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-SNAPSHOT
 */
export const settledSeq = async (store: Store): Promise<number> => {
  const horizon = horizonOf(store)
  // Another call can raise the horizon during the read, so the earlier value is compared.
  const known = (horizon.next ?? horizon).seq
  const seq = await store.read(lastSeq)
  if (store.engine === 'sqlite') return seq
  if (seq < known) Object.assign(horizon, { seq: 0, next: undefined })
  if (seq === horizon.seq) return seq
  const [row] = await store.read(q =>
    q
      .select({
        id: sql<bigint>`pg_current_xact_id()::text`.mapWith(BigInt),
        xmin: sql<bigint>`pg_snapshot_xmin(pg_current_snapshot())::text`.mapWith(BigInt),
      })
      .from(sql`(VALUES (1)) AS one`),
  )
  if (!row) return horizon.seq
  const { id, xmin } = row
  if (horizon.next && xmin >= horizon.next.before) {
    horizon.seq = horizon.next.seq
    horizon.next = undefined
  }
  // The snapshot is taken before the id. When `xmin` equals the id, all earlier transactions have ended.
  if (xmin === id) horizon.seq = seq
  else horizon.next ??= { seq, before: id }
  return horizon.seq
}

/**
 * Returns true when events from before `time` are not settled: a transaction that began before them is still
 * open. This transaction can belong to any database of the PostgreSQL server.
 */
export const areEventsHeld = async (q: Queries, time: number): Promise<boolean> => {
  if (q.engine === 'sqlite') return false
  const { events } = q.tables
  // The column `xmin` has the id of the transaction that stored the event. `age` compares ids of 32 bits.
  const [row] = await q
    .select({
      held: sql<boolean>`age(${events}.xmin) < age(pg_snapshot_xmin(pg_current_snapshot())::xid)`,
    })
    .from(events)
    .where(lt(events.timestamp, time))
    .orderBy(desc(events.timestamp))
    .limit(1)
  return row?.held ?? false
}

/**
 * The moment at which a stream opened. An event is new when its `seq` is larger than `last` and is not in
 * `stored`. The first entry of `stored` is the largest.
 */
interface Opening {
  readonly last: number
  readonly stored: ReadonlySet<number>
}

/**
 * Maximum number of stored events that are remembered for a stream. While a transaction stays open, the
 * settled `seq` does not increase, so the events after it can be many.
 */
const REMEMBERED = 10_000

/**
 * Returns this moment as the opening of a stream. On PostgreSQL an open transaction can still add an event
 * whose `seq` is smaller than that of a stored event. Such an event is new, too.
 */
export const openingNow = async (store: Store): Promise<Opening> => {
  const settled = await settledSeq(store)
  const rows = await store.read(q => {
    const { events } = q.tables
    return q
      .select({ seq: events.seq })
      .from(events)
      .where(gt(events.seq, settled))
      .orderBy(desc(events.seq))
      .limit(REMEMBERED)
  })
  const stored = new Set(rows.map(({ seq }) => seq))
  return { last: Math.max(settled, (rows[0]?.seq ?? 0) - REMEMBERED), stored }
}

/**
 * Returns a column as an expression, so that the planner does not use the index of the column. With that
 * index a query would read all events that have the same value in the column, although another index leads to
 * the few wanted events.
 */
export const unindexed = (column: AnyColumn) => sql`${column} || ''`

/**
 * Returns the events after `seq` up to `last`, in order. Events of deleted users and organizations are left
 * out. With `wanted`, only events of `wanted.types` are returned. If `wanted.organization_id` is present, the
 * events must also belong to this organization.
 */
export const eventsUpTo = async (
  q: Queries,
  seq: number,
  last: number,
  limit: number,
  wanted?: { types: readonly EventRow['type'][]; organization_id?: OrganizationId | undefined },
): Promise<EventRow[]> => {
  const { events } = q.tables
  return q
    .select()
    .from(events)
    .where(
      and(
        gt(events.seq, seq),
        lte(events.seq, last),
        wanted && inArray(unindexed(events.type), [...wanted.types]),
        wanted?.organization_id && eq(unindexed(events.organization_id), wanted.organization_id),
        await visibleEvents(q),
      ),
    )
    .orderBy(asc(events.seq))
    .limit(limit)
}
