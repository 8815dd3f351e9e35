import { deviceOf } from '#src/lib/device.ts'
import { familyFirst } from '#src/lib/family-first.ts'
import type english from './words/en.json'

/**
 * A text, or its forms by plural category:
 * https://www.unicode.org/reports/tr35/tr35-numbers.html#Language_Plural_Rules
 */
type Text = string | Partial<Record<Intl.LDMLPluralRule, string>>

/**
 * Texts of a language, with the same keys as in English. The plural forms of a text depend on the language.
 */
type Words<T> = {
  [Key in keyof T]: T[Key] extends string ? string : T[Key] extends { other: string } ? Text : Words<T[Key]>
}
type Load = () => Promise<{ default: Words<typeof english> }>

const loadEnglish: Load = () => import('./words/en.json')
const languages: Record<string, Load> = {
  en: loadEnglish,
  ar: () => import('./words/ar.json'),
  de: () => import('./words/de.json'),
  es: () => import('./words/es.json'),
  fr: () => import('./words/fr.json'),
  it: () => import('./words/it.json'),
  ja: () => import('./words/ja.json'),
  pl: () => import('./words/pl.json'),
  pt: () => import('./words/pt.json'),
}

const { lang: language, dir } = document.documentElement

/** Texts of the console, in the language that the server has chosen for the page. */
export const words: Words<typeof english> = (await (languages[language] ?? loadEnglish)()).default

/** Attributes of an element whose text is English in every language, such as a message of the API. */
export const inEnglish = { lang: 'en', dir: 'ltr' } as const

const plurals = new Intl.PluralRules(language)

/**
 * Isolates a text from the direction of the surrounding words. Only right-to-left languages need isolation.
 */
const isolated = (text: string): string => (dir === 'rtl' ? `\u2068${text}\u2069` : text)

/** Joins the texts that are not empty. Each text keeps its own direction. */
export const joined = (texts: readonly (string | null | undefined | false)[]): string =>
  texts.flatMap(text => (text ? isolated(text) : [])).join(' · ')

/** Returns the first and the last name of a person, or their fields, in the order of the language. */
export const nameOrder = <T>(first: T, last: T): T[] =>
  familyFirst.has(language) ? [last, first] : [first, last]

/** Fills in the `{name}` parameters of a text. `count` chooses the plural form. */
export const say = (text: Text, params: Record<string, string | number>): string => {
  const form =
    typeof text === 'string' ? text : (text[plurals.select(Number(params.count))] ?? text.other ?? '')
  return form.replace(/\{(\w+)\}/g, (_, name) => {
    const value = params[name] ?? ''
    return typeof value === 'number' ? number(value) : isolated(value)
  })
}

/**
 * Returns the number of shown rows and the total as text. A total above 10,000 is shown as "more than
 * 10,000", because the API counts the rows of a filtered list no further.
 */
export const shownOf = (shown: number, total: number): string =>
  total > 10_000 ? say(words.common.ofMany, { shown, total: 10_000 }) : say(words.common.of, { shown, total })

const numbers = new Intl.NumberFormat(language)
/** Formats a number in the language of the page. */
export const number = (value: number): string => numbers.format(value)

const sizes = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']

/** Formats a number of bytes in the largest unit in which the number is at least 1. */
export const bytes = (value: number): string => {
  const power = value < 1000 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), sizes.length - 1)
  const style = { style: 'unit', unit: sizes[power] ?? 'byte', maximumFractionDigits: 1 } as const
  return new Intl.NumberFormat(language, style).format(value / 1000 ** power)
}

/** Returns a number with its unit, such as "7 days". */
export const withUnit = (value: number, unit: 'minute' | 'hour' | 'day'): string =>
  new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' }).format(value)

const dates = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' })
const days = new Intl.DateTimeFormat(language, { month: 'short', day: 'numeric', timeZone: 'UTC' })
const exactDates = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' })
const exactTimes = new Intl.DateTimeFormat(language, {
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  second: '2-digit',
})
const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })

/** Formats an ISO 8601 time as date and time. */
export const fullDate = (time: string): string => dates.format(new Date(time))
/** Formats an ISO 8601 time as date and time with seconds. */
export const exactDate = (time: string): string => exactDates.format(new Date(time))
const formatOf = (at: Date): Intl.DateTimeFormat =>
  at.getFullYear() === new Date().getFullYear() ? exactTimes : exactDates
/** Formats an ISO 8601 time as date and time with seconds. Omits the current year. */
export const exactTime = (time: string): string => {
  const at = new Date(time)
  return formatOf(at).format(at)
}
/**
 * Formats two ISO 8601 times as a range with seconds. Omits the year when the range starts in the current
 * year.
 */
export const dateRange = (from: string, to: string): string => {
  const start = new Date(from)
  return formatOf(start).formatRange(start, new Date(to))
}
/** Formats an ISO 8601 time as a date in UTC, because the days of the statistics are days in UTC. */
export const dayOf = (time: string): string => days.format(new Date(time))

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** Returns a time as text relative to now. A time more than a week away is returned as date and time. */
export const ago = (time: string): string => {
  const seconds = (Date.parse(time) - Date.now()) / 1000
  if (Math.abs(seconds) > 7 * 86_400) return fullDate(time)
  const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1]
  return unit === 'second' ? words.common.justNow : relative.format(Math.round(seconds / length), unit)
}

/**
 * Returns the names of the browser and the operating system in a user agent. Returns the first 60 characters
 * of an unknown user agent.
 */
export const programOf = (user_agent: string): string => {
  const { browser, system } = deviceOf(user_agent)
  return [browser, system].filter(Boolean).join(', ') || user_agent.slice(0, 60)
}

/** Returns the title of an event type. An unknown type is returned unchanged. */
export const eventTitle = (type: string): string =>
  (words.eventTitles as Record<string, string>)[type] ?? type
