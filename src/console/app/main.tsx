import { render } from 'preact'
import { Frame, Gate } from './frame.tsx'
import { onDemand, type Screen } from './on-demand.tsx'
import { startPalette } from './palette.tsx'
import { Heading } from './parts.tsx'
import { decoded, follow, opened, path, startRouter } from './router.ts'
import { OverviewScreen } from './screens/overview.tsx'
import { SessionError, startSession, watchIdleness } from './session.ts'
import { inEnglish, words } from './words.ts'

const screens: Record<string, Screen> = {
  '': OverviewScreen,
  users: onDemand(async () => (await import('./screens/users.tsx')).UsersScreen),
  'users/new': onDemand(async () => (await import('./screens/new-user.tsx')).NewUserScreen),
  invitations: onDemand(async () => (await import('./screens/invitations.tsx')).InvitationsScreen),
  registrations: onDemand(async () => (await import('./screens/registrations.tsx')).RegistrationsScreen),
  clients: onDemand(async () => (await import('./screens/clients.tsx')).ClientsScreen),
  // The path has a `+`, because the id of an application may be `new`, but contains no `+`.
  'clients/+new': onDemand(async () => (await import('./screens/new-client.tsx')).NewClientScreen),
  'dynamic-clients': onDemand(
    async () => (await import('./screens/dynamic-clients.tsx')).DynamicClientsScreen,
  ),
  apis: onDemand(async () => (await import('./screens/apis.tsx')).ApisScreen),
  sessions: onDemand(async () => (await import('./screens/sessions.tsx')).SessionsScreen),
  roles: onDemand(async () => (await import('./screens/roles.tsx')).RolesScreen),
  groups: onDemand(async () => (await import('./screens/groups.tsx')).GroupsScreen),
  organizations: onDemand(async () => (await import('./screens/organizations.tsx')).OrganizationsScreen),
  'identity-providers': onDemand(async () => (await import('./screens/providers.tsx')).ProvidersScreen),
  webhooks: onDemand(async () => (await import('./screens/webhooks.tsx')).WebhooksScreen),
  settings: onDemand(async () => (await import('./screens/settings.tsx')).SettingsScreen),
  events: onDemand(async () => (await import('./screens/events.tsx')).EventsScreen),
  guide: onDemand(async () => (await import('./screens/guide.tsx')).GuideScreen),
}

/** Screens that show one object, by the path before its id. */
const objects: Record<string, Screen> = {
  users: onDemand(async () => (await import('./screens/user.tsx')).UserScreen),
  invitations: onDemand(async () => (await import('./screens/invitation.tsx')).InvitationScreen),
  clients: onDemand(async () => (await import('./screens/client.tsx')).ClientScreen),
  apis: onDemand(async () => (await import('./screens/api.tsx')).ApiScreen),
  roles: onDemand(async () => (await import('./screens/roles.tsx')).RoleScreen),
  groups: onDemand(async () => (await import('./screens/groups.tsx')).GroupScreen),
  organizations: onDemand(async () => (await import('./screens/organization.tsx')).OrganizationScreen),
  guide: onDemand(async () => (await import('./screens/guide.tsx')).GuidePageScreen),
  looks: onDemand(async () => (await import('./screens/looks.tsx')).LooksScreen),
  'identity-providers': onDemand(async () => (await import('./screens/provider.tsx')).ProviderScreen),
  webhooks: onDemand(async () => (await import('./screens/webhook.tsx')).WebhookScreen),
}

const Shown = () => {
  const here = path.value.replace(/^\/console\/?/, '')
  const key = `${opened.value} ${here}`
  const Found = Object.hasOwn(screens, here) ? screens[here] : undefined
  if (Found) return <Found key={key} id="" />
  const [kind = '', id] = here.split(/\/(.*)/s)
  const One = Object.hasOwn(objects, kind) ? objects[kind] : undefined
  if (One && id) return <One key={key} id={decoded(id)} />
  return (
    <Heading
      key={key}
      title={words.common.missing}
      back={{ href: '/console', label: words.nav.overview }}
      lead={words.common.missingText}
    />
  )
}

const notices: Record<string, [title: string, text: string]> = {
  insecure: [words.stopped.insecure, words.stopped.insecureText],
  renewed: [words.stopped.renewed, words.stopped.renewedText],
}

/**
 * Shows why the console cannot start, and a link to try again or to the console's address. A window that has
 * renewed the token shows no link, because the person continues in the other window.
 */
const Stopped = ({ reason }: { reason: string }) => {
  const [, elsewhere] = /^elsewhere (.+)/.exec(reason) ?? []
  const [title, text] = elsewhere
    ? [words.stopped.elsewhere, words.stopped.elsewhereText]
    : (notices[reason] ?? [words.stopped.failed, reason])
  return (
    <main class="stopped">
      <Gate />
      <h1>{title}</h1>
      <p class="lead" {...(text === reason && inEnglish)}>
        {text}
      </p>
      {reason !== 'renewed' && (
        <a class="button primary" href={elsewhere ?? '/console'}>
          {elsewhere ? words.stopped.open : words.common.retry}
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
      <Shown />
    </Frame>
  )
  follow()
  render(<App />, root)
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error)
  if (!(error instanceof SessionError)) console.error(error)
  render(<Stopped reason={reason} />, root)
}
