import { useEffect, useRef, useState } from 'preact/hooks'
import { withQuery } from '../api.ts'
import { ExportButton } from '../export.tsx'
import { Choice } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { useStream } from '../follow.ts'
import { useList } from '../hooks.ts'
import { consoleLimits } from '../limits.ts' with { type: 'macro' }
import { ListFoot, Rows } from '../list.tsx'
import { NameFilter } from '../name-filter.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { Card, Empty, Heading, Refused } from '../parts.tsx'
import { eventTitle, say, words } from '../words.ts'
import { EventRun, type LogEvent, runsOf } from './event-row.tsx'

const { eventTypes } = consoleLimits()
/** Milliseconds between two announcements of new events by screen readers. */
const TOLD = 5_000

const names = ['type', 'actor_id', 'target_id', 'organization_id', 'ip_address', 'from', 'to'] as const

const exported = [
  'id',
  'timestamp',
  'type',
  'actor_id',
  'actor_email',
  'target_id',
  'target_type',
  'organization_id',
  'ip_address',
  'user_agent',
  'metadata',
]

/**
 * Returns the instant of a local time on the given day, because the rows show local times. If `day` is not a
 * day, returns it unchanged.
 */
const instantOf = (day: string, time: string): string => {
  const instant = new Date(/^\d{4}-\d\d-\d\d$/.test(day) ? `${day}T${time}` : Number.NaN)
  return Number.isNaN(instant.getTime()) ? day : instant.toISOString()
}

/**
 * Tells screen readers how many events have arrived. Each announcement counts the events of the last five
 * seconds.
 */
const Arrivals = ({ count }: { count: number }) => {
  const latest = useRef(0)
  latest.current = count
  const [told, setTold] = useState({ count: 0, text: '' })
  useEffect(() => {
    const timer = setInterval(
      () =>
        setTold(told =>
          latest.current > told.count
            ? { count: latest.current, text: say(words.log.arrived, { count: latest.current - told.count }) }
            : { count: latest.current, text: '' },
        ),
      TOLD,
    )
    return () => clearInterval(timer)
  }, [])
  return (
    <p class="unseen" role="status">
      {told.text}
    </p>
  )
}

/** Screen of the audit log. */
export const EventsScreen = () => {
  const { entered: filters, filters: chosen, change, isFiltered } = useFilters(names)
  // The address of the screen contains days, but the API needs instants.
  const settled = {
    ...chosen,
    from: instantOf(chosen.from, '00:00:00.000'),
    to: instantOf(chosen.to, '23:59:59.999'),
  }
  const [isLive, setLive] = useState(false)
  const [held, setHeld] = useState<LogEvent[]>()
  const list = useList<LogEvent>('/events', { ...settled, limit: 100 })
  const { from: _, to, ...streamed } = settled
  // The stream cannot be limited by an end time, so it is closed while the filter has an end time.
  const mayFollow = to === ''
  const path = isLive && mayFollow ? withQuery('/events/stream', streamed) : undefined
  // The stream sends only events that are recorded after it opens. The list is therefore read again whenever
  // the stream starts.
  const stream = useStream<LogEvent>(path, list.reload)
  const fresh = new Set(stream.items.map(({ id }) => id))
  const current = [...stream.items, ...list.items.filter(({ id }) => !fresh.has(id))]
  const shown = held ?? current
  const seen = new Set(held?.map(({ id }) => id))
  // The list was read after the first of these events arrived, so its total counts them and all older ones.
  const listed = new Set(list.items.map(({ id }) => id))
  const known = stream.items.findIndex(({ id }) => listed.has(id))
  const total = list.total + (known < 0 ? stream.items.length : known)
  // A person who filters by type wants to see each event, so these events are not grouped into runs.
  const runs = settled.type === '' ? runsOf(shown) : shown.map(event => [event])
  const field = (name: (typeof names)[number], label: string, type: 'text' | 'date' = 'text') => (
    <label class="choice">
      <span>{label}</span>
      <input
        {...({ type } as object)}
        value={filters[name]}
        onInput={event => change({ [name]: event.currentTarget.value })}
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  )
  return (
    <>
      <Heading title={words.nav.events} lead={words.log.lead}>
        <ExportButton path="/events" filters={settled} columns={exported} file="events.csv" />
        {isLive && mayFollow && (
          <button type="button" onClick={() => setHeld(held ? undefined : current)}>
            {held
              ? say(words.log.resume, { count: current.filter(({ id }) => !seen.has(id)).length })
              : words.log.pause}
          </button>
        )}
        <button
          type="button"
          class="toggle"
          aria-pressed={isLive}
          disabled={!mayFollow}
          title={mayFollow ? words.log.liveHint : words.log.liveEnds}
          onClick={() => {
            setLive(!isLive)
            setHeld(undefined)
          }}
        >
          <span class={stream.isOpen ? 'dot live' : 'dot'} />
          {isLive && !stream.isOpen && mayFollow ? words.log.connecting : words.log.live}
        </button>
      </Heading>
      <div class="filters many">
        <Choice
          label={words.log.event}
          value={filters.type}
          onValue={type => change({ type })}
          options={[['', words.common.all], ...eventTypes.map(type => [type, eventTitle(type)] as const)]}
        />
        <NameFilter
          kind="user"
          label={words.log.actor}
          id={filters.actor_id}
          onId={actor_id => change({ actor_id })}
        />
        {field('target_id', words.log.targetId)}
        <OrganizationField
          id={filters.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
        {field('ip_address', words.log.address)}
        {field('from', words.log.from, 'date')}
        {field('to', words.log.to, 'date')}
      </div>
      <Refused problem={isLive ? stream.problem : undefined} />
      <Arrivals count={stream.count} />
      <Card flush>
        <Rows
          list={list}
          items={list.isLoading && shown.length === 0 ? undefined : runs}
          placeholders={8}
          empty={<Empty title={isFiltered ? words.log.noneFits : words.log.none} />}
          // New events are added at the front of a run. The key is the id of the oldest event, so that an
          // open run stays open.
          row={events => <EventRun key={events.at(-1)?.id} events={events} />}
        />
      </Card>
      <ListFoot list={{ ...list, items: shown, total }} isLive={isLive} />
    </>
  )
}
