import { describe, expect, test } from 'bun:test'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { openApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser } from '#test/support/browser.ts'
import { codeOf, enrolPasskey, enrolTotp, linkWith, openEnrolment, optionsOf } from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  codeRow,
  logInTo,
  signIn,
} from '#test/support/people.ts'
import { restarting } from '#test/support/restarting.ts'
import { redeem, refresh } from '#test/support/tokens.ts'
import { startWithFactors } from './factor-world.ts'

const { app, web, nextCode, rows, loginsOf, withTotp, withPasskey, secondStep, send } =
  await startWithFactors()

describe('O-69 a login that waits for its second factor counts as no login', () => {
  test('sets no login cookie, stores no login, and does not make the browser known', async () => {
    const { user, key } = await withTotp()
    const before = await loginsOf(user)
    const { browser, page } = await secondStep(user)
    expect([...browser.cookies.keys()]).toEqual(['gatehouse_browser_8080'])
    expect(await loginsOf(user)).toEqual(before)
    expect(answerOf(await browser.get(authorizeUrl('web', { prompt: 'none' }))).error).toBe('login_required')
    expect((await browser.get(authorizeUrl('web'))).heading).toBe('Sign in')
    for (const path of ['/account', '/account/security', '/account/change-password'])
      expect((await browser.get(path)).heading).toBe('Sign in')
    const { request = '' } = formOf(page).fields
    for (const step of ['consent', 'change-password', 'enrol', 'select-account'])
      expect((await browser.get(`/oauth/${step}?request=${request}`)).heading).toBe('Two-step verification')
    expect(answerOf(await send(browser, page, { code: codeOf(app, key) })).code).toBeString()
  })

  test('the cookies of its browser work as no login, access token, refresh token or code', async () => {
    const { user } = await withTotp()
    const { browser, page } = await secondStep(user)
    const { request = '', csrf_token = '' } = formOf(page).fields
    const before = await rows('sessions')
    for (const value of [...browser.cookies.values(), request, csrf_token]) {
      const other = openBrowser(app)
      other.cookies.set('gatehouse_login_8080', value)
      expect(answerOf(await other.get(authorizeUrl('web', { prompt: 'none' }))).error).toBe('login_required')
      const userinfo = await app.call('/oauth/userinfo', { headers: { authorization: `Bearer ${value}` } })
      expect(userinfo.status).toBe(401)
      expect((await refresh(app, web, value)).body.error).toBe('invalid_grant')
      expect((await redeem(app, web, value)).body.error).toBe('invalid_grant')
    }
    expect(await rows('sessions')).toEqual(before)
  })

  test('is recorded once, as an event without an actor', async () => {
    const { user, key } = await withTotp()
    const browser = openBrowser(app)
    const login = await browser.get(authorizeUrl('web'))
    await app.events()
    const page = await signIn(browser, login, user.username)
    expect(await app.events()).toEqual([
      {
        type: 'user.first_factor_proven',
        actor_id: null,
        target_id: user.id,
        target_type: 'user',
        organization_id: 'org_default',
        metadata: { client_id: 'web', amr: ['pwd'] },
      },
    ])
    expect((await signIn(browser, login, user.username)).heading).toBe('Two-step verification')
    expect(answerOf(await send(browser, page, { code: codeOf(app, key) })).code).toBeString()
    expect(await app.events()).toEqual([])
  })

  test('forms of later steps are refused', async () => {
    const { user } = await withTotp()
    const { browser, page } = await secondStep(user, {}, 'shop')
    const { csrf_token = '', request = '' } = formOf(page).fields
    for (const path of ['/oauth/consent', '/oauth/change-password', '/oauth/enrol', '/account/sessions'])
      expect((await browser.post(path, { csrf_token, request, decision: 'approve' })).status).toBe(403)
    expect(
      (await browser.post('/oauth/second-factor', { csrf_token: `${csrf_token}x`, code: '1' })).status,
    ).toBe(403)
  })

  test('the browser stays signed in as the other user', async () => {
    const { user } = await withTotp()
    const other = await addUser(app, 'olga')
    const browser = openBrowser(app)
    await logInTo(browser, 'web', 'olga')
    const page = await signIn(
      browser,
      await browser.get(authorizeUrl('web', { prompt: 'login' })),
      user.username,
    )
    expect(page.heading).toBe('Two-step verification')
    const { code } = answerOf(await browser.get(authorizeUrl('web')))
    expect((await codeRow(app, code)).user_id).toBe(other.id)
  })

  test('a first factor from before a password reset is not accepted after it', async () => {
    const { user, key } = await withTotp()
    const { browser, page } = await secondStep(user)
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: 'Another-horse-8' })
    const late = await send(browser, page, { code: codeOf(app, key) })
    expect(late.status).toBe(400)
    expect((await browser.get(page.url)).heading).toBe('Sign in')
  })

  test('a first factor is not accepted after the user was disabled', async () => {
    const { user, key } = await withTotp()
    const { browser, page } = await secondStep(user)
    await app.admin('PUT', `/users/${user.id}`, { enabled: false })
    expect((await send(browser, page, { code: codeOf(app, key) })).status).toBe(400)
  })

  test('a temporary password is replaced only after the second factor', async () => {
    const { user, key } = await withTotp()
    const temporary = 'Temporary-9-word'
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: temporary, temporary: true })
    const browser = openBrowser(app)
    const page = await signIn(browser, await browser.get(authorizeUrl('web')), user.username, temporary)
    expect(page.heading).toBe('Two-step verification')
    const change = await browser.follow(await send(browser, page, { code: codeOf(app, key) }))
    expect(change.heading).toBe('Choose a new password')
    const password = 'Another-horse-8'
    const { code } = answerOf(await browser.submit(change, { password, password_repeat: password }))
    const row = await codeRow(app, code)
    expect([row.acr, row.amr]).toEqual(['2', ['pwd', 'otp', 'mfa']])
  })
})

