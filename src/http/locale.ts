import Negotiator from 'negotiator'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }

export const localeFiles = embed('templates/locales', ['.json'])
export const FALLBACK_LOCALE = 'en'
const right_to_left = new Set(['ar', 'arc', 'ckb', 'dv', 'fa', 'he', 'ku', 'ps', 'sd', 'ug', 'ur', 'yi'])

/** The languages that the pages speak, as BCP 47 tags. */
export const locales: readonly string[] = Object.keys(localeFiles).map(path => path.slice(0, -'.json'.length))

export const direction = (locale: string): 'ltr' | 'rtl' =>
  right_to_left.has(locale.split('-')[0] ?? '') ? 'rtl' : 'ltr'

/** RFC 5646 section 4.4.1. */
const LONGEST_TAG = 35
const MOST_TAGS = 100

/**
 * The language of the pages: the first of `ui_locales` that is available, then of Accept-Language, then English. Matches as
 * RFC 4647 section 3.4 (lookup): `pt-BR` finds `pt`. Never throws.
 */
export const chooseLocale = (
  ui_locales: readonly string[],
  acceptLanguage: string | null,
  available: readonly string[] = locales,
): string => {
  const spoken = new Map(available.map(tag => [tag.toLowerCase(), tag]))
  for (const wanted of [...ui_locales, ...preferences(acceptLanguage ?? '')]) {
    if (wanted.length > LONGEST_TAG) continue
    for (let tag = wanted.toLowerCase(); tag; tag = tag.slice(0, Math.max(0, tag.lastIndexOf('-')))) {
      const found = spoken.get(tag)
      if (found) return found
    }
  }
  return FALLBACK_LOCALE
}

const preferences = (header: string): string[] =>
  new Negotiator({ headers: { 'accept-language': header.split(',', MOST_TAGS).join() } }).languages()
