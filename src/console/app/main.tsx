import { type JSX, render } from 'preact'
import { Frame, Gate } from './frame.tsx'
import { startPalette } from './palette.tsx'
import { Failure } from './parts.tsx'
import { decoded, path, startRouter } from './router.ts'
import { ApiScreen } from './screens/api.tsx'
import { ApisScreen } from './screens/apis.tsx'
import { ClientScreen } from './screens/client.tsx'
import { ClientsScreen } from './screens/clients.tsx'
import { EventsScreen } from './screens/events.tsx'
import { GroupScreen, GroupsScreen } from './screens/groups.tsx'
import { NewClientScreen } from './screens/new-client.tsx'
import { NewUserScreen } from './screens/new-user.tsx'
import { OrganizationScreen } from './screens/organization.tsx'
import { OrganizationsScreen } from './screens/organizations.tsx'
import { OverviewScreen } from './screens/overview.tsx'
import { ProviderScreen, ProvidersScreen } from './screens/providers.tsx'
import { RoleScreen, RolesScreen } from './screens/roles.tsx'
import { SessionsScreen } from './screens/sessions.tsx'
import { SettingsScreen } from './screens/settings.tsx'
import { UserScreen } from './screens/user.tsx'
import { UsersScreen } from './screens/users.tsx'
import { WebhookScreen } from './screens/webhook.tsx'
import { WebhooksScreen } from './screens/webhooks.tsx'
import { SessionError, startSession, watchIdleness } from './session.ts'

const screens: Record<string, () => JSX.Element> = {
  '': OverviewScreen,
  users: UsersScreen,
  'users/new': NewUserScreen,
  clients: ClientsScreen,
  'clients/new': NewClientScreen,
  apis: ApisScreen,
  sessions: SessionsScreen,
  roles: RolesScreen,
  groups: GroupsScreen,
  organizations: OrganizationsScreen,
  'identity-providers': ProvidersScreen,
  webhooks: WebhooksScreen,
  settings: SettingsScreen,
  events: EventsScreen,
}

/** Screens of one object, by the path before its id. */
const objects: Record<string, (props: { id: string }) => JSX.Element> = {
  users: UserScreen,
  clients: ClientScreen,
  apis: ApiScreen,
  roles: RoleScreen,
  groups: GroupScreen,
  organizations: OrganizationScreen,
  'identity-providers': ProviderScreen,
  webhooks: WebhookScreen,
}

const Screen = () => {
  const here = path.value.replace(/^\/console\/?/, '')
  const Found = Object.hasOwn(screens, here) ? screens[here] : undefined
  if (Found) return <Found />
  const [kind = '', id] = here.split(/\/(.*)/s)
  const One = Object.hasOwn(objects, kind) ? objects[kind] : undefined
  if (One && id) return <One key={here} id={decoded(id)} />
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
  startPalette()
  watchIdleness()
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
