import type { CityResponse, Reader } from 'maxmind'
import type { Config } from '#src/config.ts'
import type { Locate, Places } from '#src/context.ts'
import type { Logger } from '#src/lib/log.ts'
import { isPlain } from '#src/lib/text.ts'

const nowhere: Locate = () => ''

/**
 * Returns the file that gives the place of an IP address. The first `open` reads the file, and so does the
 * first `open` after each `drop`. If the file cannot be read, this is logged, and every place is unknown.
 */
export const openPlaces = ({ geoip_file: file }: Config, log: Logger): Places => {
  const read = async (): Promise<Locate> => {
    if (file === undefined) return nowhere
    return readPlaces(file).catch(error => {
      log.warn({ event: 'geoip', file, err: error }, 'cannot read geoip_file: sessions have no location')
      return nowhere
    })
  }
  let locate: Promise<Locate> | undefined
  return {
    open: () => {
      locate ??= read()
      return locate
    },
    drop: () => {
      locate = undefined
    },
  }
}

/** Maximum size of a file in bytes. Commercial city files have half of this size. */
const MAX_BYTES = 1024 ** 3
/**
 * Maximum number of values in one record, and maximum size of one text in bytes. MaxMind's records have up to
 * 300 values.
 */
const MAX_VALUES = 2_000
const MAX_TEXT_BYTES = 1_024
/** Maximum length of a place name in characters. Answers and pages show the name. */
const MAX_NAME_LENGTH = 128

/**
 * Reads a file in MaxMind's format and looks up sample addresses. A file is refused when the record of a
 * sample is damaged. A file is also refused when samples have records, but no record names a city or country.
 * For every file, a later look-up never throws and decodes a limited number of values.
 *
 * @throws Error when the file is refused or cannot be read. The messages of this module continue a sentence
 *   that begins with the name of the file.
 */
export const readPlaces = async (file: string): Promise<Locate> => {
  const { Reader, validate } = await import('maxmind')
  const reader = await readBounded(file).then(content => bounded(new Reader<CityResponse>(content)))
  const find = (ip_address: string, locale: string): string | undefined => {
    const record = reader(ip_address)
    return record === null ? undefined : describe(Object(record), locale)
  }
  checkSamples(find)
  return (ip_address, locale = 'en') => {
    try {
      return (validate(ip_address) && find(ip_address, locale)) || ''
    } catch {
      return ''
    }
  }
}

const readBounded = async (file: string): Promise<Buffer> => {
  const { readFile, stat } = await import('node:fs/promises')
  const found = await stat(file)
  if (!found.isFile()) throw new Error('is not a regular file')
  if (found.size > MAX_BYTES) throw new Error('is larger than 1 GiB')
  return readFile(file)
}

/**
 * Private members of the library. They are used because the library has no limits of its own.
 * test/sessions/maxmind-contract.test.ts verifies these members.
 */
interface Decoder {
  decode(offset: number): unknown
  decodeString(offset: number, size: number): string
  decodeArray(size: number, offset: number): unknown
}

const bounded = (reader: Reader<CityResponse>): ((ip_address: string) => unknown) => {
  const decoder: Decoder = Reflect.get(reader, 'decoder')
  const decode = decoder.decode.bind(decoder)
  const decodeString = decoder.decodeString.bind(decoder)
  const decodeArray = decoder.decodeArray.bind(decoder)
  let left = 0
  decoder.decode = offset => {
    if (left-- <= 0) throw new RangeError('a record has too many values')
    return decode(offset)
  }
  decoder.decodeString = (offset, size) => {
    if (size > MAX_TEXT_BYTES) throw new RangeError('a text is too long')
    return decodeString(offset, size)
  }
  // The library allocates a list of the length that the file states, before it reads the members. For 16
  // million members this takes 205 to 320 ms.
  decoder.decodeArray = (size, offset) => {
    if (size > left) throw new RangeError('a list is too long')
    return decodeArray(size, offset)
  }
  return ip_address => {
    left = MAX_VALUES
    return reader.get(ip_address)
  }
}

/** One address of each IPv4 network from 1.0.0.0/8 to 223.0.0.0/8, and some IPv6 addresses. */
const SAMPLES = [
  ...Array.from({ length: 223 }, (_, i) => `${i + 1}.1.1.1`),
  ...['2001::1', '2400::1', '2600::1', '2800::1', '2a00::1', '2c00::1'],
]

const checkSamples = (find: (ip_address: string, locale: string) => string | undefined): void => {
  const found = SAMPLES.flatMap(ip_address => {
    try {
      return find(ip_address, 'en') ?? []
    } catch (cause) {
      throw new Error(`has a damaged record (for ${ip_address})`, { cause })
    }
  })
  if (found.length > 0 && !found.some(Boolean))
    throw new Error("has no names of cities or countries in the fields of MaxMind's files")
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

const describe = (record: object, locale: string): string => {
  const { city, country } = record as { city?: unknown; country?: unknown }
  return [city, country]
    .map(place => nameOf(place, locale))
    .filter(Boolean)
    .join(', ')
}

/**
 * Returns the name of a city or country in the language `locale`, or in English when the file has no name in
 * this language. Returns undefined when the data is not in MaxMind's format, or when the name is missing, too
 * long or not plain text.
 */
const nameOf = (place: unknown, locale: string): string | undefined => {
  if (!isObject(place) || !('names' in place) || !isObject(place.names)) return undefined
  // In MaxMind files the language tags of Portuguese and Chinese have a region: pt-BR, zh-CN.
  const isSpoken = (tag: string) => tag === locale || tag.startsWith(`${locale}-`)
  const names = Object.entries(place.names)
  const name: unknown = [isSpoken, (tag: string) => tag === 'en']
    .map(fits => names.find(([tag]) => fits(tag))?.[1])
    .find(Boolean)
  return typeof name === 'string' && name.length <= MAX_NAME_LENGTH && isPlain(name) ? name : undefined
}
