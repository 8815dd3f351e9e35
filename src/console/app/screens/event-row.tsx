import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { AuditEvent } from '#src/audit/schema.ts'
import { type Fact, Facts } from '../facts.tsx'
import { Icon } from '../icons.tsx'
import { Named, useName } from '../names.tsx'
import { Badge, Value, When } from '../parts.tsx'
import { dateRange, eventTitle, exactDate, joined, number, words } from '../words.ts'

export type LogEvent = AuditEvent

/** A session that is revoked by its own user gets no warning colour, because signing out is routine. */
const toneOf = ({ type, actor_id, metadata }: LogEvent): string =>
  /failed|refused|disabled|deleted|revoked/.test(type) && !(actor_id && actor_id === metadata.user_id)
    ? 'bad'
    : /created|login$|enabled/.test(type)
      ? 'good'
      : ''

const isFact = (name: string): name is keyof typeof words.log.facts => Object.hasOwn(words.log.facts, name)

const Details = ({ event }: { event: LogEvent }) => {
  const facts: Fact[] = [
    [words.log.event, <Value key="id" text={event.id} />],
    [words.log.type, <code key="type">{event.type}</code>],
    [
      words.log.time,
      <time key="time" dateTime={event.timestamp} title={event.timestamp}>
        {exactDate(event.timestamp)}
      </time>,
    ],
    [
      words.log.actor,
      event.actor_id ? (
        <Named key="actor" type={event.actor_id.startsWith('usr_') ? 'user' : 'client'} id={event.actor_id} />
      ) : (
        words.log.noActor
      ),
    ],
    [words.log.target, <Named key="target" type={event.target_type} id={event.target_id} />],
    [words.log.organization, <Named key="organization" type="organization" id={event.organization_id} />],
    [words.log.address, event.ip_address || '–'],
    [words.log.program, event.user_agent || '–'],
    ...Object.entries(event.metadata).map(
      ([name, value]): Fact =>
        isFact(name)
          ? [
              words.log.facts[name],
              Array.isArray(value) ? value.join(', ') : <Named key={name} type="user" id={String(value)} />,
            ]
          : [name, <code key={name}>{typeof value === 'string' ? value : JSON.stringify(value)}</code>],
    ),
  ]
  return <Facts facts={facts} />
}

/** Shows a line that expands to `children`. */
const Line = (props: {
  tone: string
  title: ComponentChildren
  about: string
  address: string
  time: string
  exact?: boolean | undefined
  class?: string
  children(): ComponentChildren
}) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <li class={`event ${props.class ?? ''} ${props.exact ? 'exact' : ''} ${isOpen ? 'open' : ''}`}>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class={`dot ${props.tone}`} />
        <span class="event-title">{props.title}</span>
        <span class="event-about">{props.about}</span>
        <span class="event-address">{props.address}</span>
        <span class="event-time">
          <When time={props.time} exact={props.exact} />
        </span>
        <Icon name="right" />
      </button>
      {isOpen && props.children()}
    </li>
  )
}

const actorOf = ({ actor_email, actor_id }: LogEvent): string | null => actor_email ?? actor_id

/**
 * Shows an event in one line that expands to all of its fields. The time is relative to now. If `exact` is
 * set, the time is exact.
 */
export const EventRow = ({ event, exact }: { event: LogEvent; exact?: boolean }) => {
  const { type, metadata, ip_address, timestamp } = event
  const isOwn = event.target_id === event.actor_id
  const named = metadata.username ?? metadata.name ?? (metadata.client_id || undefined)
  const target = useName(isOwn || named ? '' : event.target_type, event.target_id)
  const object = named === undefined ? target : String(named)
  const actor = actorOf(event)
  const { member_added, member_removed } = metadata
  const memberId = String(member_added ?? member_removed ?? '')
  const member = useName(memberId && 'user', memberId) ?? memberId
  const changes = Object.entries(metadata).flatMap(([name, value]) =>
    isFact(name) ? `${words.log.facts[name]} (${Array.isArray(value) ? value.join(', ') : member})` : [],
  )
  const about = joined([object === actor ? '' : object, ...changes, actor])
  return (
    <Line
      tone={toneOf(event)}
      title={eventTitle(type)}
      about={about}
      address={ip_address}
      time={timestamp}
      exact={exact}
    >
      {() => <Details event={event} />}
    </Line>
  )
}

/**
 * Minimum number of events in a run. Two events remain two lines, because a run would save only one line and
 * would have to be opened.
 */
const RUN = 3

const isSame = (one: LogEvent, other: LogEvent | undefined): boolean =>
  one.type === other?.type && one.actor_id === other.actor_id && one.ip_address === other.ip_address

/**
 * Divides events into runs. A run is a series of consecutive events with the same type, actor and address.
 * Without runs, the token events of one program would hide the other events.
 */
export const runsOf = (events: readonly LogEvent[]): LogEvent[][] => {
  const runs: LogEvent[][] = []
  for (const event of events) {
    const last = runs.at(-1)
    if (last && isSame(event, last[0])) last.push(event)
    else runs.push([event])
  }
  return runs.flatMap(run => (run.length < RUN ? run.map(event => [event]) : [run]))
}

/**
 * Returns the period of a run as text. Returns '' when all events of the run happened in one second, because
 * the line of the run already shows this second.
 */
const spanOf = (oldest: LogEvent, newest: LogEvent): string =>
  oldest.timestamp.slice(0, 19) === newest.timestamp.slice(0, 19)
    ? ''
    : dateRange(oldest.timestamp, newest.timestamp)

/**
 * Shows a run of events, newest first, with exact times. The run is one line that expands to a line for each
 * event.
 */
export const EventRun = ({ events }: { events: readonly LogEvent[] }) => {
  const [newest] = events
  const oldest = events.at(-1)
  if (!newest || !oldest) return null
  if (newest === oldest) return <EventRow event={newest} exact />
  const { type, ip_address, timestamp } = newest
  return (
    <Line
      class="run"
      tone={toneOf(newest)}
      title={
        <>
          {eventTitle(type)} <Badge>{`× ${number(events.length)}`}</Badge>
        </>
      }
      about={joined([actorOf(newest), spanOf(oldest, newest)])}
      address={ip_address}
      time={timestamp}
      exact
    >
      {() => (
        <ul class="rows">
          {events.map(event => (
            <EventRow key={event.id} event={event} exact />
          ))}
        </ul>
      )}
    </Line>
  )
}
