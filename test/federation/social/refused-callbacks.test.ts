import { beforeEach, describe, expect, test } from 'bun:test'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { addOrganization } from '#test/support/people.ts'
import { addProvider, atUpstream, goThrough, ISSUER, pathOf } from '../upstream.ts'
import { startRefusals } from './refusals.ts'

const { app, upstream, honest, fresh, expectRefusal } = await startRefusals()

beforeEach(async () => {
  honest()
  await app.events()
})

describe('O-24 a callback that does not belong to this browser', () => {
  const begin = async (browser: Browser, alias = 'up'): Promise<string> => {
    const away = await browser.get(`/oauth/social/${alias}`)
    return pathOf(await atUpstream(upstream, away.location ?? '', { sub: 'o24', email: 'o24@example.com' }))
  }
  const refusedWith = (reason: string, browser: Browser, path: string, alias?: string) =>
    expectRefusal(reason, async () => browser.follow(await browser.get(path)), alias)

  test('no state, an unknown state, a repeated state', async () => {
    const browser = fresh()
    const path = await begin(browser)
    const { searchParams } = new URL(path, ISSUER)
    for (const query of [
      '',
      'code=x',
      'code=x&state=',
      'code=x&state=unknown',
      `${searchParams}&state=${searchParams.get('state')}`,
    ])
      await refusedWith('unknown_state', browser, `/oauth/social/up/callback?${query}`)
  })

  test('from another browser: refused without using up the owner’s', async () => {
    const owner = fresh()
    const path = await begin(owner)
    await refusedWith('unknown_state', fresh(), path)
    const other = fresh()
    await begin(other)
    await refusedWith('unknown_state', other, path)
    expect((await owner.follow(await owner.get(path))).heading).toBe('Your account')
  })

  test('the same callback twice', async () => {
    const browser = fresh()
    const path = await begin(browser)
    expect((await browser.follow(await browser.get(path))).heading).toBe('Your account')
    await app.events()
    await refusedWith('unknown_state', browser, path)
  })

  test('for another provider, and with the issuer of another', async () => {
    await addProvider(app, 'twin')
    await app.events()
    const browser = fresh()
    const path = await begin(browser)
    await refusedWith('unknown_state', browser, path.replace('/up/', '/twin/'), 'twin')
    const mixed = path.replace(encodeURIComponent(ISSUER), encodeURIComponent('https://evil.example'))
    await refusedWith('bad_answer', browser, mixed)
    const silent = (await begin(browser)).replace(/&iss=[^&]*/, '')
    await refusedWith('bad_answer', browser, silent)
  })

  test('M-04 a state works as no other handle, and no other handle works as a state', async () => {
    const browser = fresh()
    const state = new URL(await begin(browser), ISSUER).searchParams.get('state') ?? ''
    expect((await browser.get(`/oauth/login?request=${state}`)).status).toBe(400)
    expect((await browser.get(`/oauth/link-account?request=${state}`)).status).toBe(400)
    expect((await browser.get(`/oauth/social/up/callback/replay?handle=${state}`)).status).toBe(400)
    expect((await browser.get(`/oauth/authorize/replay?handle=${state}`)).status).toBe(400)
  })

  test('after half an hour', async () => {
    const browser = fresh()
    const path = await begin(browser)
    app.clock.advance(30 * 60_000)
    await refusedWith('unknown_state', browser, path)
  })
})

test('declining at the provider returns to the other ways to sign in', async () => {
  const page = await expectRefusal('access_denied', () =>
    goThrough(fresh(), upstream, '/oauth/social/up', { decision: 'deny' } as object),
  )
  expect(page.html).toMatch(/href="\/oauth\/login\?request=[\w-]+"/)
})

test('M-09 a disabled provider starts and completes no login, not even a pending one', async () => {
  await addProvider(app, 'off')
  const browser = fresh()
  const away = await browser.get('/oauth/social/off')
  const path = pathOf(await atUpstream(upstream, away.location ?? ''))
  await app.admin('PUT', '/identity-providers/off', { enabled: false })
  await app.events()
  await expectRefusal('provider_disabled', () => browser.get(path), 'off')
  expect((await fresh().get('/oauth/social/off')).status).toBe(404)
})

test('unknown providers, SAML providers and providers of another organization are 404', async () => {
  const { id } = await addOrganization(app, 'elsewhere')
  await addProvider(app, 'theirs', { organization_id: id })
  const browser = fresh()
  const login = await browser.follow(await browser.get('/account'))
  const request = login.forms.find(({ action }) => action === '/oauth/login')?.fields.request
  expect(login.html).toContain('/oauth/social/up?request=')
  expect(login.html).not.toContain('/oauth/social/theirs')
  for (const path of [
    '/oauth/social/nobody',
    `/oauth/social/theirs?request=${request}`,
    '/oauth/social/nobody/callback?state=x',
  ])
    expect((await browser.get(path)).status).toBe(404)
})

test('FED-15 refused callbacks are throttled by address, separately from passwords', async () => {
  const browser = openBrowser(app, { ip: '203.0.113.77' })
  for (let n = 0; n < 30; n++) expect((await browser.get('/oauth/social/up/callback')).status).toBe(400)
  const late = await browser.get('/oauth/social/up/callback')
  expect([late.status, late.headers.get('retry-after')]).toEqual([429, '60'])
  expect((await browser.post('/oauth/social/up/callback', 'state=x')).status).toBe(429)
  expect((await browser.get('/account')).heading).toBe('Sign in')
  expect((await fresh().get('/oauth/social/up/callback')).status).toBe(400)
  app.clock.advance(60_000)
  expect((await browser.get('/oauth/social/up/callback')).status).toBe(400)
})
