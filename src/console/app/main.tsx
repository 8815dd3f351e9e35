import { render } from 'preact'
import { Frame, Gate } from './frame.tsx'
import { Failure } from './parts.tsx'
import { partAfter, path, startRouter } from './router.ts'
import { ClientScreen } from './screens/client.tsx'
import { ClientsScreen } from './screens/clients.tsx'
import { EventsScreen } from './screens/events.tsx'
import { NewClientScreen } from './screens/new-client.tsx'
import { NewUserScreen } from './screens/new-user.tsx'
import { OverviewScreen } from './screens/overview.tsx'
import { UserScreen } from './screens/user.tsx'
import { UsersScreen } from './screens/users.tsx'
import { SessionError, startSession } from './session.ts'

const Screen = () => {
  const user_id = partAfter('/console/users')
  const client_id = partAfter('/console/clients')
  switch (path.value) {
    case '/console':
      return <OverviewScreen />
    case '/console/users':
      return <UsersScreen />
    case '/console/users/new':
      return <NewUserScreen />
    case '/console/clients':
      return <ClientsScreen />
    case '/console/clients/new':
      return <NewClientScreen />
    case '/console/events':
      return <EventsScreen />
  }
  if (user_id) return <UserScreen key={user_id} id={user_id} />
  if (client_id) return <ClientScreen key={client_id} id={client_id} />
  return <Failure problem={{ status: 404, error: 'not_found', error_description: '' }} />
}

const notices: Record<string, [title: string, text: string]> = {
  insecure: ['This address is not secure', 'The console needs https, or this machine itself.'],
  renewed: ['You are logged in', 'Close this window and go on where you were.'],
}

/** A page without session: why, and the way on. */
const Stopped = ({ reason }: { reason: string }) => {
  const [, elsewhere] = /^elsewhere (.+)/.exec(reason) ?? []
  const [title, text] = elsewhere
    ? ['The console is at another address', 'It works at the address of this instance alone.']
    : (notices[reason] ?? ['The login did not succeed', reason])
  return (
    <main class="stopped">
      <Gate />
      <h1>{title}</h1>
      <p class="lead">{text}</p>
      {reason !== 'renewed' && (
        <a class="button primary" href={elsewhere ?? '/console'}>
          {elsewhere ? 'Open it there' : 'Try again'}
        </a>
      )}
    </main>
  )
}

const root = document.createElement('div')
document.body.append(root)
try {
  await startSession()
  startRouter()
  const App = () => (
    <Frame>
      <Screen />
    </Frame>
  )
  dispatchEvent(new PopStateEvent('popstate'))
  render(<App />, root)
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error)
  if (!(error instanceof SessionError)) console.error(error)
  render(<Stopped reason={reason} />, root)
}
