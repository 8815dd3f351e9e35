/** Helpers for the templates: names, initials, icons, device names, times. */

import { deviceOf } from '#src/lib/device.ts'
import { familyFirst } from '#src/lib/family-first.ts'
import { host } from '#src/protocol/oauth/redirect-uri.ts'
import type { PageUser } from './data.ts'
import { hasMessage, type Translate } from './translate.ts'

/** Returns the fields of a user's name in the order that the language uses. */
const namesIn = (locale: string) =>
  familyFirst.has(locale) ? (['last_name', 'first_name'] as const) : (['first_name', 'last_name'] as const)

/** Returns the functions with which the template of a page formats its data. */
export const viewTools = (locale: string, t: Translate) => ({
  names: namesIn(locale),
  initials,
  tone,
  host,
  isPowerful,
  displayName: (person: PageUser) =>
    namesIn(locale)
      .map(name => person[name])
      .join(' ')
      .trim() || person.username,
  scopeTitle: (name: string): string => {
    const key: string = `scope.${name}`
    return hasMessage(key) ? t(key) : name
  },
  isCovered,
  scopeIcon,
  words,
  device: (user_agent: string) => {
    const { browser, system } = deviceOf(user_agent)
    return browser && system
      ? t('account.device', { browser, system })
      : browser || system || t('account.device_unknown')
  },
  isHandheld: (user_agent: string) => /iPhone|Android|Mobile/.test(user_agent),
  wait: (seconds = 1) => wait(locale, seconds),
  /** Day in UTC, because a browser without page.js does not report its time zone. */
  date: (time: string) =>
    new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(Date.parse(time)),
  ago: (time: string, now: number) => ago(locale, Date.parse(time) - now),
})

/**
 * Returns one or two capital letters or digits for the avatar of a user, a client or an organization. Returns
 * `?` for a name without letters and digits.
 */
export const initials = (name: string): string => {
  const words = name.split(/[\s._-]+/).filter(word => /^[\p{L}\p{N}]/u.test(word))
  const letters = [words[0], words.length > 1 ? words.at(-1) : ''].map(word => [...(word ?? '')][0] ?? '')
  return letters.join('').toUpperCase() || '?'
}

/** Returns the avatar colour of a text as a number from 1 to 6. The same text always has the same colour. */
export const tone = (text: string): number => {
  let sum = 0
  for (const character of text) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 9973
  return (sum % 6) + 1
}

/**
 * Splits a command or URL at the places where a line may break: after a space, and between the parts of a URL
 * or setting.
 */
const words = (line: string): string[] => line.split(/(?<=[ =@]|\/(?!\/))/)

/** True for the scope `admin`, and for a scope that permits changes beyond the user's own profile. */
export const isPowerful = (scope: string): boolean =>
  scope === 'admin' || (/^\w+:(create|update|delete|revoke)$/.test(scope) && !scope.startsWith('profile:'))

/**
 * True for a scope that a list of scopes need not show, because the text of the scope `openid` names the same
 * data.
 */
const isCovered = (scope: string, scopes: readonly string[]): boolean =>
  (scope === 'profile' || scope === 'email') && scopes.includes('openid')

const icons: [RegExp, string][] = [
  [/^openid$/, 'id'],
  [/^profile/, 'person'],
  [/^email$/, 'mail'],
  [/^phone$/, 'phone'],
  [/^address$/, 'pin'],
  [/^offline_access$/, 'clock'],
  [/^admin$/, 'shield'],
  [/^(users|groups)(:|$)/, 'people'],
  [/^(roles|identity_providers)(:|$)/, 'shield'],
  [/^organizations:/, 'building'],
  [/^(clients|sessions):/, 'window'],
  [/^events:/, 'list'],
  [/^settings:/, 'sliders'],
]

const scopeIcon = (name: string): string => icons.find(([pattern]) => pattern.test(name))?.[1] ?? 'check'

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000_000],
  ['month', 2_592_000_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]

/**
 * Formats a number of seconds: below two minutes as seconds, otherwise as minutes, rounded up. A no-break
 * space joins the number and its unit.
 */
const wait = (locale: string, seconds: number): string => {
  const [count, unit] = seconds < 120 ? [seconds, 'second'] : [Math.ceil(seconds / 60), 'minute']
  const format = new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'long' })
  return format.format(count).replaceAll(' ', '\u00a0')
}

const ago = (locale: string, ms: number): string => {
  const format = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })
  const [unit, size] = units.find(([, length]) => Math.abs(ms) >= length) ?? [
    'second',
    Number.POSITIVE_INFINITY,
  ]
  return format.format(Math.trunc(ms / size) || 0, unit)
}
