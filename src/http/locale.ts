import Negotiator from 'negotiator'
import { embeddedNames } from '#src/lib/embed.ts' with { type: 'macro' }

export const FALLBACK_LOCALE = 'en'
const right_to_left = new Set(['ar', 'arc', 'ckb', 'dv', 'fa', 'he', 'ku', 'ps', 'sd', 'ug', 'ur', 'yi'])

/** Languages of the pages, as BCP 47 tags. Their texts are loaded with the pages (pages/translate.ts). */
export const locales: readonly string[] = Object.freeze(embeddedNames('templates/locales', '.json'))

/** Returns the text direction of a locale. */
export const direction = (locale: string): 'ltr' | 'rtl' =>
  right_to_left.has(locale.split('-')[0] ?? '') ? 'rtl' : 'ltr'

/** Longest tag that is matched: https://www.rfc-editor.org/rfc/rfc5646#section-4.4.1 */
const MAX_TAG_LENGTH = 35
/** Maximum number of tags of Accept-Language that are matched; browsers send fewer than ten. */
const MAX_TAGS = 100

/**
 * Returns the language of the pages. This is the first available language of `wanted`, otherwise the first
 * available language of Accept-Language, otherwise English. Tags match by lookup, so `pt-BR` finds `pt`
 * (https://www.rfc-editor.org/rfc/rfc4647#section-3.4). Negotiator is used only to sort the languages of the
 * header. Its choice of a language would be wrong, because it prefers an exact match of a later language to a
 * prefix match of an earlier one.
 */
export const chooseLocale = (
  wanted: readonly string[],
  acceptLanguage: string | null,
  available: readonly string[] = locales,
): string => {
  const spoken = new Map(available.map(tag => [tag.toLowerCase(), tag]))
  for (const range of [...wanted, ...preferences(acceptLanguage ?? '')]) {
    if (range.length > MAX_TAG_LENGTH) continue
    for (let tag = range.toLowerCase(); tag; tag = tag.slice(0, Math.max(0, tag.lastIndexOf('-')))) {
      const found = spoken.get(tag)
      if (found) return found
    }
  }
  return FALLBACK_LOCALE
}

const preferences = (header: string): string[] =>
  new Negotiator({ headers: { 'accept-language': header.split(',', MAX_TAGS).join() } }).languages()
