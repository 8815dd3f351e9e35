import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forgetPlaces } from '#src/sessions/location.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { mmdb } from '#test/support/mmdb.ts'
import { addClient, addUser, logInTo } from '#test/support/people.ts'
import { addCode, redeem } from '#test/support/tokens.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-places-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = (name: string, content: Uint8Array | string): string => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

/** What the session list shows as `location` for browsers at these addresses. */
const locations = async (geoip_file: string | undefined, ...addresses: string[]): Promise<string[]> => {
  const app = await startApp(geoip_file === undefined ? {} : { geoip_file })
  const user = await addUser(app, 'alice')
  const client = await addClient(app, 'shop')
  for (const ip_address of addresses) {
    const origin = { ip_address, user_agent: 'A browser' }
    await redeem(app, client, await addCode(app, client, user, { origin }))
  }
  const { body } = await app.admin('GET', '/sessions?order=asc')
  return body.data.map(({ location }: { location: string }) => location)
}

const city = { city: { names: { en: 'Reykjavík' } }, country: { names: { en: 'Iceland' } } }

test('SES-01 a session shows city and country of its browser, nothing for an address that is not known', async () => {
  const path = file('city.mmdb', mmdb([198, 51, 100], city))
  expect(await locations(path, '198.51.100.7', '198.51.101.7', '2001:db8::1', 'nonsense')).toEqual([
    'Reykjavík, Iceland',
    '',
    '',
    '',
  ])
})

test('a file that knows countries alone is enough', async () => {
  const path = file('country.mmdb', mmdb([198, 51, 100], { country: city.country }))
  expect(await locations(path, '198.51.100.7')).toEqual(['Iceland'])
})

test('SES-02 without a file, with a missing or a broken one, sessions show no place and logins go on', async () => {
  expect(await locations(undefined, '198.51.100.7')).toEqual([''])
  expect(await locations(join(folder, 'missing.mmdb'), '198.51.100.7')).toEqual([''])
  expect(await locations(file('broken.mmdb', 'no database'), '198.51.100.7')).toEqual([''])
})

test('places have the names of the language that they are asked for in, else the English ones', async () => {
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

test('a file that was replaced is read anew once the old places are forgotten', async () => {
  const path = file('replaced.mmdb', mmdb([198, 51, 100], { country: city.country }))
  expect(await locations(path, '198.51.100.7')).toEqual(['Iceland'])
  file('replaced.mmdb', mmdb([198, 51, 100], { country: { names: { en: 'Norway' } } }))
  expect(await locations(path, '198.51.100.7')).toEqual(['Iceland'])
  forgetPlaces()
  expect(await locations(path, '198.51.100.7')).toEqual(['Norway'])
})
