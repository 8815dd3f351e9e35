import { describe, expect, test } from 'bun:test'
import { createApp } from '#src/app.ts'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { answerOf, type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import {
  codeOf,
  enrolPasskey,
  enrolTotp,
  linkWith,
  openEnrolment,
  optionsOf,
  recoveryCodesOf,
  signInWith,
} from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  codeRow,
  logInTo,
  signIn,
} from '#test/support/people.ts'
import { redeem, refresh } from '#test/support/tokens.ts'

const app = await startApp()
const web = await addClient(app, 'web')
await addClient(app, 'shop', { consent_required: true })
let users = 0
/** A code is valid once, so the clock moves on to the next one. */
const nextCode = () => app.clock.advance(30 * SECOND)

const rows = <Name extends 'logins' | 'sessions' | 'factors' | 'recovery_codes' | 'authorization_requests'>(
  name: Name,
) => app.context.store.read(async q => q.select().from(q.tables[name]))
const loginsOf = async (user: { id: string }) =>
  (await rows('logins')).filter(({ user_id }) => user_id === user.id)

/** Somebody with an app, by way of their own pages. */
const withTotp = async () => {
  const user = await addUser(app, `totp${++users}`)
  const browser = openBrowser(app)
  const { key, page } = await enrolTotp(app, browser, await openEnrolment(browser, user.username))
  nextCode()
  return { user, browser, key, page, codes: recoveryCodesOf(page) }
}

const withPasskey = async () => {
  const user = await addUser(app, `key${++users}`)
  const browser = openBrowser(app)
  const { passkey, page } = await enrolPasskey(browser, await openEnrolment(browser, user.username))
  return { user, browser, passkey, page, codes: recoveryCodesOf(page) }
}

/** The second step of a login, reached with the password. */
const secondStep = async (user: { username: string }, more: Record<string, string> = {}, client = 'web') => {
  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.get(authorizeUrl(client, more)), user.username)
  expect(page.heading).toBe('Two-step verification')
  return { browser, page }
}

const send = (browser: Browser, page: Page, fields: Record<string, string>) =>
  browser.submit(page, fields, '/oauth/second-factor')

