import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import type { MessageKey } from './page-data.ts'

const files = embed('templates/locales', ['.json'])
const fallback = 'en'
const right_to_left = new Set(['ar', 'arc', 'ckb', 'dv', 'fa', 'he', 'ku', 'ps', 'sd', 'ug', 'ur', 'yi'])

/** The languages that the pages speak, as BCP 47 tags. */
export const locales: readonly string[] = Object.keys(files).map(path => path.slice(0, -'.json'.length))

export type Translate = (key: MessageKey, params?: Record<string, string | number>) => string

const loaded = new Map<string, Partial<Record<string, string>>>()

const messages = (locale: string) => {
  const known = loaded.get(locale)
  if (known) return known
  const read: Partial<Record<string, string>> = JSON.parse(files[`${locale}.json`] ?? '{}')
  loaded.set(locale, read)
  return read
}

/**
 * Texts by key with `{name}` filled in; what a language lacks comes in English. A count chooses among forms, as in ICU
 * MessageFormat: `{count, plural, =0 {No code is} one {# code is} other {# codes are}} left.` The result is plain text, not HTML.
 */
export const translator =
  (locale: string): Translate =>
  (key, params = {}) =>
    (messages(locale)[key] ?? messages(fallback)[key] ?? key)
      .replace(/\{(\w+), plural,([^{}]*(?:\{[^{}]*\}[^{}]*)+)\}/g, (_, name, forms) =>
        choose(locale, forms, Number(params[name])),
      )
      .replace(/\{(\w+)\}/g, (hole, name) => String(params[name] ?? hole))

/** `=0` and its like go before the categories of https://cldr.unicode.org/index/cldr-spec/plural-rules */
const choose = (locale: string, forms: string, count: number): string => {
  const form = (name: string) => forms.match(`(?:^|\\s)${name} \\{([^}]*)\\}`)?.[1]
  const text = form(`=${count}`) ?? form(new Intl.PluralRules(locale).select(count)) ?? form('other') ?? ''
  return text.replaceAll('#', new Intl.NumberFormat(locale).format(count))
}

export const hasMessage = (key: string): key is MessageKey => messages(fallback)[key] !== undefined

export const direction = (locale: string): 'ltr' | 'rtl' =>
  right_to_left.has(locale.split('-')[0] ?? '') ? 'rtl' : 'ltr'

/**
 * The language of the pages: the first of `ui_locales` that is spoken here, then of Accept-Language, then English.
 * Matches as RFC 4647 section 3.4 (lookup): `pt-BR` finds `pt`. Never throws, whatever is sent.
 */
export const chooseLocale = (
  ui_locales: readonly string[],
  acceptLanguage: string | null,
  available: readonly string[] = locales,
): string => {
  const spoken = new Map(available.map(tag => [tag.toLowerCase(), tag]))
  for (const wanted of [...ui_locales, ...preferences(acceptLanguage ?? '')]) {
    if (wanted.length > 35) continue // RFC 5646 section 4.4.1
    for (let tag = wanted.toLowerCase(); tag; tag = tag.slice(0, Math.max(0, tag.lastIndexOf('-')))) {
      const found = spoken.get(tag)
      if (found) return found
    }
  }
  return fallback
}

const preferences = (header: string): string[] =>
  header
    .split(',', 100)
    .map(part => {
      const [tag = '', ...parameters] = part.split(';').map(text => text.trim())
      const quality = parameters.find(text => text.startsWith('q='))
      return { tag, quality: quality ? Number(quality.slice(2)) : 1 }
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality)
    .map(({ tag }) => tag)
