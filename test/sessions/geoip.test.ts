import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '#src/config.ts'
import { checkFiles } from '#src/operations/files.ts'
import { readPlaces } from '#src/sessions/geoip.ts'
import { START, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { mmdb, mmdbOf } from '#test/support/mmdb.ts'
import { addClient, addUser, logInTo } from '#test/support/people.ts'
import { freshStore } from '#test/support/store.ts'
import { addCode, redeem } from '#test/support/tokens.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-places-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = (name: string, content: Uint8Array | string): string => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

/** Returns the `location` in the session list for browsers at these addresses. */
const locations = async (geoip_file: string | undefined, ...addresses: string[]): Promise<string[]> => {
  const app = await startApp(geoip_file === undefined ? {} : { geoip_file })
  const user = await addUser(app, 'alice')
  const client = await addClient(app, 'shop')
  for (const ip_address of addresses) {
    const origin = { ip_address, user_agent: 'A browser' }
    await redeem(app, client, await addCode(app, client, user, { client_info: origin }))
  }
  const { body } = await app.admin('GET', '/sessions?order=asc')
  return body.data.map(({ location }: { location: string }) => location)
}

const city = { city: { names: { en: 'Reykjavík' } }, country: { names: { en: 'Iceland' } } }

test('SES-01 a session shows city and country of its browser, and nothing for an unknown address', async () => {
  const path = file('city.mmdb', mmdb([198, 51, 100], city))
  expect(await locations(path, '198.51.100.7', '198.51.101.7', '2001:db8::1', 'nonsense')).toEqual([
    'Reykjavík, Iceland',
    '',
    '',
    '',
  ])
})

test('a file with countries only is enough', async () => {
  const path = file('country.mmdb', mmdb([198, 51, 100], { country: city.country }))
  expect(await locations(path, '198.51.100.7')).toEqual(['Iceland'])
})

test('SES-02 without a file, or with a missing or broken file, sessions show no place and logins work', async () => {
  expect(await locations(undefined, '198.51.100.7')).toEqual([''])
  expect(await locations(join(folder, 'missing.mmdb'), '198.51.100.7')).toEqual([''])
  expect(await locations(file('broken.mmdb', 'no database'), '198.51.100.7')).toEqual([''])
})

test('places are named in the requested language, else in English', async () => {
  const names = { de: 'Lissabon', en: 'Lisbon', 'pt-BR': 'Lisboa' }
  const geoip_file = file(
    'names.mmdb',
    mmdb([198, 51, 100], { city: { names }, country: { names: { en: 'Portugal' } } }),
  )
  const app = await startApp({ geoip_file })
  const user = await addUser(app, 'alice')
  const client = await addClient(app, 'shop')
  const browser = openBrowser(app, { ip: '198.51.100.7' })
  const { code = '' } = await logInTo(browser, 'shop', user.username)
  await redeem(app, client, code)
  for (const [locale, place] of Object.entries({ de: 'Lissabon', pt: 'Lisboa', ja: 'Lisbon', en: 'Lisbon' }))
    expect((await browser.get('/account', { 'accept-language': locale })).html).toContain(
      `<bdi>${place}, Portugal</bdi>`,
    )
})

test('a replaced file is read once the cached places expire', async () => {
  const path = file('replaced.mmdb', mmdb([198, 51, 100], { country: city.country }))
  const app = await startApp({ geoip_file: path })
  const user = await addUser(app, 'alice')
  const client = await addClient(app, 'shop')
  const latest = async () => {
    await redeem(
      app,
      client,
      await addCode(app, client, user, {
        client_info: { ip_address: '198.51.100.7', user_agent: 'A browser' },
      }),
    )
    return (await app.admin('GET', '/sessions?order=desc')).body.data[0].location
  }
  expect(await latest()).toBe('Iceland')
  file('replaced.mmdb', mmdb([198, 51, 100], { country: { names: { en: 'Norway' } } }))
  expect(await latest()).toBe('Iceland')
  app.context.places.drop()
  expect(await latest()).toBe('Norway')
})

const SAMPLED: [number, number, number] = [198, 1, 1]
const reasonOf = (path: string): Promise<string> =>
  readPlaces(path).then(
    () => 'none',
    (error: Error) => error.message,
  )

/** Forms of a record in files of other vendors, or in damaged files. */
const unreadable: Record<string, Parameters<typeof mmdb>[1]> = {
  'names as plain texts': { city: 'Reykjavík', country: 'IS', country_name: 'Iceland' },
  'no names': { city: { geoname_id: 1 }, country: { iso_code: 'IS' } },
  'names that are no table': { city: { names: 'Reykjavík' }, country: { names: 3 } },
  'names that are no texts': { city: { names: { en: 1 } }, country: { names: { en: { a: 'b' } } } },
  'names of control characters': { country: { names: { en: 'a\u0000b' } } },
  'a text': 'Iceland',
  'a list': [1, 2],
}
const damaged: Record<string, Buffer> = {
  'an unknown type': Buffer.from([0, 250]),
  'a pointer to itself': Buffer.from([0b001_00_000, 0]),
  'a pointer beyond the end': Buffer.from([0b001_11_000, 0x7f, 0xff, 0xff, 0xff]),
  'a list of 16 million': Buffer.from([31, 4, 255, 255, 255]),
  'a table of 16 million': Buffer.concat([Buffer.from([255, 255, 255, 255]), Buffer.alloc(9_000, 0x40)]),
  'lists within lists': Buffer.alloc(20_000, Buffer.from([1, 4])),
  'a text of a mebibyte': Buffer.concat([Buffer.from([0x5f, 15, 0, 0]), Buffer.alloc(2 ** 20, 0x61)]),
}

test('H-26 an unreadable place is left out: codes are exchanged, and the account page is shown', async () => {
  const files = [
    ...Object.entries(unreadable).map(([name, place]) => [name, mmdb([198, 51, 100], place)] as const),
    ...Object.entries(damaged).map(([name, record]) => [name, mmdbOf([198, 51, 100], record)] as const),
  ]
  const store = await freshStore()
  for (const [index, [name, content]] of files.entries()) {
    const geoip_file = file(`${name}.mmdb`, content)
    const app = await startApp({ geoip_file }, { store })
    const user = await addUser(app, `user-${index}`)
    const client = await addClient(app, `shop-${index}`)
    const browser = openBrowser(app, { ip: '198.51.100.7' })
    const { code = '' } = await logInTo(browser, client.client_id, user.username)
    const { status } = await redeem(app, client, code)
    const page = await browser.get('/account')
    const { body } = await app.admin('GET', `/sessions?user_id=${user.id}`)
    const places = body.data.map(({ location }: { location: string }) => location)
    expect([name, status, page.status, places]).toEqual([name, 200, 200, ['']])
  }
})

test('H-26 a malformed member does not affect the others', async () => {
  const place = { city: 'Reykjavík', country: { names: { en: 'Iceland' } } }
  expect(await locations(file('half.mmdb', mmdb([198, 51, 100], place)), '198.51.100.7')).toEqual(['Iceland'])
})

test('H-26 the file is tested when it is opened, and its fault is reported', async () => {
  for (const [name, place] of Object.entries(unreadable))
    expect([name, await reasonOf(file('form.mmdb', mmdb(SAMPLED, place)))]).toEqual([
      name,
      "has no names of cities or countries in the fields of MaxMind's files",
    ])
  for (const [name, record] of Object.entries(damaged))
    expect([name, await reasonOf(file('damaged.mmdb', mmdbOf(SAMPLED, record)))]).toEqual([
      name,
      'has a damaged record (for 198.1.1.1)',
    ])
  expect(await reasonOf(file('good.mmdb', mmdb(SAMPLED, city)))).toBe('none')
  expect(await reasonOf(folder)).toBe('is not a regular file')
  const large = file('large.mmdb', '')
  truncateSync(large, 1024 ** 3 + 1)
  expect(await reasonOf(large)).toBe('is larger than 1 GiB')
})

test('H-26 checking the settings refuses an unusable GeoIP file and names it', async () => {
  const check = (geoip_file: string) => checkFiles({ ...loadConfig({}).config, geoip_file }, START)
  const path = file('vendor.mmdb', mmdb(SAMPLED, { city: 'Reykjavík', country: 'IS' }))
  await expect(check(path)).rejects.toThrow(
    `geoip_file: ${path} has no names of cities or countries in the fields of MaxMind's files.`,
  )
  await expect(check(join(folder, 'missing.mmdb'))).rejects.toThrow(
    /^geoip_file: .*missing.mmdb cannot be read \(ENOENT\)\.$/,
  )
  await check(file('checked.mmdb', mmdb(SAMPLED, city)))
})