test('O-69 the passkey of another user is no second factor', async () => {
  const [owner, thief] = [await withPasskey(), await withPasskey()]
  const { browser, page } = await secondStep(owner.user)
  const before = await loginsOf(owner.user)
  await app.events()
  const credential = thief.passkey.get(optionsOf(page))
  expect((await send(browser, page, { credential })).status).toBe(401)
  expect(
    (await app.events()).map(({ type, target_id, metadata }) => [type, target_id, metadata.failure_reason]),
  ).toEqual([['user.login_failed', owner.user.id, 'wrong_passkey']])
  expect(await loginsOf(owner.user)).toEqual(before)
})

describe('O-35 guesses at a second factor', () => {
  test('are throttled per user, recorded, and counted over restarts', async () => {
    const { user, key } = await withTotp()
    const { browser, page } = await secondStep(user)
    await app.events()
    for (let i = 0; i < 5; i++) expect((await send(browser, page, { code: '000000' })).status).toBe(401)
    expect(
      (await app.events()).map(({ type, target_id, metadata }) => [type, target_id, metadata]).at(-1),
    ).toEqual([
      'user.login_failed',
      user.id,
      { username_attempted: user.username, failure_reason: 'wrong_code', attempt_count: 5 },
    ])
    const blocked = await send(browser, page, { code: codeOf(app, key) })
    expect([blocked.status, blocked.headers.get('retry-after')]).toEqual([429, '60'])
    expect(await app.events()).toEqual([])
    const running = await openApp(app.context)
    const restarted = await running.fetch(
      new Request(new URL('/oauth/second-factor', app.context.config.url), {
        method: 'POST',
        redirect: 'manual',
        headers: {
          cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
          'content-type': 'application/x-www-form-urlencoded',
          origin: app.context.config.url,
        },
        body: new URLSearchParams({ ...formOf(page).fields, code: codeOf(app, key) }).toString(),
      }),
    )
    expect(restarted.status).toBe(429)
    app.clock.advance(SECOND)
    expect((await send(browser, page, { code: codeOf(app, key) })).status).toBe(302)
  })

  test('wait ever longer, at most a quarter of an hour', async () => {
    const { user } = await withTotp()
    const { browser, page } = await secondStep(user)
    const waits: string[] = []
    while (waits.at(-1) !== '900') {
      const wait = (await send(browser, page, { code: '000000' })).headers.get('retry-after')
      if (wait === null) continue
      waits.push(wait)
      app.clock.advance(Number(wait) * SECOND)
    }
    expect(waits).toEqual([...Array(6).fill('60'), '120', '180', '300', '540', '900'])
  })

  test('by a stranger who has the password do not lock the owner out of a known browser', async () => {
    const { user, key } = await withTotp()
    const home = openBrowser(app, { ip: '198.51.100.7' })
    const first = await signIn(home, await home.get(authorizeUrl('web')), user.username)
    expect((await send(home, first, { code: codeOf(app, key) })).status).toBe(302)
    const stranger = openBrowser(app, { ip: '203.0.113.66' })
    const page = await signIn(stranger, await stranger.get(authorizeUrl('web')), user.username)
    for (let i = 0; i < 6; i++) await send(stranger, page, { code: '000000' })
    expect((await send(stranger, page, { code: '000000' })).status).toBe(429)
    nextCode()
    const again = await signIn(home, await home.get(authorizeUrl('web', { prompt: 'login' })), user.username)
    expect((await send(home, again, { code: codeOf(app, key) })).status).toBe(302)
    // The success of the owner does not reset the count of the stranger.
    const statuses = []
    for (let i = 0; i < 2; i++) statuses.push((await send(stranger, page, { code: '000000' })).status)
    expect(statuses).toEqual([401, 429])
  })

  test('by a stranger in the network of a known browser do not lock the owner out', async () => {
    const { user, key } = await withTotp()
    const [home, stranger] = [
      openBrowser(app, { ip: '198.51.100.8' }),
      openBrowser(app, { ip: '198.51.100.8' }),
    ]
    const first = await signIn(home, await home.get(authorizeUrl('web')), user.username)
    expect((await send(home, first, { code: codeOf(app, key) })).status).toBe(302)
    for (let i = 0; i < 50; i++)
      await signIn(stranger, await stranger.get(authorizeUrl('web')), `nobody${i}`, 'wrong')
    expect((await signIn(stranger, await stranger.get(authorizeUrl('web')), user.username)).status).toBe(429)
    nextCode()
    const again = await signIn(home, await home.get(authorizeUrl('web', { prompt: 'login' })), user.username)
    expect((await send(home, again, { code: codeOf(app, key) })).status).toBe(302)
  })
})

