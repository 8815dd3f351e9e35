import { and, between, desc, eq, exists, inArray, lt, not, or, type SQL, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import { unindexed } from '#src/audit/stream-store.ts'
import type { Keyset } from '#src/lib/cursor.ts'
import { HOUR } from '#src/lib/duration.ts'
import type { UserId } from '#src/lib/ids.ts'
import { othersRun } from '#src/lib/turn.ts'
import { inSlices } from '#src/storage/slices.ts'
import type { Queries, Store } from '#src/storage/store.ts'

/** Maximum number of events in a user's download of their data: about 5 MB, which are built in memory. */
const MAX_EVENTS = 10_000

const shown = ({ events }: Queries['tables']) => ({
  id: events.id,
  type: events.type,
  actor_id: events.actor_id,
  target_id: events.target_id,
  target_type: events.target_type,
  ip_address: events.ip_address,
  user_agent: events.user_agent,
  timestamp: events.timestamp,
  metadata: events.metadata,
})

/**
 * Maximum number of keys that one statement reads. On SQLite a read of 2,000 keys blocks the event loop for a
 * few milliseconds.
 */
const KEYS = 2_000
/**
 * Maximum number of events that one statement reads, about 250 KiB. Converting these events from and to JSON
 * takes about 10 ms.
 */
const ROWS = 500

type Place = { timestamp: number; seq: number }

const latestFirst = (a: Place, b: Place): number => b.timestamp - a.timestamp || b.seq - a.seq

/**
 * Returns time and `seq` of the latest events that have the user in `column`, at most `MAX_EVENTS`. Each
 * statement reads a part of the index of the column, in the order of the index. The work of a statement
 * therefore does not grow with the number of the user's events.
 */
const placesOf = async (
  store: Store,
  user_id: UserId,
  column: 'actor_id' | 'target_id' | 'subject_id',
): Promise<Place[]> => {
  const places: Place[] = []
  await inSlices<Place>(undefined, async last => {
    const more = await store.read(q => {
      const { events: t } = q.tables
      const isIndexedByTime = column !== 'subject_id'
      const before = isIndexedByTime
        ? last && lt(sql`(${t.timestamp}, ${t.seq})`, sql`(${last.timestamp}, ${last.seq})`)
        : last && lt(t.seq, last.seq)
      return q
        .select({ timestamp: t.timestamp, seq: t.seq })
        .from(t)
        .where(and(eq(t[column], user_id), before))
        .orderBy(...(isIndexedByTime ? [desc(t.timestamp)] : []), desc(t.seq))
        .limit(KEYS)
    })
    places.push(...more)
    return more.length < KEYS || places.length >= MAX_EVENTS ? undefined : more.at(-1)
  })
  return places
}

/**
 * Calls `use` with the events that the user caused or that concern the user, latest first, at most 10,000.
 * The events come in portions, and other requests run between two portions.
 */
export const readOwnEvents = async (
  store: Store,
  user_id: UserId,
  use: (events: OwnEvent[]) => void,
): Promise<void> => {
  const found = new Map<number, Place>()
  for (const column of ['actor_id', 'target_id', 'subject_id'] as const)
    for (const place of await placesOf(store, user_id, column)) found.set(place.seq, place)
  const latest = [...found.values()]
    .sort(latestFirst)
    .slice(0, MAX_EVENTS)
    .map(({ seq }) => seq)
  for (let start = 0; start < latest.length; start += ROWS) {
    await othersRun()
    use(await store.read(q => eventsAt(q, latest.slice(start, start + ROWS))))
  }
}

export type OwnEvent = Awaited<ReturnType<typeof eventsAt>>[number]

const eventsAt = async (q: Queries, places: number[]) => {
  const { events } = q.tables
  const rows = await q
    .select({ ...shown(q.tables), seq: events.seq })
    .from(events)
    .where(inArray(events.seq, places))
  return rows.sort(latestFirst).map(({ seq: _, ...event }) => event)
}

/**
 * Maximum number of events that are searched for one page of sign-ins, because a user may have thousands of
 * other events. After a full page, the next page begins after the last listed sign-in. Otherwise it begins
 * after the last event that was searched.
 */
const SCANNED = 500

/**
 * Maximum milliseconds between the events `user.first_factor_proven` and `user.login` of one sign-in. The
 * user has half an hour for the second factor, and the client has a minute to exchange the code.
 */
const FINISHED_IN = HOUR

/**
 * Lists sign-ins of the user and failed attempts, latest first. A first factor is listed only when no login
 * from the same user agent and IP address followed it within `FINISHED_IN`. `next` is the keyset of the
 * following page. A page with fewer rows than `limit` can still have a next page.
 */
export const listSignIns = async (q: Queries, user_id: UserId, after: Keyset | undefined, limit: number) => {
  const { events } = q.tables
  const beyond: SQL | undefined =
    after && lt(sql`(${events.timestamp}, ${events.seq})`, sql`(${after[0]}, ${after[1]})`)
  const about = and(eq(events.target_id, user_id), beyond)
  const order = [desc(events.timestamp), desc(events.seq)] as const
  const recent = q
    .select({ ...shown(q.tables), seq: events.seq })
    .from(events)
    .where(about)
    .orderBy(...order)
    .limit(SCANNED)
    .as('recent')
  const later = alias(events, 'later')
  const isFinished = exists(
    q
      .select({ id: later.id })
      .from(later)
      .where(
        and(
          eq(later.target_id, user_id),
          eq(unindexed(later.type), 'user.login'),
          between(later.timestamp, recent.timestamp, sql`${recent.timestamp} + ${FINISHED_IN}`),
          eq(unindexed(later.ip_address), recent.ip_address),
          eq(later.user_agent, recent.user_agent),
        ),
      ),
  )
  const found = await q
    .select()
    .from(recent)
    .where(
      or(
        inArray(recent.type, ['user.login', 'user.login_failed']),
        and(eq(recent.type, 'user.first_factor_proven'), not(isFinished)),
      ),
    )
    .orderBy(desc(recent.timestamp), desc(recent.seq))
    .limit(limit + 1)
  const rows = found.slice(0, limit)
  const [last] =
    found.length > limit
      ? rows.slice(-1)
      : await q
          .select({ timestamp: events.timestamp, seq: events.seq })
          .from(events)
          .where(about)
          .orderBy(...order)
          .limit(1)
          .offset(SCANNED - 1)
  return { rows, next: last && [last.timestamp, last.seq] }
}

/** Returns the names of clients by `client_id`, and the logos of clients that an administrator registered. */
export const clientLooks = async (
  q: Queries,
  client_ids: string[],
): Promise<Map<string, { name: string; logo?: string | null }>> => {
  if (client_ids.length === 0) return new Map()
  const { clients: t, dynamic_clients: dynamic } = q.tables
  const looks = await Promise.all([
    q
      .select({ id: dynamic.client_id, name: dynamic.name })
      .from(dynamic)
      .where(inArray(dynamic.client_id, client_ids)),
    q.select({ id: t.client_id, name: t.name, logo: t.logo }).from(t).where(inArray(t.client_id, client_ids)),
  ])
  return new Map(looks.flat().map(({ id, ...look }) => [id, look]))
}
