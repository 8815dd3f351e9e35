import { expect, test } from 'bun:test'
import { encode, ordinary } from '#test/fixtures/saml/identity-provider.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addSaml, certifiedProvider, comeBack, post, setOut } from './saml/world.ts'
import { addProvider, atUpstream, goThrough, startFederated } from './upstream.ts'

test('FED-17 forged callbacks from a network close no login that is under way there, by GET or form_post', async () => {
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

test('FED-17 forged SAML responses from a network close no login that is under way there', async () => {
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