describe('where the organization requires a second factor', () => {
  let made = 0
  const strict = async () => {
    const { id } = await addOrganization(app, `strict${++made}`, { settings: { mfa_required: true } })
    const user = await addUser(app, `strict${made}`, { organization_id: id })
    await addClient(app, `strict${made}`, { organization_id: id })
    return { id, user, client: `strict${made}` }
  }

  test('a user without a factor enrols one at the next login, and is not signed in before', async () => {
    const { user, client } = await strict()
    const browser = openBrowser(app)
    const choice = await signIn(browser, await browser.get(authorizeUrl(client)), user.username)
    expect(choice.heading).toBe('Protect your account')
    expect(await loginsOf(user)).toEqual([])
    expect(answerOf(await browser.get(authorizeUrl(client, { prompt: 'none' }))).error).toBe('login_required')
    await app.events()
    const { key, page } = await enrolTotp(app, browser, choice)
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.mfa_enabled'])
    const { code } = answerOf(await browser.submit(page, {}, '/oauth/enrol'))
    const row = await codeRow(app, code)
    expect([row.acr, row.amr]).toEqual(['2', ['pwd', 'otp', 'mfa']])
    nextCode()
    const later = openBrowser(app)
    const step = await signIn(later, await later.get(authorizeUrl(client)), user.username)
    expect(answerOf(await send(later, step, { code: codeOf(app, key) })).code).toBeString()
  })

  test('earlier logins are asked at their next authorization; the last factor cannot be removed', async () => {
    const { id, user, client } = await strict()
    await app.admin('PUT', `/organizations/${id}`, { settings: { mfa_required: false } })
    const browser = openBrowser(app)
    await logInTo(browser, client, user.username)
    await app.admin('PUT', `/organizations/${id}`, { settings: { mfa_required: true } })
    expect(answerOf(await browser.get(authorizeUrl(client, { prompt: 'none' }))).error).toBe(
      'interaction_required',
    )
    const choice = await browser.get(authorizeUrl(client))
    const { page } = await enrolPasskey(browser, choice)
    expect(answerOf(await browser.submit(page, {}, '/oauth/enrol')).code).toBeString()
    const security = await browser.get(`/account/security?organization=${client}`)
    expect(security.html).not.toContain('/account/security/remove')
    const [factor] = (await rows('factors')).filter(({ user_id }) => user_id === user.id)
    const { csrf_token = '' } = formOf(security).fields
    const refused = await browser.post('/account/security/remove', {
      csrf_token,
      factor_id: factor?.id ?? '',
    })
    expect(refused.status).toBe(400)
    expect((await rows('factors')).some(row => row.id === factor?.id)).toBe(true)
  })
})