describe('an authenticator app', () => {
  test('EVT-17 is enrolled on the own page: one event, a sealed secret, ten codes shown once', async () => {
    const user = await addUser(app, 'ada')
    const browser = openBrowser(app)
    const choice = await openEnrolment(browser, 'ada')
    expect(choice.heading).toBe('Protect your account')
    await app.events()
    const { key, page } = await enrolTotp(app, browser, choice)
    expect(page.heading).toBe('Save your recovery codes')
    const [factor] = (await rows('factors')).filter(({ user_id }) => user_id === user.id)
    expect(await app.events()).toEqual([
      {
        type: 'user.mfa_enabled',
        actor_id: user.id,
        target_id: user.id,
        target_type: 'user',
        organization_id: 'org_default',
        metadata: { factor_id: factor?.id, factor_type: 'totp' },
      },
    ])
    const codes = recoveryCodesOf(page)
    expect(new Set(codes).size).toBe(10)
    for (const code of codes) expect(code).toMatch(/^[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){2}$/)
    const stored = JSON.stringify([factor, await rows('recovery_codes')]) + factor?.secret?.toString('latin1')
    for (const secret of [key.replaceAll(' ', ''), ...codes, ...codes.map(code => code.replaceAll('-', ''))])
      expect(stored).not.toContain(secret)
    const done = await browser.follow(await browser.submit(page, {}, '/oauth/enrol'))
    expect([done.url, done.heading]).toEqual(['/account/security?notice=factor_added', 'Security'])
    expect(done.html).toContain('Authenticator app')
    const [login] = await loginsOf(user)
    expect([login?.acr, login?.amr]).toEqual(['2', ['pwd', 'otp', 'mfa']])
  })

  test('wrong first codes keep the key and enrol nothing; a used page goes on and enrols nothing more', async () => {
    const user = await addUser(app, 'bob')
    const browser = openBrowser(app)
    const choice = await openEnrolment(browser, 'bob')
    const page = await browser.get(linkWith(choice, 'kind=totp'))
    const wrong = await browser.submit(page, { code: '000000' }, '/oauth/enrol')
    expect([wrong.status, wrong.heading]).toEqual([400, 'Set up your authenticator app'])
    const unnamed = await browser.submit(page, { code: '000000', name: ' ' }, '/oauth/enrol')
    expect(unnamed.html).toContain('1 to 64 characters')
    expect((await rows('factors')).some(({ user_id }) => user_id === user.id)).toBe(false)
    const { key } = await enrolTotp(app, browser, wrong)
    const again = await browser.submit(page, { code: codeOf(app, key) }, '/oauth/enrol')
    expect([again.status, again.location]).toEqual([303, '/account/security?notice=factor_added'])
    expect((await rows('factors')).filter(({ user_id }) => user_id === user.id)).toHaveLength(1)
  })

  test('the picture says what the key says, and holds nothing inline that the policy forbids', async () => {
    const browser = openBrowser(app)
    await addUser(app, 'quentin')
    const choice = await openEnrolment(browser, 'quentin')
    const page = await browser.get(linkWith(choice, 'kind=totp'))
    expect(page.html).toMatch(/<svg viewBox="0 0 \d+ \d+" role="img"[^>]*><path d="M[\dhvz M-]+"\/><\/svg>/)
    expect(page.html).not.toMatch(/ style=|data:image/)
    expect(page.html).toContain('otpauth://totp/')
  })

  test('is asked for after the password; the code then tells of both', async () => {
    const { user, key } = await withTotp()
    const { browser, page } = await secondStep(user)
    await app.events()
    const done = await send(browser, page, { code: codeOf(app, key) })
    const row = await codeRow(app, answerOf(done).code)
    expect([row.acr, row.amr, row.auth_time]).toEqual(['2', ['pwd', 'otp', 'mfa'], app.clock.now()])
    expect(await app.events()).toEqual([])
    expect(answerOf(await browser.get(authorizeUrl('web'))).code).toBeString()
  })

  test.each([
    [-31 * SECOND, 200],
    [-30 * SECOND, 302],
    [0, 302],
    [30 * SECOND, 302],
    [60 * SECOND, 200],
  ])('codes of the step before and the one after are taken, others not: %d ms', async (shift, status) => {
    const { user, key } = await withTotp()
    app.clock.advance(5 * MINUTE - (app.clock.now() % (30 * SECOND)))
    const { browser, page } = await secondStep(user)
    const answer = await send(browser, page, { code: codeOf(app, key, shift) })
    expect(answer.status).toBe(status === 200 ? 401 : 302)
  })

  test('a code that was used is refused, and so are those before it', async () => {
    const { user, key } = await withTotp()
    const code = codeOf(app, key)
    const before = codeOf(app, key, -30 * SECOND)
    const first = await secondStep(user)
    expect((await send(first.browser, first.page, { code })).status).toBe(302)
    const second = await secondStep(user)
    for (const used of [code, before]) {
      const refused = await send(second.browser, second.page, { code: used })
      expect([refused.status, refused.heading]).toEqual([401, 'Two-step verification'])
    }
    nextCode()
    expect((await send(second.browser, second.page, { code: codeOf(app, key) })).status).toBe(302)
  })

  test('fifty browsers with one code: one gets in', async () => {
    const { user, key } = await withTotp()
    const code = codeOf(app, key)
    const steps: Awaited<ReturnType<typeof secondStep>>[] = []
    while (steps.length < 50) steps.push(await secondStep(user))
    const answers = await Promise.all(steps.map(({ browser, page }) => send(browser, page, { code })))
    expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
  })

  test.each(['code', 'recovery_code'])('the same form twice at once: a used %s is no failure', async name => {
    const { user, key, codes } = await withTotp()
    const { browser, page } = await secondStep(user)
    const value = name === 'code' ? codeOf(app, key) : (codes[0] ?? '')
    await app.events()
    const answers = await Promise.all([1, 2].map(() => send(browser, page, { [name]: value })))
    expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
    expect(await app.events()).toEqual([])
  })
})

