import { expect, test } from 'bun:test'
import { SECOND } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addUser, authorizeUrl, logInTo } from '#test/support/people.ts'
import { claimsOf, redeem, refresh } from '#test/support/tokens.ts'

const app = await startApp()
const shop = await addClient(app, 'shop', { consent_required: true })
await addClient(app, 'other')
await create(app, '/roles', { name: 'boss', permissions: [] })
const addApi = (name: string, role: string | null) =>
  create(app, '/apis', {
    identifier: `https://${name}.example`,
    name,
    scopes: [{ name: 'wipe', texts: { en: `May wipe ${name}` }, role }],
    clients: [{ client_id: 'shop', scopes: ['wipe'] }],
  })
const weather = await addApi('weather', null)
const payroll = await addApi('payroll', 'boss')
app.clock.advance(SECOND)

test('RES-08 a scope that two APIs have is granted for the API of the consent only', async () => {
  const carol = await addUser(app, 'carol')
  const browser = openBrowser(app)
  await logInTo(browser, 'other', 'carol')
  const resources = new URLSearchParams(
    ['weather', 'payroll'].map(name => ['resource', `https://${name}.example`]),
  )
  const url = `${authorizeUrl('shop', { scope: 'openid wipe' })}&${resources}`
  const consented = async () => {
    const rows = await app.context.store.read(async q => q.select().from(q.tables.consents))
    return rows.filter(({ user_id }) => user_id === carol.id).map(({ scopes }) => new Set(scopes))
  }
  /** Returns the scopes of a new token for the API, and the refresh token. */
  const refreshed = async (token: string, api: string) => {
    const { body } = await refresh(app, shop, token, { resource: `https://${api}.example` })
    expect([claimsOf(body.access_token).aud, claimsOf(body.access_token).scope]).toEqual([
      `https://${api}.example`,
      body.scope,
    ])
    return [body.scope, body.refresh_token] as const
  }

  const page = await browser.get(url)
  expect(page.html.match(/May wipe \w+/g)).toEqual(['May wipe weather'])
  const { code = '' } = answerOf(await browser.submit(page, { decision: 'approve' }))
  const shown = ['openid', weather.id, payroll.id, `${weather.id}/wipe`]
  expect(await consented()).toEqual([new Set(shown)])
  await app.admin('PUT', `/users/${carol.id}`, { roles: ['user', 'boss'] })
  const { body } = await redeem(app, shop, code, { resource: 'https://payroll.example' })
  expect(body.scope).toBe('openid')
  const [ofPayroll, next] = await refreshed(body.refresh_token, 'payroll')
  const [ofWeather, last] = await refreshed(next, 'weather')
  expect([ofPayroll, ofWeather]).toEqual(['openid', 'openid wipe'])
  const asked = new URLSearchParams({
    user_id: carol.id,
    scope: 'openid wipe',
    resource: 'https://payroll.example',
  })
  const tried = await app.admin('GET', `/clients/shop/test-login?${asked}`)
  expect(tried.body.access_token.claims.scope).toBe('openid wipe')
  await app.events()

  const again = await browser.get(url)
  expect(again.html).toContain('May wipe weather / May wipe payroll')
  expect(answerOf(await browser.submit(again, { decision: 'approve' })).code).toBeString()
  expect(await consented()).toEqual([new Set([...shown, `${payroll.id}/wipe`])])
  const [approved] = await refreshed(last, 'payroll')
  expect(approved).toBe('openid wipe')
  expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
    ['token.refreshed', { client_id: 'shop', resource: 'https://payroll.example' }],
  ])
})

test('a user who was not asked has the scope, also after consent was switched on', async () => {
  await app.admin('PUT', '/clients/shop', { consent_required: false })
  await addUser(app, 'dora', { roles: ['user', 'boss'] })
  const browser = openBrowser(app)
  await logInTo(browser, 'other', 'dora')
  const url = authorizeUrl('shop', { scope: 'openid wipe', resource: 'https://payroll.example' })
  const { code = '' } = answerOf(await browser.get(url))
  const { body } = await redeem(app, shop, code)
  expect(body.scope).toBe('openid wipe')
  await app.admin('PUT', '/clients/shop', { consent_required: true })
  const { body: later } = await refresh(app, shop, body.refresh_token)
  expect(later.scope).toBe('openid wipe')
})
