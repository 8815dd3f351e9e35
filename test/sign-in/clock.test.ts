/** Tests the effect of times that were stored while the clock was fast, after the clock is set back. */
import { expect, test } from 'bun:test'
import { HOUR } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'
import { addCode, claimsOf, redeem, refresh } from '#test/support/tokens.ts'

const app = await startApp()
await addClient(app, 'web')
const spa = await addClient(app, 'spa', { type: 'public', token_endpoint_auth_method: 'none' })

const attempt = async (username: string, password: string) => {
  const browser = openBrowser(app, { ip: '192.0.2.10' })
  return browser.submit(await browser.get(authorizeUrl('web')), { username, password })
}

test.each([
  ['one wrong password', 'alice', 1],
  ['wrong passwords that block the account', 'bob', 6],
])('O-35 %s while the clock is ahead', async (_, username, failures) => {
  await addUser(app, username)
  app.clock.advance(HOUR)
  for (let i = 0; i < failures; i++) await attempt(username, 'wrong')
  await app.events()
  app.clock.advance(-HOUR)
  expect(answerOf(await attempt(username, PASSWORD)).code).toBeString()
  // The login is recorded when its code is exchanged.
  expect(await app.events()).toEqual([])
})

test.each([
  ['one wrong code', 'carol', 1],
  ['wrong codes that block the network', 'dave', 30],
])('O-36 %s while the clock is ahead', async (_, username, failures) => {
  const user = await addUser(app, username)
  const code = await addCode(app, spa, user)
  app.clock.advance(HOUR)
  for (let i = 0; i < failures; i++) await redeem(app, spa, 'unknown')
  app.clock.advance(-HOUR)
  expect((await redeem(app, spa, 'unknown')).status).toBe(400)
  expect((await redeem(app, spa, code)).status).toBe(200)
  // Failures that are counted after the clock is set back still block the network.
  for (let i = 0; i < 30; i++) await redeem(app, spa, 'unknown')
  expect((await redeem(app, spa, 'unknown')).status).toBe(429)
  app.clock.advance(60_000)
})

test('R-07 a login while the clock was ahead is not a recent authentication', async () => {
  await addUser(app, 'erin')
  app.clock.advance(HOUR)
  const browser = openBrowser(app)
  await browser.submit(await browser.get(authorizeUrl('web')), { username: 'erin', password: PASSWORD })
  app.clock.advance(-HOUR)
  const page = await browser.get(authorizeUrl('web', { max_age: '60' }))
  expect(page.heading).toBe('Sign in')
  const change = await browser.follow(await browser.get('/account/change-password'))
  expect(change.heading).toBe('Confirm it’s you')
})

test('R-07 a client that was made while the clock was ahead redeems codes', async () => {
  const user = await addUser(app, 'frank')
  app.clock.advance(HOUR)
  const made = await addClient(app, 'late', { type: 'public', token_endpoint_auth_method: 'none' })
  app.clock.advance(-HOUR)
  const code = await addCode(app, made, user)
  expect((await redeem(app, made, code)).status).toBe(200)
})

test('R-07 an API that was made while the clock was ahead gets tokens', async () => {
  const user = await addUser(app, 'grace')
  const identifier = 'https://api.example'
  const clients = [{ client_id: 'spa', scopes: [] }]
  app.clock.advance(HOUR)
  await create(app, '/apis', { identifier, name: 'API', scopes: [], clients })
  app.clock.advance(-HOUR)
  const code = await addCode(app, spa, user, { resources: identifier })
  const { status, body } = await redeem(app, spa, code)
  expect([status, claimsOf(body.access_token).aud]).toEqual([200, identifier])
  expect((await refresh(app, spa, body.refresh_token)).status).toBe(200)
})

test('R-07 a client that registered itself while the clock was ahead is allowed once', async () => {
  await addUser(app, 'heidi')
  await app.admin('PUT', '/organizations/default', { settings: { client_registration: 'open' } })
  const redirect_uri = 'https://agent.example/callback'
  const metadata = { redirect_uris: [redirect_uri], token_endpoint_auth_method: 'none' }
  app.clock.advance(HOUR)
  const headers = { 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: JSON.stringify(metadata) }
  const { client_id } = await (await app.call('/oauth/register', init)).json()
  app.clock.advance(-HOUR)
  const url = authorizeUrl(client_id, { redirect_uri, scope: 'openid' })
  const browser = openBrowser(app)
  const consent = await signIn(browser, await browser.get(url), 'heidi')
  const approved = await browser.submit(consent, { decision: 'approve' }, '/oauth/consent')
  expect(answerOf(approved).code).toBeString()
  expect(answerOf(await browser.get(url)).code).toBeString()
  app.clock.advance(2 * HOUR)
  expect(answerOf(await browser.get(url)).code).toBeString()
})
