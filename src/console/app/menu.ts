import type { IconName } from './icons.tsx'
import { may, mayListOrganizations, me } from './me.ts'
import { person } from './session.ts'
import { words } from './words.ts'

const { nav } = words

type Place = readonly [icon: IconName, title: string, href: string, permission: string, group?: number]

const ORGANIZATIONS = '/console/organizations'

/**
 * The screens that the menu and the search open. Each screen has the permission that it needs, or '' when it
 * needs none. The menu shows the screens with a group: the overview, people, applications, the server.
 */
const places: readonly Place[] = [
  ['overview', nav.overview, '/console', '', 0],
  ['users', nav.users, '/console/users', 'users:read', 1],
  ['mail', nav.invitations, '/console/invitations', 'users:read'],
  ['users', nav.registrations, '/console/registrations', 'users:read'],
  ['groups', nav.groups, '/console/groups', 'groups:read', 1],
  ['roles', nav.roles, '/console/roles', 'roles:read', 1],
  ['sessions', nav.sessions, '/console/sessions', 'sessions:read', 1],
  ['clients', nav.clients, '/console/clients', 'clients:read', 2],
  ['clients', nav.dynamicClients, '/console/dynamic-clients', 'clients:read'],
  ['apis', nav.apis, '/console/apis', 'apis:read', 2],
  ['providers', nav.providers, '/console/identity-providers', 'identity_providers:read', 2],
  ['webhooks', nav.webhooks, '/console/webhooks', 'webhooks:read', 2],
  ['organizations', nav.organizations, ORGANIZATIONS, 'organizations:read', 3],
  ['events', nav.events, '/console/events', 'events:read', 3],
  ['settings', nav.settings, '/console/settings', 'settings:read', 3],
  ['guide', nav.guide, '/console/guide', '', 3],
]

/**
 * Returns the screens that the caller may open. A caller who may not list the organizations gets the screen
 * of the own organization in place of the list.
 */
export const openPlaces = (): Place[] =>
  (me.value ? places : [])
    .filter(([, , , permission]) => permission === '' || may(permission))
    .map(([icon, title, href, ...more]) =>
      href === ORGANIZATIONS && !mayListOrganizations()
        ? [icon, words.log.organization, `${href}/${person.value?.organization_id}`, ...more]
        : [icon, title, href, ...more],
    )

/** Returns the screens of the menu that the caller may open. */
export const menu = (): Place[] => openPlaces().filter(([, , , , group]) => group !== undefined)
