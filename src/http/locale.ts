import { embed } from '#src/lib/embed.ts' with { type: 'macro' }

export const localeFiles = embed('templates/locales', ['.json'])
export const FALLBACK_LOCALE = 'en'
const right_to_left = new Set(['ar', 'arc', 'ckb', 'dv', 'fa', 'he', 'ku', 'ps', 'sd', 'ug', 'ur', 'yi'])

/** The languages that the pages speak, as BCP 47 tags. */
export const locales: readonly string[] = Object.keys(localeFiles).map(path => path.slice(0, -'.json'.length))

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
  return FALLBACK_LOCALE
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