describe('fresh authentication', () => {
  test('is required to change factors, five minutes after the last authentication', async () => {
    const { user, browser, key } = await withTotp()
    expect((await browser.get('/account/security')).heading).toBe('Security')
    const page = await browser.get('/account/security')
    app.clock.advance(5 * MINUTE)
    expect((await browser.get('/account/security')).heading).toBe('Security')
    const asked = await browser.follow(await browser.submit(page, {}, '/account/security/codes'))
    expect(asked.heading).toBe('Confirm it’s you')
    expect((await browser.get('/account')).heading).toBe('Your account')
    await app.events()
    const step = await signIn(browser, asked, user.username)
    expect(step.heading).toBe('Two-step verification')
    const back = await browser.follow(await send(browser, step, { code: codeOf(app, key) }))
    expect(back.heading).toBe('Save your recovery codes')
    expect((await app.events()).map(({ type }) => type)).toEqual([
      'user.first_factor_proven',
      'user.login',
      'user.updated',
    ])
    expect((await browser.get(back.url)).status).toBe(400)
    expect(await app.events()).toEqual([])
  })

  test('O-28 forms of other logins change nothing', async () => {
    const { browser } = await withTotp()
    const other = await withTotp()
    const page = await other.browser.get('/account/security')
    const { csrf_token = '' } = formOf(page).fields
    await app.events()
    for (const path of ['remove', 'rename', 'codes'])
      expect((await browser.post(`/account/security/${path}`, { csrf_token, name: 'x' })).status).toBe(403)
    expect(await app.events()).toEqual([])
  })
})

test('R-24 a restart between any two steps of a two-factor login or its enrolment changes nothing', async () => {
  const user = await addUser(app, 'patient')
  const browser = openBrowser(restarting(app))
  const choice = await openEnrolment(browser, 'patient')
  const offer = await browser.get(linkWith(choice, 'kind=totp'))
  const { key, page } = await enrolTotp(app, browser, offer)
  expect(page.heading).toBe('Save your recovery codes')
  nextCode()
  const fresh = openBrowser(restarting(app))
  const login = await fresh.get(authorizeUrl('shop'))
  const step = await signIn(fresh, login, user.username)
  const settled = await send(fresh, step, { code: codeOf(app, key) })
  const consent = await fresh.follow(settled)
  expect(consent.heading).toStartWith('Allow')
  expect((await send(fresh, step, { code: codeOf(app, key) })).status).toBe(400)
  expect(answerOf(await fresh.submit(consent, { decision: 'approve' })).code).toBeString()
  expect((await send(fresh, step, { code: codeOf(app, key) })).status).toBe(400)
})

test('the second step expires with its request', async () => {
  const { user, key } = await withTotp()
  const { browser, page } = await secondStep(user)
  app.clock.advance(31 * MINUTE)
  expect((await send(browser, page, { code: codeOf(app, key) })).status).toBe(400)
})
