import { FALLBACK_LOCALE, localeFiles } from '#src/http/locale.ts'
import type { MessageKey } from './data.ts'

export type Translate = (key: MessageKey, params?: Record<string, string | number>) => string

const loaded = new Map<string, Partial<Record<string, string>>>()

const messages = (locale: string) => {
  const known = loaded.get(locale)
  if (known) return known
  const read: Partial<Record<string, string>> = JSON.parse(localeFiles[`${locale}.json`] ?? '{}')
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
    (messages(locale)[key] ?? messages(FALLBACK_LOCALE)[key] ?? key)
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

export const hasMessage = (key: string): key is MessageKey => messages(FALLBACK_LOCALE)[key] !== undefined
