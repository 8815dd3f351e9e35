import { and, desc, eq, inArray, lt, or, type SQL, sql } from 'drizzle-orm'
import type { Keyset } from '#src/lib/cursor.ts'
import type { UserId } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'

/** Maximum events in a user's download of their data: about 5 MB, which are built in memory. */
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

/** Lists the events that the user caused or that concern the user, latest first, at most 10,000. */
export const listOwnEvents = (q: Queries, user_id: UserId) => {
  const { events } = q.tables
  return q
    .select(shown(q.tables))
    .from(events)
    .where(or(eq(events.actor_id, user_id), eq(events.target_id, user_id), eq(events.subject_id, user_id)))
    .orderBy(desc(events.seq))
    .limit(MAX_EVENTS)
}

/**
 * Maximum number of events that one page of sign-ins reads: a user may have thousands of other events. The
 * next page continues after these events, or after the last listed sign-in when the page is full.
 */
const SCANNED = 500

/**
 * Lists sign-ins of the user and failed attempts, latest first. `next` is the keyset of the following page. A
 * page with fewer rows than `limit` may still have a next page.
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
  const found = await q
    .select()
    .from(recent)
    .where(inArray(recent.type, ['user.login', 'user.login_failed']))
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

/** Returns the names of clients by `client_id`, and the logos of those that an administrator registered. */
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
