import { useState } from 'preact/hooks'
import type { AuditEvent } from '#src/audit/schema.ts'
import { type Fact, Facts } from '../facts.tsx'
import { Icon } from '../icons.tsx'
import { Named, useName } from '../names.tsx'
import { Value, When } from '../parts.tsx'
import { eventTitle, fullDate, joined, words } from '../words.ts'

export type LogEvent = AuditEvent

const toneOf = (type: string): string =>
  /failed|refused|disabled|deleted|revoked/.test(type)
    ? 'bad'
    : /created|login$|enabled/.test(type)
      ? 'good'
      : ''

const Details = ({ event }: { event: LogEvent }) => {
  const facts: Fact[] = [
    [words.log.event, <Value key="id" text={event.id} />],
    [words.log.type, <code key="type">{event.type}</code>],
    [words.log.time, fullDate(event.timestamp)],
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
    ...Object.entries(event.metadata).map(([name, value]): [string, preact.ComponentChildren] => [
      name,
      <code key={name}>{typeof value === 'string' ? value : JSON.stringify(value)}</code>,
    ]),
  ]
  return <Facts facts={facts} />
}

/** Shows an event in one line that expands to all of its fields. */
export const EventRow = ({ event }: { event: LogEvent }) => {
  const [isOpen, setOpen] = useState(false)
  const { metadata } = event
  const isOwn = event.target_id === event.actor_id
  const named = metadata.username ?? metadata.name ?? (metadata.client_id || undefined)
  const target = useName(isOwn || named ? '' : event.target_type, event.target_id)
  const about = joined([named === undefined ? target : String(named), event.actor_email ?? event.actor_id])
  return (
    <li class={isOpen ? 'event open' : 'event'}>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class={`dot ${toneOf(event.type)}`} />
        <span class="event-title">{eventTitle(event.type)}</span>
        <span class="event-about">{about}</span>
        <span class="event-address">{event.ip_address}</span>
        <span class="event-time">
          <When time={event.timestamp} />
        </span>
        <Icon name="right" />
      </button>
      {isOpen && <Details event={event} />}
    </li>
  )
}
