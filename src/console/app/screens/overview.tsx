import { Chart, type Point } from '../chart.tsx'
import { type PageOf, useObject } from '../hooks.ts'
import { Card, Empty, Failure, Heading, Icon, Loading } from '../parts.tsx'
import { person } from '../session.ts'
import { number, say, words } from '../words.ts'
import { EventRow, type LogEvent } from './event-row.tsx'

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

const Newest = () => {
  const { data, problem, reload } = useObject<PageOf<LogEvent>>('/events?limit=8')
  return (
    <Card title={words.overview.newest} flush aside={<a href="/console/events">{words.nav.events}</a>}>
      {problem ? (
        <Failure problem={problem} retry={reload} />
      ) : !data ? (
        <Loading rows={5} />
      ) : data.data.length === 0 ? (
        <Empty title={words.log.none} />
      ) : (
        <ul class="rows">
          {data.data.map(event => (
            <EventRow key={event.id} event={event} />
          ))}
        </ul>
      )}
    </Card>
  )
}

const Step = (props: { href: string; title: string; text: string }) => (
  <li>
    <a class="step" href={props.href}>
      <Icon name="plus" />
      <span>
        <strong>{props.title}</strong>
        <span class="hint">{props.text}</span>
      </span>
      <Icon name="right" />
    </a>
  </li>
)

/** The next steps of a new instance; the first admin client is no application. */
const NextSteps = () => {
  const clients = useObject<PageOf<{ kind: string | null }>>('/clients?limit=2').data
  const users = useObject<PageOf<unknown>>('/users?limit=1').data
  const needsClient = clients && clients.data.every(({ kind }) => kind === 'service')
  const needsUser = users && users.pagination.total < 2
  if (!needsClient && !needsUser) return null
  return (
    <Card title={words.overview.steps} flush>
      <ul class="rows">
        {needsClient && (
          <Step href="/console/clients/new" title={words.clients.connect} text={words.overview.connectText} />
        )}
        {needsUser && (
          <Step href="/console/users/new" title={words.overview.second} text={words.overview.secondText} />
        )}
      </ul>
    </Card>
  )
}

export const OverviewScreen = () => {
  const [first] = person.value?.name.split(' ') ?? []
  return (
    <>
      <Heading title={words.nav.overview} lead={first && say(words.overview.welcome, { name: first })} />
      <div class="stack">
        <NextSteps />
        <Activity />
        <Newest />
      </div>
    </>
  )
}
