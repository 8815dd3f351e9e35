import { Chart, type Point } from '../chart.tsx'
import { type PageOf, useObject } from '../hooks.ts'
import { Card, Empty, Failure, Heading, Icon, Loading } from '../parts.tsx'
import { person } from '../session.ts'
import { number } from '../words.ts'
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
    <Card title="Logins" lead="The last 30 days">
      {problem ? (
        <Failure problem={problem} retry={reload} />
      ) : !data ? (
        <Loading rows={4} />
      ) : (
        <>
          <dl class="figures">
            <Figure label="Logins" value={sum(data.data, 'logins')} tone="good" />
            <Figure label="Failed logins" value={sum(data.data, 'failed_logins')} tone="bad" />
            <Figure label="Active today" value={data.data.at(-1)?.active_users ?? 0} />
            <Figure label="New users" value={sum(data.data, 'new_users')} />
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
    <Card title="Newest events" flush aside={<a href="/console/events">Audit log</a>}>
      {problem ? (
        <Failure problem={problem} retry={reload} />
      ) : !data ? (
        <Loading rows={5} />
      ) : data.data.length === 0 ? (
        <Empty title="Nothing has happened yet" />
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
    <Card title="Next steps" flush>
      <ul class="rows">
        {needsClient && (
          <Step
            href="/console/clients/new"
            title="Connect an application"
            text="Get its client id and a program that logs in."
          />
        )}
        {needsUser && (
          <Step
            href="/console/users/new"
            title="Add a second person"
            text="Someone else can help when you are locked out."
          />
        )}
      </ul>
    </Card>
  )
}

export const OverviewScreen = () => {
  const [first] = person.value?.name.split(' ') ?? []
  return (
    <>
      <Heading title="Overview" lead={first && `Welcome, ${first}.`} />
      <div class="stack">
        <NextSteps />
        <Activity />
        <Newest />
      </div>
    </>
  )
}
