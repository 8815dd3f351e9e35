import { beforeEach, expect, test } from 'bun:test'
import { startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { addSaml, certifiedProvider, partyOf, post, setOut } from './world.ts'

const idp = await certifiedProvider()
let app: TestApp
beforeEach(async () => {
  app = await startApp()
  await addSaml(app, idp, 'open', { allow_idp_initiated: true })
})
const unasked = (name_id: string) => encode(idp.respond({ ...ordinary(partyOf(app, 'open')), name_id }))
const bodies = async () =>
  (await app.context.store.read(async q => q.select().from(q.tables.stored_posts))).map(({ body }) => body)

test('H-21 an unsolicited assertion is stored once, whatever is posted beside it, and signs in once', async () => {
  const assertion = unasked('robin')
  await app.events()
  for (let i = 0; i < 120; i++) {
    const fields = { SAMLResponse: assertion, RelayState: `${i}`, more: 'x'.repeat(i) }
    expect((await post(app, 'open', fields)).status).toBe(303)
  }
  expect(await bodies()).toHaveLength(1)
  await post(app, 'open', { SAMLResponse: unasked('robin') })
  expect([(await bodies()).length, await app.events()]).toEqual([2, []])
  const location = (await post(app, 'open', { SAMLResponse: assertion })).headers.get('location') ?? ''
  const browser = openBrowser(app)
  expect((await browser.follow(await browser.get(location))).url).toBe('/account')
  expect((await browser.get(location)).status).toBe(400)
})

test('H-21 a network may store 16 MiB at most; other networks are served, and later this network too', async () => {
  const ip = '198.51.100.21'
  const filler = 'x'.repeat(250 * 1_024)
  const answers: number[] = []
  for (let i = 0; i < 70; i++) {
    const { relay_state } = await setOut(app, 'open')
    answers.push((await post(app, 'open', { SAMLResponse: filler, RelayState: relay_state }, ip)).status)
  }
  expect([answers.filter(status => status === 303).length, answers.at(-1)]).toEqual([65, 429])
  expect(await bodies()).toHaveLength(65)
  const { relay_state } = await setOut(app, 'open')
  const last = (from: string) => post(app, 'open', { SAMLResponse: filler, RelayState: relay_state }, from)
  const refused = await last(ip)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '4'])
  expect((await last('203.0.113.21')).status).toBe(303)
  app.clock.advance(4_000)
  expect((await last(ip)).status).toBe(303)
})
