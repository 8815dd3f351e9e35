import type { IconName } from './icons.tsx'
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

const screens: [icon: IconName, title: string, href: string][] = [
  ['overview', nav.overview, ''],
  ['users', nav.users, '/users'],
  ['mail', nav.invitations, '/invitations'],
  ['users', nav.registrations, '/registrations'],
  ['clients', nav.clients, '/clients'],
  ['clients', nav.dynamicClients, '/dynamic-clients'],
  ['apis', nav.apis, '/apis'],
  ['sessions', nav.sessions, '/sessions'],
  ['roles', nav.roles, '/roles'],
  ['groups', nav.groups, '/groups'],
  ['organizations', nav.organizations, '/organizations'],
  ['providers', nav.providers, '/identity-providers'],
  ['webhooks', nav.webhooks, '/webhooks'],
  ['events', nav.events, '/events'],
  ['settings', nav.settings, '/settings'],
  ['guide', nav.guide, '/guide'],
]

/** Further words by which a person may look for a screen. */
const also: Record<string, string> = {
  '': `SMTP ${words.health.names.mail} ${words.health.title}`,
  '/events': words.common.events,
  '/settings': `${words.settings.keys} ${words.settings.backups}`,
}

/** The screens and actions of the console. */
export const actions: Found[] = [
  ...screens.map(
    ([icon, title, href]): Found => ({
      icon,
      title,
      about: palette.screen,
      href: `/console${href}`,
      also: also[href] ?? '',
    }),
  ),
  ...(
    [
      [palette.newUser, 'users/new'],
      [palette.invite, 'invitations'],
      [palette.newClient, 'clients/new'],
      [words.apis.add, 'apis'],
      [words.roles.add, 'roles'],
      [words.groups.add, 'groups'],
      [words.organization.add, 'organizations'],
      [words.providers.add, 'identity-providers'],
      [words.webhooks.add, 'webhooks'],
    ] as const
  ).map(([title, path]): Found => ({ icon: 'plus', title, about: palette.action, href: `/console/${path}` })),
  { icon: 'account', title: nav.account, about: palette.action, href: '/account', also: words.users.signOut },
]

/** Returns search entries that open parts of the settings of the person's own organization. */
export const ownSettings = (id: string): Found[] => [
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

const wordsOf = (text: string): string[] => text.toLowerCase().split(/\s+/)

/** True when each typed word is part of the title, or begins one of the further words. */
export const isMeant = ({ title, also = '' }: Found, typed: string): boolean =>
  wordsOf(typed).every(
    word => title.toLowerCase().includes(word) || wordsOf(also).some(each => each.startsWith(word)),
  )