describe('O-69 a login that waits for its second factor is nowhere a login', () => {
  test('no cookie, no row, and nobody knows the browser', async () => {
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

  test('what its browser holds is no cookie of a login, no access token, no refresh token and no code', async () => {
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

  test('a browser that was logged in as somebody else stays so', async () => {
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

  test('what was proven before a reset of the password is worth nothing after it', async () => {
    const { user, key } = await withTotp()
    const { browser, page } = await secondStep(user)
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: 'Another-horse-8' })
    const late = await send(browser, page, { code: codeOf(app, key) })
    expect(late.status).toBe(400)
    expect((await browser.get(page.url)).heading).toBe('Sign in')
  })

  test('nor once the user is disabled', async () => {
    const { user, key } = await withTotp()
    const { browser, page } = await secondStep(user)
    await app.admin('PUT', `/users/${user.id}`, { enabled: false })
    expect((await send(browser, page, { code: codeOf(app, key) })).status).toBe(400)
  })

  test('a temporary password is not replaced before the second factor', async () => {
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

describe('recovery codes', () => {
  test('used on the own pages lead to where what was lost is removed, whoever may do that', async () => {
    const { user, codes } = await withTotp()
    const enter = async (path: string, recovery_code = '') => {
      const browser = openBrowser(app)
      const page = await signIn(browser, await browser.get(path), user.username)
      return browser.follow(
        await send(browser, await browser.get(linkWith(page, 'method=recovery')), { recovery_code }),
      )
    }
    const page = await enter('/account', codes[0])
    expect(page.heading).toBe('Security')
    expect(page.html).toContain(
      'You signed in with a recovery code. Remove the passkey or app that you lost.',
    )
    expect(page.html).toContain('9 of your codes are left')
    expect((await enter('/account/profile', codes[1])).heading).toBe('Profile')
    const role = await app.admin('POST', '/roles', { name: 'reader', permissions: ['profile:read'] })
    expect(role.status).toBe(201)
    await app.admin('PUT', `/users/${user.id}`, { roles: ['reader'] })
    expect((await enter('/account', codes[2])).heading).toBe('Your account')
  })

  test('let their owner in once each, however they are typed', async () => {
    const { user, codes } = await withTotp()
    const enter = async (recovery_code: string) => {
      const { browser, page } = await secondStep(user)
      const form = await browser.get(linkWith(page, 'method=recovery'))
      return send(browser, form, { recovery_code })
    }
    const [one = '', two = '', three = ''] = codes
    expect((await enter(one)).status).toBe(302)
    expect((await enter(one)).status).toBe(401)
    expect((await enter(two.toUpperCase().replaceAll('-', ' '))).status).toBe(302)
    expect((await enter(three.replaceAll('0', 'O').replaceAll('1', 'l'))).status).toBe(302)
    expect((await rows('recovery_codes')).filter(({ user_id }) => user_id === user.id)).toHaveLength(7)
  })

  test('that are used up: the page says who can help', async () => {
    const { user } = await withTotp()
    const { browser, page } = await secondStep(user)
    expect(page.html).not.toContain('Lost access?')
    const form = await browser.get(linkWith(page, 'method=recovery'))
    expect(form.html).toContain('Ask an administrator of Gatehouse for help')
  })

  test('of somebody else, codes of the app and nonsense are refused', async () => {
    const { user, key } = await withTotp()
    const other = await withTotp()
    const { browser, page } = await secondStep(user)
    for (const recovery_code of [other.codes[0] ?? '', codeOf(app, key), '', 'x'.repeat(100_00)])
      expect((await send(browser, page, { recovery_code })).status).toBe(401)
  })

  test('new ones replace the old ones', async () => {
    const { user, browser, codes } = await withTotp()
    const security = await browser.get('/account/security')
    expect(security.html).toContain('10 of your codes are left')
    await app.events()
    const page = await browser.submit(security, {}, '/account/security/codes')
    expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
      ['user.updated', { fields: ['recovery_codes'] }],
    ])
    const fresh = recoveryCodesOf(page)
    expect(fresh).toHaveLength(10)
    const step = await secondStep(user)
    expect((await send(step.browser, step.page, { recovery_code: codes[0] ?? '' })).status).toBe(401)
    expect((await send(step.browser, step.page, { recovery_code: fresh[0] ?? '' })).status).toBe(302)
  })
})

describe('O-35 guesses at a second factor', () => {
  test('are slowed down per user, recorded, and remembered over restarts', async () => {
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
    const running = await createApp(app.context)
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

  test('wait longer and longer, a quarter of an hour at most', async () => {
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

  test('by a stranger with the password do not keep the owner out of a browser where they have been before', async () => {
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
  })
})

describe('a passkey', () => {
  test('that alone will do and is lost is replaced by whoever has a recovery code', async () => {
    const { user, codes } = await withPasskey()
    const { browser, page } = await secondStep(user, { acr_values: 'phr' })
    expect(page.html).not.toContain('method=recovery')
    const login = await browser.get(linkWith(page, '/account/security'))
    const step = await signIn(browser, login, user.username)
    const form = await browser.get(linkWith(step, 'method=recovery'))
    const own = await browser.follow(await send(browser, form, { recovery_code: codes[0] ?? '' }))
    expect([own.status, own.heading]).toEqual([200, 'Security'])
    await browser.submit(own, {}, '/account/security/remove')
    const choice = await browser.get(authorizeUrl('web', { acr_values: 'phr' }))
    const { page: done } = await enrolPasskey(browser, choice)
    expect(answerOf(await browser.submit(done, {}, '/oauth/enrol')).code).toBeString()
    expect((await secondStep(user)).page.html).not.toContain('/account/security')
  })

  test('is the second factor after a password', async () => {
    const { user, passkey } = await withPasskey()
    const { browser, page } = await secondStep(user)
    const options = optionsOf(page)
    expect(options.allowCredentials.map(({ id }: { id: string }) => id)).toEqual([passkey.id])
    const credential = passkey.get(options, { verified: false })
    const row = await codeRow(app, answerOf(await send(browser, page, { credential })).code)
    expect([row.acr, row.amr]).toEqual(['phr', ['pwd', 'hwk', 'mfa']])
  })

  test('alone is enough: no name, no password', async () => {
    const { user, passkey } = await withPasskey()
    const browser = openBrowser(app)
    await app.events()
    const done = await signInWith(browser, await browser.get(authorizeUrl('web')), passkey)
    const row = await codeRow(app, answerOf(done).code)
    expect([row.user_id, row.acr, row.amr]).toEqual([user.id, 'phr', ['hwk', 'mfa']])
    expect(await app.events()).toEqual([])
    const [factor] = (await rows('factors')).filter(({ user_id }) => user_id === user.id)
    expect([factor?.sign_count, factor?.last_used_at]).toEqual([1, app.clock.now()])
  })

  test('H-23 of a known browser passes while its network waits, and so does the second factor', async () => {
    const { user, passkey } = await withPasskey()
    const ip = '198.51.100.77'
    const [home, stranger] = [openBrowser(app, { ip }), openBrowser(app, { ip })]
    const enter = async (browser: typeof home) =>
      signInWith(browser, await browser.get(authorizeUrl('web', { prompt: 'login' })), passkey)
    expect((await enter(home)).status).toBe(302)
    for (let i = 0; i < 50; i++)
      await stranger.submit(await stranger.get(authorizeUrl('web')), { username: `x${i}`, password: 'x' })
    expect((await enter(stranger)).status).toBe(429)
    expect((await enter(home)).status).toBe(302)
    const page = await signIn(home, await home.get(authorizeUrl('web', { prompt: 'login' })), user.username)
    const credential = passkey.get(optionsOf(page))
    expect((await send(home, page, { credential })).status).toBe(302)
  })

  test.each([
    ['of another site', { origin: 'https://evil.example' }, 'wrong_passkey'],
    ['for another site', { rpId: 'evil.example' }, 'wrong_passkey'],
    ['without the finger or PIN', { verified: false }, 'wrong_passkey'],
    ['for another challenge', { challenge: 'AAAA' }, 'wrong_passkey'],
    ['that names another user', { userHandle: Buffer.from('usr_x').toString('base64url') }, 'wrong_passkey'],
  ])('%s is refused', async (_, quirks, failure_reason) => {
    const { user, passkey } = await withPasskey()
    const browser = openBrowser(app)
    await app.events()
    const page = await signInWith(browser, await browser.get(authorizeUrl('web')), passkey, quirks)
    expect([page.status, page.heading]).toEqual([401, 'Sign in'])
    expect(page.html).toContain('That passkey didn’t work here')
    expect((await app.events()).map(({ type, target_id, metadata }) => [type, target_id, metadata])).toEqual([
      [
        'user.login_failed',
        user.id,
        { username_attempted: user.username, failure_reason, attempt_count: expect.any(Number) },
      ],
    ])
  })

  test('unknown, junk, of a disabled user and of another organization read alike', async () => {
    const disabled = await withPasskey()
    await app.admin('PUT', `/users/${disabled.user.id}`, { enabled: false })
    const foreign = await withPasskey()
    const acme = await addOrganization(app, 'acme')
    const attempt = async (credentialOf: (page: Page) => string, more = {}) => {
      const browser = openBrowser(app, { ip: '192.0.2.77' })
      const page = await browser.get(authorizeUrl('wide', more))
      await app.events()
      const answer = await browser.submit(page, { credential: credentialOf(page) }, '/oauth/passkey')
      const [event] = await app.events()
      return {
        status: answer.status,
        alert: /role="alert"[\s\S]*?<p>(.*?)<\/p>/.exec(answer.html)?.[1],
        event,
      }
    }
    await addClient(app, 'wide', { capabilities: ['cross_organization'] })
    const unknown = newPasskey()
    unknown.create({ challenge: 'x', rp: { id: 'localhost' }, user: { id: 'dXNy' } })
    const answers = [
      await attempt(page => unknown.get(optionsOf(page))),
      await attempt(() => 'junk'),
      await attempt(page => disabled.passkey.get(optionsOf(page))),
      await attempt(page => foreign.passkey.get(optionsOf(page)), { organization_id: acme.id }),
    ]
    expect(new Set(answers.map(({ status, alert }) => `${status} ${alert}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(401)
    expect(answers.map(({ event }) => [event?.target_id, event?.metadata.failure_reason])).toEqual([
      ['', 'unknown_passkey'],
      ['', 'unknown_passkey'],
      [disabled.user.id, 'user_disabled'],
      ['', 'unknown_passkey'],
    ])
  })

  test('an answer is good once, and in its own flow alone', async () => {
    const { passkey } = await withPasskey()
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl('shop'))
    const credential = passkey.get(optionsOf(page))
    const elsewhere = await browser.get(authorizeUrl('shop'))
    expect((await browser.submit(elsewhere, { credential }, '/oauth/passkey')).status).toBe(401)
    expect((await browser.submit(page, { credential }, '/oauth/passkey')).status).toBe(303)
    expect((await browser.submit(page, { credential }, '/oauth/passkey')).status).toBe(401)
  })

  test('belongs to one account: a second enrolment of it is refused', async () => {
    const { passkey } = await withPasskey()
    const user = await addUser(app, 'copycat')
    const browser = openBrowser(app)
    const choice = await openEnrolment(browser, 'copycat')
    const page = await browser.get(linkWith(choice, 'kind=passkey'))
    const credential = passkey.create(optionsOf(page))
    const answer = await browser.submit(page, { credential }, '/oauth/enrol')
    expect([answer.status, answer.heading]).toEqual([400, 'Add a passkey'])
    expect((await rows('factors')).some(({ user_id }) => user_id === user.id)).toBe(false)
  })

  test('is offered on https and on localhost alone', async () => {
    const plain = await startApp({ url: 'http://id.example.com' })
    const browser = openBrowser(plain)
    expect((await browser.get('/account')).html).not.toContain('data-passkey')
    expect(
      (await (await plain.call('/.well-known/openid-configuration')).json()).acr_values_supported,
    ).toEqual(['1', '2'])
    const secure = await startApp({ url: 'https://id.example.com' })
    const page = await openBrowser(secure).get('/account')
    expect(optionsOf(page).rpId).toBe('id.example.com')
    const address = await startApp({ url: 'https://192.0.2.1' })
    expect((await openBrowser(address).get('/account')).html).not.toContain('data-passkey')
  })
})

describe('several factors', () => {
  test('are added after proof of one that is there, named, used and removed', async () => {
    const { user, browser, key } = await withTotp()
    await browser.get('/account')
    const choice = await browser.follow(await browser.get('/account/security/add'))
    expect(choice.heading).toBe('Protect your account')
    await app.events()
    const { passkey, page } = await enrolPasskey(browser, choice)
    expect(page.url).toBe('/account/security?notice=factor_added')
    const mine = (await rows('factors')).filter(({ user_id }) => user_id === user.id)
    const second = mine.find(({ type }) => type === 'passkey')
    expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
      ['user.updated', { fields: ['factors'], added: { factor_id: second?.id, factor_type: 'passkey' } }],
    ])
    expect(second?.credential_id).toBe(passkey.id)

    const renamed = await browser.follow(
      await browser.post('/account/security/rename', {
        ...formOf(page, '/account/security/rename').fields,
        factor_id: second?.id ?? '',
        name: 'Blue <key>',
      }),
    )
    expect(renamed.html).toContain('Blue &lt;key&gt;')
    const step = await secondStep(user)
    expect(step.page.html).toContain('data-passkey')
    const form = await step.browser.get(linkWith(step.page, 'method=totp'))
    expect((await send(step.browser, form, { code: codeOf(app, key) })).status).toBe(302)

    await app.events()
    for (const { id } of mine)
      await browser.post('/account/security/remove', {
        ...formOf(renamed, '/account/security/remove').fields,
        factor_id: id,
      })
    const [first] = mine
    expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
      ['user.updated', { fields: ['factors'], removed: { factor_id: first?.id, factor_type: 'totp' } }],
      ['user.mfa_disabled', { factor_id: second?.id, factor_type: 'passkey' }],
    ])
    expect((await rows('recovery_codes')).filter(({ user_id }) => user_id === user.id)).toEqual([])
    expect((await logInTo(openBrowser(app), 'web', user.username)).code).toBeString()
  })

  test('of somebody else are left alone', async () => {
    const { user, browser, page } = await withTotp()
    const other = await withTotp()
    const security = await browser.follow(await browser.submit(page, {}, '/oauth/enrol'))
    const theirs = (await rows('factors')).find(({ user_id }) => user_id === other.user.id)
    await app.events()
    const fields = {
      ...formOf(security, '/account/security/remove').fields,
      factor_id: theirs?.id ?? '',
      name: 'Mine',
    }
    await browser.post('/account/security/remove', fields)
    await browser.post('/account/security/rename', fields)
    expect(await app.events()).toEqual([])
    expect((await rows('factors')).find(({ id }) => id === theirs?.id)).toEqual(theirs)
    expect(user.id).not.toBe(other.user.id)
  })

  test('a login with the password alone, from before, proves one before anything is added', async () => {
    const user = await addUser(app, 'early')
    const old = openBrowser(app)
    await signIn(old, await old.get('/account'), 'early')
    const browser = openBrowser(app)
    const { key } = await enrolTotp(app, browser, await openEnrolment(browser, 'early'))
    nextCode()
    for (const path of ['/account', '/account/security/add', authorizeUrl('web')])
      expect((await old.get(path)).heading).toBe('Two-step verification')
    expect(answerOf(await old.get(authorizeUrl('web', { prompt: 'none' }))).error).toBe(
      'interaction_required',
    )
    const before = old.cookies.get('gatehouse_login_8080')
    const was = (await loginsOf(user)).find(({ acr }) => acr === '1')
    if (!was) throw new Error('no login')
    app.clock.advance(MINUTE)
    const step = await old.get(authorizeUrl('web'))
    const row = await codeRow(app, answerOf(await send(old, step, { code: codeOf(app, key) })).code)
    expect([row.acr, row.amr, row.auth_time, row.login_id]).toEqual([
      '2',
      ['pwd', 'otp', 'mfa'],
      was.auth_time,
      was.id,
    ])
    expect(old.cookies.get('gatehouse_login_8080')).not.toBe(before)
  })
})

describe('where the organization demands a second factor', () => {
  const strict = async () => {
    const { id } = await addOrganization(app, `strict${++users}`, { settings: { mfa_required: true } })
    const user = await addUser(app, `strict${users}`, { organization_id: id })
    await addClient(app, `strict${users}`, { organization_id: id })
    return { id, user, client: `strict${users}` }
  }

  test('who has none enrols one at the next login, and is not logged in before', async () => {
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

  test('logins from before are asked at their next authorization; the last factor stays', async () => {
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

describe('a fresh proof', () => {
  test('is asked for where factors are looked after, five minutes after the last', async () => {
    const { user, browser, key } = await withTotp()
    expect((await browser.get('/account/security')).heading).toBe('Security')
    const page = await browser.get('/account/security')
    app.clock.advance(5 * MINUTE)
    const asked = await browser.get('/account/security')
    expect(asked.heading).toBe('Sign in')
    expect((await browser.submit(page, {}, '/account/security/codes')).status).toBe(400)
    expect((await browser.get('/account')).heading).toBe('Your account')
    await app.events()
    const step = await signIn(browser, asked, user.username)
    expect(step.heading).toBe('Two-step verification')
    const back = await browser.follow(await send(browser, step, { code: codeOf(app, key) }))
    expect([back.url, back.heading]).toEqual(['/account/security', 'Security'])
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.login'])
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

test('R-24 a restart between any two steps of a login with a second factor, or of its enrolment, changes nothing', async () => {
  let running = await createApp(app.context)
  const call: typeof app.call = async (path, init = {}) =>
    running.fetch(new Request(new URL(path, app.context.config.url), { redirect: 'manual', ...init }))
  const restart = async <T>(step: Promise<T>): Promise<T> => {
    const result = await step
    running = await createApp(app.context)
    return result
  }
  const user = await addUser(app, 'patient')
  const browser = openBrowser({ call, context: app.context })
  const choice = await restart(openEnrolment(browser, 'patient'))
  const offer = await restart(browser.get(linkWith(choice, 'kind=totp')))
  const { key, page } = await enrolTotp(app, browser, offer)
  expect(page.heading).toBe('Save your recovery codes')
  nextCode()
  const fresh = openBrowser({ call, context: app.context })
  const login = await restart(fresh.get(authorizeUrl('shop')))
  const step = await restart(signIn(fresh, login, user.username))
  const settled = await restart(send(fresh, step, { code: codeOf(app, key) }))
  const consent = await restart(fresh.follow(settled))
  expect(consent.heading).toStartWith('Allow')
  expect((await send(fresh, step, { code: codeOf(app, key) })).status).toBe(400)
  expect(answerOf(await fresh.submit(consent, { decision: 'approve' })).code).toBeString()
  expect((await send(fresh, step, { code: codeOf(app, key) })).status).toBe(400)
})

test('R-24 nor one between the steps of a passkey: enrolled once, and each answer works once', async () => {
  let running = await createApp(app.context)
  const call: typeof app.call = async (path, init = {}) =>
    running.fetch(new Request(new URL(path, app.context.config.url), { redirect: 'manual', ...init }))
  const restart = async <T>(step: Promise<T>): Promise<T> => {
    const result = await step
    running = await createApp(app.context)
    return result
  }
  const user = await addUser(app, 'steady')
  const browser = openBrowser({ call, context: app.context })
  const choice = await restart(openEnrolment(browser, 'steady'))
  const offer = await restart(browser.get(linkWith(choice, 'kind=passkey')))
  const passkey = newPasskey()
  const credential = passkey.create(optionsOf(offer))
  await restart(browser.submit(offer, { credential }, '/oauth/enrol'))
  expect((await browser.submit(offer, { credential }, '/oauth/enrol')).status).toBe(303)
  expect((await rows('factors')).filter(({ user_id }) => user_id === user.id)).toHaveLength(1)
  const fresh = openBrowser({ call, context: app.context })
  const login = await restart(fresh.get(authorizeUrl('shop')))
  const answer = passkey.get(optionsOf(login))
  expect((await restart(fresh.submit(login, { credential: answer }, '/oauth/passkey'))).status).toBe(303)
  expect((await fresh.submit(login, { credential: answer }, '/oauth/passkey')).status).toBe(401)
})

test('the second step runs out with its request', async () => {
  const { user, key } = await withTotp()
  const { browser, page } = await secondStep(user)
  app.clock.advance(31 * MINUTE)
  expect((await send(browser, page, { code: codeOf(app, key) })).status).toBe(400)
})

test('a deleted user leaves no factor behind', async () => {
  const { user } = await withTotp()
  await app.admin('DELETE', `/users/${user.id}`)
  expect(
    [...(await rows('factors')), ...(await rows('recovery_codes'))].some(
      ({ user_id }) => user_id === user.id,
    ),
  ).toBe(false)
})
