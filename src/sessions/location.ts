import type { CityResponse, Reader } from 'maxmind'
import type { Context } from '#src/context.ts'

/** The place of an address as free text, "" when it is not known; in English where the language has no name for it. */
export type Locate = (ip_address: string, locale?: string) => string

const nowhere: Locate = () => ''

const locators = new Map<string, Promise<Locate>>()

/** Where addresses are, by the MaxMind-format file of the settings: read when the first session needs it, then from memory. */
export const openLocator = async ({ config, log }: Pick<Context, 'config' | 'log'>): Promise<Locate> => {
  const file = config.geoip_file
  if (file === undefined) return nowhere
  let locator = locators.get(file)
  if (!locator) {
    locator = open(file).catch(error => {
      log.warn({ event: 'geoip', file, err: error }, 'the file of places cannot be read: sessions show none')
      return nowhere
    })
    locators.set(file, locator)
  }
  return locator
}

/** The file is read anew when the next session needs it. */
export const forgetPlaces = (): void => locators.clear()

const open = async (file: string): Promise<Locate> => {
  const maxmind = await import('maxmind')
  const reader = await maxmind.open<CityResponse>(file)
  return (ip_address, locale = 'en') =>
    maxmind.validate(ip_address) ? describe(reader, ip_address, locale) : ''
}

const describe = (reader: Reader<CityResponse>, ip_address: string, locale: string): string => {
  const { city, country } = reader.get(ip_address) ?? {}
  // Files of MaxMind have Portuguese and Chinese as spoken in one country.
  const isSpoken = (tag: string) => tag === locale || tag.startsWith(`${locale}-`)
  const nameOf = ({ names }: { names: object }) =>
    Object.entries(names).find(([tag]) => isSpoken(tag))?.[1] ?? (names as { en?: string }).en
  return [city, country]
    .map(place => place && nameOf(place))
    .filter(Boolean)
    .join(', ')
}
