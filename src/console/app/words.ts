import type { EventType } from '#src/audit/types.ts'
import { screenWords } from './screen-words.ts'

/** The words of the console. */
export const words = {
  ...screenWords,
  nav: {
    overview: 'Overview',
    users: 'Users',
    clients: 'Applications',
    apis: 'APIs',
    sessions: 'Sessions',
    organizations: 'Organizations',
    roles: 'Roles',
    groups: 'Groups',
    providers: 'Identity providers',
    webhooks: 'Webhooks',
    settings: 'Settings',
    events: 'Audit log',
    account: 'Your account',
    menu: 'Menu',
    skip: 'Skip to content',
  },
  common: {
    loading: 'Loading',
    retry: 'Try again',
    save: 'Save changes',
    saved: 'Saved',
    cancel: 'Cancel',
    create: 'Create',
    close: 'Close',
    copy: 'Copy',
    copied: 'Copied',
    more: 'Show more',
    all: 'All',
    yes: 'Yes',
    no: 'No',
    never: 'Never',
    back: 'Back',
    unsaved: 'Unsaved changes',
    requestId: 'Request id',
    forbidden: 'No permission',
    forbiddenText: 'Your roles do not allow you to see this. An administrator can change them.',
    missing: 'Not found',
    missingText: 'It does not exist, or belongs to an organization that you may not see.',
    failed: 'This could not be loaded',
    of: (shown: number, total: number) =>
      `${shown} of ${total > 10_000 ? 'more than 10,000' : number(total)}`,
    asCurl: 'As curl',
    choose: 'Choose one to add',
    nothingLeft: 'Nothing left to add',
    removeOne: (name: string) => `Remove ${name}`,
    users: (count: number) => `${number(count)} ${count === 1 ? 'user' : 'users'}`,
    members: (count: number) => `${number(count)} ${count === 1 ? 'member' : 'members'}`,
  },
  palette: {
    title: 'Search or go to',
    results: 'Results',
    screen: 'Screen',
    action: 'Action',
    role: 'Role',
    newUser: 'Add a user',
    newClient: 'Connect an application',
    none: 'Nothing fits.',
  },
  renewal: {
    step_up: 'Confirm that it is you',
    step_upText: 'This step needs a login of the last few minutes. Your entries stay here.',
    ended: 'Your login has ended',
    endedText: 'Log in again to go on. Your entries stay here.',
    go: 'Continue',
  },
  conflict: {
    title: 'Someone else changed this meanwhile',
    text: 'These fields differ from what you started with:',
    theirs: 'Use theirs',
    mine: 'Keep mine and save',
  },
}

const numbers = new Intl.NumberFormat('en')
export const number = (value: number): string => numbers.format(value)

const sizes = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']

/** Returns a number of bytes in the largest unit that fits. */
export const bytes = (value: number): string => {
  const power = value < 1000 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), sizes.length - 1)
  const style = { style: 'unit', unit: sizes[power] ?? 'byte', maximumFractionDigits: 1 } as const
  return new Intl.NumberFormat('en', style).format(value / 1000 ** power)
}

const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })
const days = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

export const fullDate = (time: string): string => dates.format(new Date(time))
export const dayOf = (time: string): string => days.format(new Date(time))

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** Returns how long ago a time was; the date itself after a week. */
export const ago = (time: string): string => {
  const seconds = (Date.parse(time) - Date.now()) / 1000
  if (Math.abs(seconds) > 7 * 86_400) return fullDate(time)
  const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1]
  return unit === 'second' ? 'just now' : relative.format(Math.round(seconds / length), unit)
}

const browsers = /\b(Firefox|Edg|OPR|Chrome|Version|curl)\/(\d+)/
const systems = /\b(Windows|Android|iPhone|iPad|Mac OS X|Linux)\b/
const shortNames: Record<string, string> = {
  Edg: 'Edge',
  OPR: 'Opera',
  Version: 'Safari',
  'Mac OS X': 'macOS',
}

/** Returns browser and system of a user agent; an unknown one as it is, cut to 60 characters. */
export const programOf = (user_agent: string): string => {
  const [browser, system] = [browsers, systems].map(kind => kind.exec(user_agent)?.[1] ?? '')
  const known = [browser, system].filter(Boolean).map(name => shortNames[name ?? ''] ?? name)
  return known.length > 0 ? known.join(', ') : user_agent.slice(0, 60)
}

const events: Partial<Record<EventType, string>> = {
  'user.created': 'User created',
  'user.updated': 'User changed',
  'user.deleted': 'User deleted',
  'user.enabled': 'User enabled',
  'user.disabled': 'User disabled',
  'user.password_changed': 'Password changed',
  'user.password_reset': 'Password set by an administrator',
  'user.login': 'Logged in',
  'user.login_failed': 'Login failed',
  'user.logout': 'Logged out',
  'user.mfa_enabled': 'Second factor added',
  'user.mfa_disabled': 'Second factor removed',
  'token.issued': 'Token issued',
  'token.refreshed': 'Token refreshed',
  'token.revoked': 'Token revoked',
  'token.introspected': 'Token introspected',
  'session.created': 'Session started',
  'session.revoked': 'Session revoked',
  'session.expired': 'Session expired',
  'client.created': 'Application registered',
  'client.updated': 'Application changed',
  'client.deleted': 'Application deleted',
  'client.secret_regenerated': 'New client secret',
  'client.request_refused': 'Authorization request refused',
  'role.created': 'Role created',
  'role.updated': 'Role changed',
  'role.deleted': 'Role deleted',
  'group.created': 'Group created',
  'group.updated': 'Group changed',
  'group.deleted': 'Group deleted',
  'identity_provider.created': 'Identity provider added',
  'identity_provider.updated': 'Identity provider changed',
  'identity_provider.deleted': 'Identity provider removed',
  'client.registered': 'Application registered itself',
  'client.first_used': 'Application used for the first time',
  'client.metadata_changed': 'Application changed its metadata',
  'client.forgotten': 'Unused application removed',
  'initial_access_token.created': 'Registration token created',
  'invitation.created': 'Invitation created',
  'invitation.sent': 'Invitation sent',
  'invitation.accepted': 'Invitation accepted',
  'invitation.withdrawn': 'Invitation withdrawn',
  'webhook.created': 'Webhook created',
  'webhook.updated': 'Webhook changed',
  'webhook.deleted': 'Webhook deleted',
  'webhook.secret_rotated': 'New secret of a webhook',
  'webhook.disabled': 'Webhook switched off by the server',
  'api.created': 'API created',
  'api.updated': 'API changed',
  'api.deleted': 'API deleted',
  'organization.created': 'Organization created',
  'organization.updated': 'Organization changed',
  'organization.deleted': 'Organization deleted',
  'admin.settings_changed': 'Server settings changed',
}

/** Returns what an event says; an unknown type is shown as it is. */
export const eventTitle = (type: string): string => events[type as EventType] ?? type
