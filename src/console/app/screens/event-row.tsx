import { useState } from 'preact/hooks'
import type { AuditEvent } from '#src/audit/schema.ts'
import { Icon, Value, When } from '../parts.tsx'
import { eventTitle, fullDate, words } from '../words.ts'

export type LogEvent = AuditEvent

const toneOf = (type: string): string =>
  /failed|refused|disabled|deleted|revoked/.test(type)
    ? 'bad'
    : /created|login$|enabled/.test(type)
      ? 'good'
      : ''

const linkOf = ({ target_type, target_id, type }: LogEvent): string | undefined =>
  type.endsWith('.deleted')
    ? undefined
    : target_type === 'user'
      ? `/console/users/${target_id}`
      : target_type === 'client'
        ? `/console/clients/${encodeURIComponent(target_id)}`
        : undefined

const Details = ({ event }: { event: LogEvent }) => {
  const link = linkOf(event)
  const facts: [string, preact.ComponentChildren][] = [
    [words.log.event, <Value key="id" text={event.id} />],
    [words.log.type, <code key="type">{event.type}</code>],
    [words.log.time, fullDate(event.timestamp)],
    [words.log.actor, event.actor_id ? <Value key="actor" text={event.actor_id} /> : words.log.noActor],
    [
      words.log.target,
      link ? <a href={link}>{event.target_id}</a> : <code key="target">{event.target_id}</code>,
    ],
    [words.log.organization, <code key="organization">{event.organization_id}</code>],
    [words.log.address, event.ip_address || '–'],
    [words.log.program, event.user_agent || '–'],
    ...Object.entries(event.metadata).map(([name, value]): [string, preact.ComponentChildren] => [
      name,
      <code key={name}>{typeof value === 'string' ? value : JSON.stringify(value)}</code>,
    ]),
  ]
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** An event in one line, which opens to all of its facts. */
export const EventRow = ({ event }: { event: LogEvent }) => {
  const [isOpen, setOpen] = useState(false)
  const { metadata } = event
  const about = metadata.username ?? metadata.name ?? event.actor_email ?? event.actor_id ?? ''
  return (
    <li class={isOpen ? 'event open' : 'event'}>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class={`dot ${toneOf(event.type)}`} />
        <span class="event-title">{eventTitle(event.type)}</span>
        <span class="event-about">{String(about)}</span>
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
