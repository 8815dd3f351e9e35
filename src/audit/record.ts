import type { Core } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { MasterKey } from '#src/lib/master-key.ts'
import type { Family } from '#src/lib/metrics.ts'
import type { Transaction } from '#src/storage/store.ts'
import { addCounts, type Counts } from './statistics-store.ts'
import { insertEvents } from './store.ts'
import type { EventType, TargetType } from './types.ts'

/**
 * The user or client that caused an event. Both fields are null for the server itself and its command line,
 * and when nobody was authenticated, such as in a failed login. `email` is null for a client.
 */
export interface Actor {
  id: string | null
  email: string | null
}

/** The actor of events that no authenticated user or client caused. */
export const anonymousActor: Actor = { id: null, email: null }

/**
 * The actor of changes by the server or its command line: no user or client, and no address. A command
 * requires no login, so its events name nobody.
 */
export const hostActor: { actor: Actor; client_info: ClientInfo } = {
  actor: anonymousActor,
  client_info: { ip_address: '', user_agent: '' },
}

/** An event to record. `record` adds id, time and MAC. */
export interface NewEvent {
  type: EventType
  actor: Actor
  target_id: string
  target_type: TargetType
  organization_id: OrganizationId
  client_info: ClientInfo
  metadata?: Record<string, unknown>
  /**
   * The user whom the event concerns: its actor, its target, the owner of its session or a user in its
   * metadata. The event is deleted with this user.
   */
  subject_id?: UserId | null
  /** Active users to add to the statistics, as `markActive` (directory/users/store.ts) counted them. */
  active?: Pick<Counts, 'active_users' | 'daily_users'> | undefined
}

/** For each event type that the statistics count: the count that an event of this type increases by one. */
const counted: Partial<Record<EventType, keyof Counts>> = {
  'user.login': 'logins',
  'user.login_failed': 'failed_logins',
  'user.created': 'new_users',
  'token.issued': 'tokens',
  'token.refreshed': 'tokens',
}

export const EVENTS: Family = { name: 'gatehouse_events_total', help: 'Audit events by type.', label: 'type' }
export const TOKENS: Family = {
  name: 'gatehouse_tokens_total',
  help: 'Tokens issued, by grant.',
  label: 'grant',
}

/**
 * The columns of an event that its MAC covers: all but `seq` and `mac`. `metadata` is the stored JSON text.
 */
interface EventText {
  id: string
  type: string
  actor_id: string | null
  actor_email: string | null
  target_id: string
  target_type: string
  organization_id: string
  ip_address: string
  user_agent: string
  timestamp: number
  metadata: string
  subject_id: string | null
}

/**
 * Returns the HMAC-SHA-256 of an event, base64url. The MAC reveals a change by someone who can write to the
 * database but does not have the key. The order of the columns must not change, because stored MACs depend on
 * this order.
 */
export const macOf = (master: MasterKey, event: EventText): string => {
  const columns = [
    event.id,
    event.type,
    event.actor_id,
    event.actor_email,
    event.target_id,
    event.target_type,
    event.organization_id,
    event.ip_address,
    event.user_agent,
    event.timestamp,
    event.metadata,
    event.subject_id,
  ]
  return master.hmac('event').update(JSON.stringify(columns)).digest('base64url')
}

const rowOf = ({ master }: Core, event: NewEvent, now: number) => {
  const { actor, client_info } = event
  const isFound = event.subject_id === actor.id || event.subject_id === event.target_id
  const row = {
    // The id contains the millisecond of `timestamp`, even after the clock has stepped back, because
    // `findEvent` derives the time from the id.
    id: `evt_${Bun.randomUUIDv7('hex', now)}`,
    type: event.type,
    actor_id: actor.id,
    actor_email: actor.email,
    target_id: event.target_id,
    target_type: event.target_type,
    organization_id: event.organization_id,
    ip_address: client_info.ip_address,
    user_agent: client_info.user_agent,
    timestamp: now,
    metadata: JSON.stringify(event.metadata ?? {}),
    // Null when the user is the actor or the target, because the index of `actor_id` or `target_id` finds the
    // event.
    subject_id: isFound ? null : (event.subject_id ?? null),
  }
  return { ...row, mac: macOf(master, row) }
}

/**
 * Writes an event in the transaction of the change that the event records, so that the change is never stored
 * without the event.
 */
export const record = (context: Core, tx: Transaction, event: NewEvent): Promise<void> =>
  recordAll(context, tx, [event])

/**
 * Records one to three events of one change, in their order. One statement for three events costs less than
 * three statements.
 */
export const recordAll = (context: Core, tx: Transaction, events: readonly NewEvent[]): Promise<void> => {
  const now = context.clock.now()
  const { metrics } = context.store
  tx.after(() => {
    for (const { type, metadata } of events) {
      metrics.count(EVENTS, type)
      if (type === 'token.issued') metrics.count(TOKENS, String(metadata?.grant_type))
      else if (type === 'token.refreshed') metrics.count(TOKENS, 'refresh_token')
    }
  })
  for (const { type, organization_id, active } of events) {
    const count = counted[type]
    if (count) addCounts(tx, organization_id, now, { [count]: 1, ...active })
  }
  return tx.later(
    insertEvents(
      tx,
      events.map(event => rowOf(context, event, now)),
    ),
  )
}
