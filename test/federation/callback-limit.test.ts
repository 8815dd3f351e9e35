import { expect, test } from 'bun:test'
import { type ChargeKind, charge } from '#src/http/rate-limits.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { startApp, type TestApp } from '#test/support/app.ts'
import { answerOf, openBrowser, type Page } from '#test/support/browser.ts'
import { addClient, authorizeUrl } from '#test/support/people.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { addSaml, arrive, certifiedProvider, comeBack, partyOf, post, setOut } from './saml/world.ts'
import { addProvider, atUpstream, goThrough, ISSUER, pathOf, startFederated } from './upstream.ts'

/**
 * Sends invalid callbacks until the network is blocked (429). Then uses up the network's budget for this kind
 * of work.
 */
const block = async (app: TestApp, ip: string, kind: 'outbound' | 'xml', refused: () => Promise<number>) => {
  for (let i = 0; i < 30; i++) expect(await refused()).toBe(400)
  expect(await refused()).toBe(429)
  spendAll(app, ip, kind)
}

const spendAll = (app: TestApp, ip: string, kind: ChargeKind) =>
  expect(() => {
    for (;;) charge(app.context, { ip_address: ip, organization_id: DEFAULT_ORGANIZATION, kind })
  }).toThrow()

test('H-23 a callback of the browser’s own upstream request passes the block of its network, once', async () => {
  const { app, upstream } = await startFederated()
  const ip = '198.51.100.30'
  await addClient(app, 'web')
  await addProvider(app, 'asking', { allow_registration: true })
  const [browser, stranger] = [openBrowser(app, { ip }), openBrowser(app, { ip })]
  const leave = (from: typeof browser): Promise<Page> =>
    from.get(authorizeUrl('web').replace('/oauth/authorize', '/oauth/social/asking'))
  const away = await leave(browser)
  expect(away.location).toStartWith(ISSUER)
  await leave(stranger)
  const bad = '/oauth/social/asking/callback?state=x&code=y'
  await block(app, ip, 'outbound', async () => (await stranger.get(bad)).status)
  const callback = pathOf(await atUpstream(upstream, away.location ?? ''))
  expect((await stranger.get(callback)).status).toBe(429)
  expect(answerOf(await browser.follow(await browser.get(callback))).code).toBeString()
  expect((await openBrowser(app, { ip }).get(callback)).status).toBe(429)
})

test('H-23 a SAML response passes the block, too, although it has no cookies', async () => {
  const app = await startApp()
  const idp = await certifiedProvider()
  const ip = '192.0.2.10'
  await addSaml(app, idp, 'corp', { allow_registration: true })
  const trip = await setOut(app, 'corp')
  await block(app, ip, 'xml', async () => {
    const answer = await post(app, 'corp', { SAMLResponse: 'x', RelayState: 'y' }, ip)
    return answer.status
  })
  expect((await arrive(app, idp, trip)).url).toBe('/account')
})

test('FED-17 forged callbacks from a network block no pending login there, by GET or form_post', async () => {
  const { app, upstream } = await startFederated()
  await addProvider(app, 'up')
  const there = () => openBrowser(app, { ip: '198.51.100.17' })
  for (let i = 0; i < 30; i++) expect((await there().get('/oauth/social/up/callback')).status).toBe(400)
  for (const answer of [
    await there().get('/oauth/social/up/callback?state=forged'),
    await there().post('/oauth/social/up/callback', 'state=forged', { origin: 'null' }),
  ])
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '60'])

  const redirected = await goThrough(there(), upstream, '/oauth/social/up')
  const browser = there()
  const { location } = await browser.get('/oauth/social/up')
  const form = new URL(await atUpstream(upstream, location ?? '')).searchParams.toString()
  const replay = await browser.post('/oauth/social/up/callback', form, { origin: 'null' })
  for (const page of [redirected, await browser.follow(replay)])
    expect([page.status, page.heading]).toEqual([200, 'Your account'])
})

test('FED-17 forged SAML responses from a network block no pending login there', async () => {
  const app = await startApp()
  const idp = await certifiedProvider()
  await addSaml(app, idp, 'corp')
  const ip = '192.0.2.17'
  for (let i = 0; i < 30; i++) expect((await post(app, 'corp', {}, ip)).status).toBe(400)
  expect((await post(app, 'corp', {}, ip)).status).toBe(429)
  expect((await post(app, 'corp', 'x'.repeat(300_000), ip)).status).toBe(429)
  const trip = await setOut(app, 'corp', '', openBrowser(app, { ip }))
  const response = encode(idp.respond({ ...ordinary(trip.party), name_id: 'robin' }))
  expect(await comeBack(app, trip, response, ip)).toMatchObject({ status: 200, heading: 'Your account' })
})

