import { withQuery } from '../api.ts'
import { Chart, type Point } from '../chart.tsx'
import { type PageOf, useObject } from '../hooks.ts'
import { Icon, type IconName } from '../icons.tsx'
import { Rows } from '../list.tsx'
import { may } from '../me.ts'
import { menu } from '../menu.ts'
import { Badge, Card, Empty, Failure, Heading, Loading, MailPlace } from '../parts.tsx'
import { person } from '../session.ts'
import { inEnglish, number, say, words } from '../words.ts'
import { EventRow, type LogEvent } from './event-row.tsx'

const { health } = words

const Figure = ({ label, value, tone }: { label: string; value: number; tone?: string }) => (
  <div class="figure">
    <dt>
      {tone && <span class={`dot ${tone}`} />}
      {label}
    </dt>
    <dd>{number(value)}</dd>
  </div>
)

const sum = (points: Point[], name: 'logins' | 'failed_logins' | 'new_users'): number =>
  points.reduce((total, point) => total + point[name], 0)

const Activity = () => {
  const { data, problem, reload } = useObject<{ data: Point[] }>('/statistics')
  return (
    <Card title={words.overview.logins} lead={words.overview.days}>
      {problem ? (
        <Failure problem={problem} retry={reload} />
      ) : !data ? (
        <Loading rows={4} />
      ) : (
        <>
          <dl class="figures">
            <Figure label={words.overview.logins} value={sum(data.data, 'logins')} tone="good" />
            <Figure label={words.overview.failedLogins} value={sum(data.data, 'failed_logins')} tone="bad" />
            <Figure label={words.overview.active} value={data.data.at(-1)?.active_users ?? 0} />
            <Figure label={words.overview.newUsers} value={sum(data.data, 'new_users')} />
          </dl>
          <Chart points={data.data} />
        </>
      )}
    </Card>
  )
}

/**
 * Event types that the overview leaves out. Logins and programs cause many events of these types, which would
 * hide all other events.
 */
const ROUTINE = /^token\.(issued|refreshed|introspected)$|^session\.(created|expired)$/
const SHOWN = 8

/** Returns the newest events that are not routine. If all events are routine, returns the newest of them. */
const telling = (events: LogEvent[]): LogEvent[] => {
  const found = events.filter(({ type }) => !ROUTINE.test(type))
  return (found.length > 0 ? found : events).slice(0, SHOWN)
}

const Newest = () => {
  const { data, problem, reload } = useObject<PageOf<LogEvent>>('/events?limit=100')
  return (
    <Card title={words.overview.newest} flush aside={<a href="/console/events">{words.nav.events}</a>}>
      <Rows
        list={{ problem, reload }}
        items={data && telling(data.data)}
        placeholders={5}
        empty={<Empty title={words.log.none} icon="events" />}
        row={event => <EventRow key={event.id} event={event} />}
      />
    </Card>
  )
}

const Step = (props: { icon?: IconName; href: string; title: string; text?: string }) => (
  <li>
    <a class="step" href={props.href}>
      <Icon name={props.icon ?? 'plus'} />
      <span>
        <strong>{props.title}</strong>
        {props.text && <span class="hint">{props.text}</span>}
      </span>
      <Icon name="right" />
    </a>
  </li>
)

/**
 * True when fewer than two people have the role `admin`, directly or through the largest group that grants
 * the role. False while the people are still being counted.
 */
const useLackOfAdmins = (): boolean => {
  const filter = { role: 'admin', organization_id: person.value?.organization_id }
  const isAsked = may('users:create')
  const hasGroups = isAsked && may('groups:read')
  const direct = useObject<PageOf<{ id: string }>>(
    isAsked ? withQuery('/users', { ...filter, limit: 2 }) : undefined,
  ).data
  const groups = useObject<PageOf<{ id: string; member_count: number }>>(
    hasGroups ? withQuery('/groups', { ...filter, limit: 100 }) : undefined,
  ).data
  const [largest] = groups?.data.toSorted((a, b) => b.member_count - a.member_count) ?? []
  const members = useObject<PageOf<{ id: string }>>(
    largest && `/groups/${encodeURIComponent(largest.id)}/members?limit=2`,
  ).data
  if (!direct || (hasGroups && !groups) || (largest && !members)) return false
  return new Set([...direct.data, ...(members?.data ?? [])].map(({ id }) => id)).size < 2
}

