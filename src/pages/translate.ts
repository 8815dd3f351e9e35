import { IntlMessageFormat } from 'intl-messageformat'
import { direction, FALLBACK_LOCALE } from '#src/http/locale.ts'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import type { MessageKey } from './data.ts'

type Params = Record<string, string | number>

export type Translate = (key: MessageKey, params?: Params) => string

type Texts = Partial<Record<string, string>>

/** Locale files (JSON) by name. */
const localeFiles = Object.freeze(embed('templates/locales', ['.json']))

const loaded = new Map<string, { name: string; texts: Texts; formats: Map<string, IntlMessageFormat> }>()

const language = (locale: string) => {
  const known = loaded.get(locale)
  if (known) return known
  const texts: Texts = JSON.parse(localeFiles[`${locale}.json`] ?? '{}')
  const [first = '', ...rest] = new Intl.DisplayNames(locale, { type: 'language' }).of(locale) ?? locale
  const name = first.toLocaleUpperCase(locale) + rest.join('')
  const read = { name, texts, formats: new Map<string, IntlMessageFormat>() }
  loaded.set(locale, read)
  return read
}

/** Returns the name of a language in that language, such as `Français`. */
export const languageName = (locale: string): string => language(locale).name

/**
 * Isolates each text parameter, because a left-to-right name, address or path would mix with the words of a
 * right-to-left sentence. Counts stay unchanged, because the plural rules read them.
 * https://www.unicode.org/reports/tr9/#Explicit_Directional_Isolates
 */
const isolated = (params: Params): Params =>
  Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      typeof value === 'string' && !/^\d+$/.test(value) ? `\u2068${value}\u2069` : value,
    ]),
  )

/**
 * Returns a function that formats the text of a key. Texts have the syntax of ICU MessageFormat: `{name}` and
 * `{count, plural, =0 {No code is} one {# code is} other {# codes are}} left.` A key that the language lacks
 * gets the English text. The result is plain text, not HTML.
 *
 * @throws Error when a parameter of the text is missing
 */
export const translator =
  (locale: string): Translate =>
  (key, params = {}) => {
    const { texts, formats } = language(locale)
    const text = texts[key]
    if (text === undefined) return locale === FALLBACK_LOCALE ? key : translator(FALLBACK_LOCALE)(key, params)
    if (!text.includes('{')) return text
    let format = formats.get(key)
    if (!format) {
      format = new IntlMessageFormat(text, locale, undefined, { ignoreTag: true })
      formats.set(key, format)
    }
    return String(format.format(direction(locale) === 'rtl' ? isolated(params) : params))
  }

/** True when English has a text for the key. */
export const hasMessage = (key: string): key is MessageKey =>
  language(FALLBACK_LOCALE).texts[key] !== undefined