test('FED-17 an answer by POST passes when the network has used up its writes, an unsolicited one does not', async () => {
  const { app, upstream } = await startFederated()
  const idp = await certifiedProvider()
  const ip = '192.0.2.27'
  await addSaml(app, idp, 'corp', { allow_idp_initiated: true })
  await addProvider(app, 'up')
  const trip = await setOut(app, 'corp', '', openBrowser(app, { ip }))
  const browser = openBrowser(app, { ip })
  const { location } = await browser.get('/oauth/social/up')
  spendAll(app, ip, 'commit')
  const response = encode(idp.respond({ ...ordinary(trip.party), name_id: 'robin' }))
  expect(await comeBack(app, trip, response, ip)).toMatchObject({ status: 200, heading: 'Your account' })
  const form = new URL(await atUpstream(upstream, location ?? '')).searchParams.toString()
  const replay = await browser.post('/oauth/social/up/callback', form, { origin: 'null' })
  expect((await browser.follow(replay)).heading).toBe('Your account')
  const unsolicited = encode(idp.respond(ordinary(partyOf(app, 'corp'))))
  const stored = () => app.context.store.read(q => q.$count(q.tables.stored_posts))
  expect((await post(app, 'corp', { SAMLResponse: unsolicited }, ip)).status).toBe(429)
  expect(await stored()).toBe(0)
})

test('H-23 POSTs of one site, stored for other organizations, do not stop an answer by POST', async () => {
  const app = await startApp()
  const idp = await certifiedProvider()
  await addSaml(app, idp, 'corp', { allow_registration: true })
  const trip = await setOut(app, 'corp')
  const { charges } = app.context
  const clock = { now: () => app.clock.now() }
  for (const kind of ['stored_answer', 'stored_post'] as const)
    for (let i = 0; i < 32; i++) {
      const who = { ip_address: `2001:db8:1:${i}::1`, organization_id: `org_${i % 2}` } as const
      for (let n = 0; n < 64; n++)
        try {
          charge({ clock, charges }, { ...who, kind, units: 256 })
        } catch {}
    }
  expect((await arrive(app, idp, trip)).url).toBe('/account')
})

test('H-21 answers by POST are limited as writes, too, although they are small', async () => {
  const { app } = await startFederated()
  const ip = '192.0.2.37'
  await addProvider(app, 'up')
  const browser = openBrowser(app, { ip })
  const { location } = await browser.get('/oauth/social/up')
  const state = new URL(location ?? '').searchParams.get('state')
  const answer = () => browser.post('/oauth/social/up/callback', `state=${state}`, { origin: 'null' })
  const who = { ip_address: ip, organization_id: DEFAULT_ORGANIZATION }
  charge(app.context, { ...who, kind: 'stored_answer', units: 16 * 1_024 - 31 })
  expect([(await answer()).status, (await answer()).status]).toEqual([303, 429])
})

test('H-23 a refused callback leaves no event when its network has used up its writes', async () => {
  const { app } = await startFederated()
  const ip = '198.51.100.31'
  await addProvider(app, 'asking')
  const refused = async () =>
    (await openBrowser(app, { ip }).get('/oauth/social/asking/callback?state=x')).status
  expect(await refused()).toBe(400)
  expect((await app.events()).at(-1)?.type).toBe('user.login_failed')
  spendAll(app, ip, 'commit')
  expect(await refused()).toBe(429)
  expect(await app.events()).toEqual([])
})

test('H-21 an unsolicited response is charged each time that it is read', async () => {
  const app = await startApp()
  const idp = await certifiedProvider()
  const ip = '198.51.100.32'
  await addSaml(app, idp, 'corp', { allow_idp_initiated: true })
  const response = encode(idp.respond({ ...ordinary(partyOf(app, 'corp')), name_id: 'robin' }))
  const posted = await post(app, 'corp', { SAMLResponse: response }, ip)
  expect(posted.status).toBe(303)
  spendAll(app, ip, 'xml')
  const { status } = await openBrowser(app, { ip }).get(posted.headers.get('location') ?? '')
  expect(status).toBe(429)
  const logins = await app.context.store.read(q => q.$count(q.tables.logins))
  expect(logins).toBe(0)
})