/**
 * Shows how many people wait for approval, and the next steps of a new instance. The step to connect an
 * application stays until there is a client with the authorization code grant. The step to add a person stays
 * until two people have the role `admin`, so that one of them can help when the other is locked out.
 */
const NextSteps = () => {
  const clients = useObject<PageOf<unknown>>(
    may('clients:create') ? '/clients?limit=1&grant_type=authorization_code' : undefined,
  ).data
  const needsAdmin = useLackOfAdmins()
  const waiting = useObject<PageOf<unknown>>(may('users:update') ? '/registrations?limit=1' : undefined).data
  const count = waiting?.pagination.total ?? 0
  const needsClient = clients?.data.length === 0
  if (!needsClient && !needsAdmin && count === 0) return null
  return (
    <Card title={words.overview.steps} flush>
      <ul class="rows">
        {count > 0 && (
          <Step
            icon="users"
            href="/console/registrations"
            title={words.nav.registrations}
            text={say(words.overview.waiting, { count })}
          />
        )}
        {needsClient && (
          <Step
            href="/console/clients/+new"
            title={words.clients.connect}
            text={words.overview.connectText}
          />
        )}
        {needsAdmin && (
          <Step href="/console/users/new" title={words.overview.second} text={words.overview.secondText} />
        )}
      </ul>
    </Card>
  )
}

interface Health {
  version: string
  data: { name: keyof typeof health.names; state: 'ok' | 'warn' | 'fail' | 'skip'; text: string }[]
}

const tones = { ok: 'good', warn: 'warn', fail: 'bad', skip: 'plain' } as const

const Findings = ({ found }: { found: Health['data'] }) => (
  <ul class="rows findings">
    {found.map(({ name, state, text }) => (
      <li key={name}>
        <Badge tone={tones[state]}>{health.states[state]}</Badge>
        <span>
          <strong>{health.names[name]}</strong>
          <span class="hint" {...inEnglish}>
            {text}
          </span>
          {name === 'mail' && state === 'warn' && (
            <span class="hint">
              <MailPlace />
            </span>
          )}
        </span>
      </li>
    ))}
  </ul>
)

/** Shows the findings of `gatehouse doctor`. Problems are always visible, other findings after a click. */
const HealthCard = () => {
  const { data, problem, reload } = useObject<Health>('/health')
  const troubles = data?.data.filter(({ state }) => state === 'warn' || state === 'fail') ?? []
  const others = data?.data.filter(finding => !troubles.includes(finding)) ?? []
  return (
    <Card title={health.title} flush aside={data && <span class="hint">Gatehouse {data.version}</span>}>
      {problem ? (
        <Failure problem={problem} retry={reload} />
      ) : !data ? (
        <Loading rows={2} />
      ) : (
        <>
          <Findings found={troubles} />
          <details>
            <summary>
              {troubles.length > 0
                ? say(health.others, { count: others.length })
                : say(health.fine, { count: others.filter(({ state }) => state === 'ok').length })}
            </summary>
            <Findings found={others} />
          </details>
        </>
      )}
    </Card>
  )
}

/**
 * Lists the screens that the person may open. This list replaces statistics and findings for a person who may
 * read neither.
 */
const Screens = () => (
  <Card flush>
    <ul class="rows">
      {menu().map(
        ([icon, title, href]) =>
          icon !== 'overview' && <Step key={href} icon={icon} href={href} title={title} />,
      )}
    </ul>
  </Card>
)

/** First screen: next steps, statistics and findings. */
export const OverviewScreen = () => {
  const [first] = person.value?.name.split(' ') ?? []
  return (
    <>
      <Heading title={words.nav.overview} lead={first && say(words.overview.welcome, { name: first })} />
      <div class="stack">
        <NextSteps />
        {may('settings:read') && <HealthCard />}
        {may('events:read') ? (
          <>
            <Activity />
            <Newest />
          </>
        ) : (
          !may('settings:read') && <Screens />
        )}
      </div>
    </>
  )
}
