/**
 * Tests the private parts of maxmind that src/sessions/geoip.ts uses: `Reader.decoder` and its methods
 * `decode`, `decodeString` and `decodeArray`. Gatehouse replaces these methods because the library does not
 * limit the values of a record. A damaged file with many or long values would block the event loop.
 */
import { expect, test } from 'bun:test'
import { type CityResponse, Reader } from 'maxmind'
import { mmdb } from '#test/support/mmdb.ts'

type Member = 'decode' | 'decodeString' | 'decodeArray'

const open = () =>
  new Reader<CityResponse>(
    mmdb([198, 51, 100], { city: { names: { en: 'Faro' } }, subdivisions: [{ a: 1 }] }),
  )

test.each([
  ['decode', 12],
  ['decodeString', 6],
  ['decodeArray', 1],
] as const)('Reader.decoder.%s is called for each value of its kind', (member, times) => {
  const reader = open()
  const decoder: Record<Member, (...args: unknown[]) => unknown> = Reflect.get(reader, 'decoder')
  const own = decoder[member].bind(decoder)
  const calls: unknown[][] = []
  decoder[member] = (...args) => {
    calls.push(args)
    return own(...args)
  }
  expect(reader.get('198.51.100.7')).toEqual({
    city: { names: { en: 'Faro' } },
    subdivisions: [{ a: 1 }],
  } as never)
  expect(calls).toHaveLength(times)
  // The arguments are decodeString(offset, size) and decodeArray(size, offset). The sizes are bounded.
  if (member === 'decodeString') expect(calls.map(([, size]) => size)).toContain('subdivisions'.length)
  if (member === 'decodeArray') expect(calls.map(([size]) => size)).toEqual([1])
})
