import { useEffect, useState } from 'preact/hooks'
import { ExportButton } from '../export.tsx'
import { useList, useSettled } from '../hooks.ts'
import { consoleLimits } from '../limits.ts' with { type: 'macro' }
import { Card, Check, Choice, Empty, Failure, Heading, Loading } from '../parts.tsx'
import { go, query } from '../router.ts'
import { eventTitle, shownOf, words } from '../words.ts'
import { EventRow, type LogEvent } from './event-row.tsx'

const { eventTypes } = consoleLimits()
const EVERY = 4_000

type Filters = Record<
  'type' | 'actor_id' | 'target_id' | 'organization_id' | 'ip_address' | 'from' | 'to',
  string
>
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

export const EventsScreen = () => {
  const [filters, setFilters] = useState(
    () => Object.fromEntries(names.map(name => [name, query.value.get(name) ?? ''])) as Filters,
  )
  const [isLive, setLive] = useState(false)
  const settled = useSettled(filters, 300)
  const list = useList<LogEvent>('/events', { ...settled, limit: 50 })
  const change = (changed: Partial<Filters>) => setFilters({ ...filters, ...changed })
  const isFiltered = Object.values(filters).some(Boolean)

  useEffect(() => {
    const given = Object.entries(settled).filter(([, value]) => value !== '')
    go(given.length > 0 ? `/console/events?${new URLSearchParams(given)}` : '/console/events', {
      replace: true,
    })
  }, [settled])
  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(list.reload, EVERY)
    return () => clearInterval(timer)
  }, [isLive, list.reload])

  const field = (name: keyof Filters, label: string, type: 'text' | 'date' = 'text') => (
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
        <Check label={words.log.live} checked={isLive} onChecked={setLive} />
      </Heading>
      <div class="filters">
        <Choice
          label={words.log.event}
          value={filters.type}
          onValue={type => change({ type })}
          options={[['', words.common.all], ...eventTypes.map(type => [type, eventTitle(type)] as const)]}
        />
        {field('actor_id', words.log.actorId)}
        {field('target_id', words.log.targetId)}
        {field('organization_id', words.log.organizationId)}
        {field('ip_address', words.log.address)}
        {field('from', words.log.from, 'date')}
        {field('to', words.log.to, 'date')}
      </div>
      <Card flush>
        {list.problem ? (
          <Failure problem={list.problem} retry={list.reload} />
        ) : list.isLoading ? (
          <Loading rows={8} />
        ) : list.items.length === 0 ? (
          <Empty title={isFiltered ? words.log.noneFits : words.log.none} />
        ) : (
          <ul class="rows">
            {list.items.map(event => (
              <EventRow key={event.id} event={event} />
            ))}
          </ul>
        )}
      </Card>
      {list.items.length > 0 && (
        <p class="foot">
          <span>{shownOf(list.items.length, list.total)}</span>
          {list.hasMore && (
            <button type="button" onClick={list.more}>
              {words.common.more}
            </button>
          )}
        </p>
      )}
    </>
  )
}
