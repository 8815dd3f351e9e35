import { describe, expect, test } from 'bun:test'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import {
  codeOf,
  enrolTotp,
  inDigits,
  keyOf,
  linkWith,
  openEnrolment,
  recoveryCodesOf,
} from '#test/support/factors.ts'
import { addOrganization, addUser, authorizeUrl, codeRow, signIn } from '#test/support/people.ts'
import { startWithFactors } from './factor-world.ts'

const { app, nextCode, rows, loginsOf, withTotp, secondStep, send } = await startWithFactors()

describe('an authenticator app', () => {
  test('EVT-17 is enrolled on the account page: one event, a sealed secret, ten codes shown once', async () => {
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

  test('a wrong first code keeps the key and enrols nothing; a resent page continues and enrols nothing more', async () => {
    const user = await addUser(app, 'bob')
    const browser = openBrowser(app)
    const choice = await openEnrolment(browser, 'bob')
    const page = await browser.get(linkWith(choice, 'kind=totp'))
    const wrong = await browser.submit(page, { code: '000000' }, '/oauth/enrol')
    expect([wrong.status, wrong.heading]).toEqual([400, 'Set up your authenticator app'])
    expect((await rows('factors')).some(({ user_id }) => user_id === user.id)).toBe(false)
    const { key } = await enrolTotp(app, browser, wrong)
    const again = await browser.submit(page, { code: codeOf(app, key) }, '/oauth/enrol')
    expect([again.status, again.location]).toEqual([303, '/account/security?notice=factor_added'])
    expect((await rows('factors')).filter(({ user_id }) => user_id === user.id)).toHaveLength(1)
  })

  test('the QR code contains the key shown, and nothing inline that the policy forbids', async () => {
    const browser = openBrowser(app)
    await addUser(app, 'quentin')
    const choice = await openEnrolment(browser, 'quentin')
    const page = await browser.get(linkWith(choice, 'kind=totp'))
    expect(page.html).toMatch(/<svg viewBox="0 0 \d+ \d+" role="img"[^>]*><path d="M[\dhvz M-]+"\/><\/svg>/)
    expect(page.html).not.toMatch(/ style=|data:image/)
    expect(page.html).toContain('otpauth://totp/')
  })

  test('the label in the URI separates issuer and user name by its only colon', async () => {
    const acme = await addOrganization(app, 'acme', { name: 'Acme: Labs' })
    await addUser(app, 'rita', { organization_id: acme.id })
    const browser = openBrowser(app)
    const login = await browser.get('/account/security?organization=acme')
    const security = await signIn(browser, login, 'rita')
    const choice = await browser.follow(await browser.get(linkWith(security, '/account/security/add')))
    const page = await browser.get(linkWith(choice, 'kind=totp'))
    const [, label, issuer] = /otpauth:\/\/totp\/([^?]*)\?[^"]*issuer=([^&"]*)/.exec(page.html) ?? []
    expect([label, issuer]).toEqual(['Acme%20Labs:rita', 'Acme%20Labs'])
  })

  test('is asked for after the password; amr in the tokens has both', async () => {
    const { user, key } = await withTotp()
    const { browser, page } = await secondStep(user)
    await app.events()
    const done = await send(browser, page, { code: codeOf(app, key) })
    const row = await codeRow(app, answerOf(done).code)
    expect([row.acr, row.amr, row.auth_time]).toEqual(['2', ['pwd', 'otp', 'mfa'], app.clock.now()])
    expect(await app.events()).toEqual([])
    expect(answerOf(await browser.get(authorizeUrl('web'))).code).toBeString()
  })

  test.each(['٠', '۰', '０'])(
    'is enrolled and asked for with the digits of another script, from %s',
    async zero => {
      const user = await addUser(app, `digits${zero.charCodeAt(0)}`)
      const browser = openBrowser(app)
      const page = await browser.get(linkWith(await openEnrolment(browser, user.username), 'kind=totp'))
      const key = keyOf(page)
      await app.events()
      const enrolled = await browser.submit(page, { code: inDigits(zero, codeOf(app, key)) }, '/oauth/enrol')
      expect(enrolled.heading).toBe('Save your recovery codes')
      expect((await app.events()).map(({ type }) => type)).toEqual(['user.mfa_enabled'])
      nextCode()
      const second = await secondStep(user)
      await app.events()
      const done = await send(second.browser, second.page, { code: inDigits(zero, codeOf(app, key)) })
      expect((await codeRow(app, answerOf(done).code)).amr).toEqual(['pwd', 'otp', 'mfa'])
      expect(await app.events()).toEqual([])
    },
  )

  test.each([
    [-31 * SECOND, 200],
    [-30 * SECOND, 302],
    [0, 302],
    [30 * SECOND, 302],
    [60 * SECOND, 200],
  ])(
    'FAC-01 codes of the previous and the next step are accepted, others not: %d ms',
    async (shift, status) => {
      const { user, key } = await withTotp()
      app.clock.advance(5 * MINUTE - (app.clock.now() % (30 * SECOND)))
      const { browser, page } = await secondStep(user)
      const answer = await send(browser, page, { code: codeOf(app, key, shift) })
      expect(answer.status).toBe(status === 200 ? 401 : 302)
    },
  )

  test('FAC-02 a used code is refused, and so are earlier ones', async () => {
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

  test('FAC-02 only one of fifty browsers with the same code gets in', async () => {
    const { user, key } = await withTotp()
    const code = codeOf(app, key)
    const steps: Awaited<ReturnType<typeof secondStep>>[] = []
    while (steps.length < 50) steps.push(await secondStep(user))
    const answers = await Promise.all(steps.map(({ browser, page }) => send(browser, page, { code })))
    expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
  })

  test.each(['code', 'recovery_code'])(
    'the same form sent twice at once: a used %s is no failure',
    async name => {
      const { user, key, codes } = await withTotp()
      const { browser, page } = await secondStep(user)
      const value = name === 'code' ? codeOf(app, key) : (codes[0] ?? '')
      await app.events()
      const answers = await Promise.all([1, 2].map(() => send(browser, page, { [name]: value })))
      expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
      expect(await app.events()).toEqual([])
    },
  )
})

describe('recovery codes', () => {
  test('used on the account pages lead to where the lost factor is removed, if the user may do that', async () => {
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
      'You signed in with a recovery code. 9 codes are left. Remove the passkey or app that you lost.',
    )
    expect(page.html).toContain('9 of your codes are left')
    expect((await enter('/account/profile', codes[1])).heading).toBe('Profile')
    const role = await app.admin('POST', '/roles', { name: 'reader', permissions: ['profile:read'] })
    expect(role.status).toBe(201)
    await app.admin('PUT', `/users/${user.id}`, { roles: ['reader'] })
    expect((await enter('/account', codes[2])).heading).toBe('Your account')
  })

  test('FAC-03 each works once, in any spelling', async () => {
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

  test('the page that asks for one says who can help; the page that asks for a code of the app does not', async () => {
    const { user } = await withTotp()
    const { browser, page } = await secondStep(user)
    expect(page.html).not.toContain('Lost access?')
    const form = await browser.get(linkWith(page, 'method=recovery'))
    expect(form.html).toContain('Ask an administrator of Gatehouse for help')
  })

  test('of another user, codes of the app and nonsense are refused', async () => {
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

test('deleting a user deletes their factors', async () => {
  const { user } = await withTotp()
  await app.admin('DELETE', `/users/${user.id}`)
  expect(
    [...(await rows('factors')), ...(await rows('recovery_codes'))].some(
      ({ user_id }) => user_id === user.id,
    ),
  ).toBe(false)
})
