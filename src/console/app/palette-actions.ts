import type { IconName } from './icons.tsx'
import { may } from './me.ts'
import { openPlaces } from './menu.ts'
import { person } from './session.ts'
import { words } from './words.ts'

/** An entry of the search: a screen, an action or an object. */
export interface Found {
  icon: IconName
  title: string
  about: string
  href: string
  /** Further words by which a person may look for the entry. */
  also?: string
}

const { nav, palette } = words

/** Further words by which a person may look for a screen. */
const also: Record<string, string> = {
  '/console': `SMTP ${words.health.names.mail} ${words.health.title}`,
  '/console/events': words.common.events,
  '/console/settings': `${words.settings.keys} ${words.settings.backups}`,
}

const additions = [
  [palette.newUser, 'users/new', 'users:create'],
  [palette.invite, 'invitations', 'users:create'],
  [palette.newClient, 'clients/+new', 'clients:create'],
  [words.apis.add, 'apis', 'apis:create'],
  [words.roles.add, 'roles', 'roles:create'],
  [words.groups.add, 'groups', 'groups:create'],
  [words.organization.add, 'organizations', 'organizations:create'],
  [words.providers.add, 'identity-providers', 'identity_providers:create'],
  [words.webhooks.add, 'webhooks', 'webhooks:create'],
] as const

/** Returns search entries that open parts of the settings of the person's own organization. */
const ownSettings = (id = person.value?.organization_id): Found[] => [
  {
    icon: 'settings',
    title: words.looks.title,
    about: words.common.settings,
    href: `/console/looks/${id}`,
    also: words.looks.pictures,
  },
  {
    icon: 'settings',
    title: words.organization.logins,
    about: words.common.settings,
    href: `/console/organizations/${id}#sign-in`,
    also: words.organization.passwords,
  },
]

/** Returns the screens and actions that the caller may use. */
export const actions = (): Found[] => [
  ...openPlaces().map(
    ([icon, title, href]): Found => ({ icon, title, about: palette.screen, href, also: also[href] ?? '' }),
  ),
  ...additions
    .filter(([, , permission]) => may(permission))
    .map(
      ([title, path]): Found => ({ icon: 'plus', title, about: palette.action, href: `/console/${path}` }),
    ),
  { icon: 'account', title: nav.account, about: palette.action, href: '/account', also: words.users.signOut },
  ...(may('organizations:read') ? ownSettings() : []),
]

const wordsOf = (text: string): string[] => text.toLowerCase().split(/\s+/)

/** True when each typed word is part of the title, or begins one of the further words. */
export const isMeant = ({ title, also = '' }: Found, typed: string): boolean =>
  wordsOf(typed).every(
    word => title.toLowerCase().includes(word) || wordsOf(also).some(each => each.startsWith(word)),
  )
