import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { answerOf, formOf, openBrowser } from '#test/support/browser.ts'
import { enrolTotp, linkWith } from '#test/support/factors.ts'
import { authorizeUrl, codeRow, PASSWORD, signIn } from '#test/support/people.ts'
import { COOKIE, STEP, startRemembering } from './remembered-world.ts'

const { app, mail, allow, rowsOf, newUser, logIn, prove, signOut, remembered, asks, logInByMail } =
  await startRemembering()

beforeEach(async () => {
  app.clock.advance(HOUR)
  await allow({ remember_browser_days: 30, mfa_required: true, passkey_required: null, email_code: null })
  await deliverMails(app.context)
  mail.clear()
  await app.events()
})

describe('RMB-01 a remembered browser', () => {
  test('needs no second factor, at acr 1, until it expires', async () => {
    const { user, browser } = await remembered()
    expect(browser.cookies.get(COOKIE)).toBeString()
    const done = await logIn(browser, user.username)
    const { acr, amr } = await codeRow(app, answerOf(done).code)
    expect([acr, amr]).toEqual(['1', ['pwd']])
    // Single sign-on does not ask for the second factor.
    expect(answerOf(await browser.get(authorizeUrl('web'))).code).toBeString()
    signOut(browser)
    app.clock.advance(30 * DAY)
    expect(await asks(browser, user.username)).toBe(true)
  })

  test('stays chosen after a mistyped code', async () => {
    const { user } = await newUser()
    const browser = openBrowser(app)
    const step = await logIn(browser, user.username)
    const { code: _, remember: __, ...rest } = formOf(step, '/oauth/second-factor').fields
    await app.events()
    for (const [typed, isTicked] of [
      [{ remember: '1' }, true],
      [{}, false],
    ] as const) {
      const again = await browser.post('/oauth/second-factor', { ...rest, code: '000000', ...typed })
      expect(again.status).toBe(401)
      expect(/name="remember"[^>]*checked/.test(again.html)).toBe(isTicked)
    }
    expect(await rowsOf(user)).toEqual([])
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.login_failed', 'user.login_failed'])
  })

  test.each([{ acr_values: '2' }, { acr_values: 'phr' }, { scope: 'openid users:read' }])(
    'still asks for %j',
    async (more: Record<string, string>) => {
      const { user, browser, key } = await remembered({ roles: ['admin'] })
      expect((await logIn(browser, user.username, more)).heading).toBe(STEP)
      signOut(browser)
      // A login that was made without the second factor does not suffice.
      await logIn(browser, user.username)
      const step = await browser.get((await browser.get(authorizeUrl('web', more))).url)
      expect(step.heading).toBe(STEP)
      if (more.acr_values === '2')
        expect((await codeRow(app, answerOf(await prove(browser, step, key)).code)).acr).toBe('2')
    },
  )

  test('does not replace a passkey that the organization requires', async () => {
    const { user, browser } = await remembered()
    await allow({ passkey_required: true })
    expect(await asks(browser, user.username)).toBe(true)
  })

  test('is offered nowhere without the setting, and not to a code by mail or a recovery code', async () => {
    const { user, key, codes } = await newUser()
    const browser = openBrowser(app)
    const step = await logIn(browser, user.username)
    expect(step.html).toContain('name="remember"')
    const recover = await browser.get(linkWith(step, 'method=recovery'))
    expect(recover.html).not.toContain('name="remember"')
    const typed = { recovery_code: codes[0] ?? '', remember: '1' }
    await browser.submit(recover, typed, '/oauth/second-factor')
    expect(await rowsOf(user)).toEqual([])
    await allow({ remember_browser_days: null })
    const other = openBrowser(app)
    const plain = await logIn(other, user.username)
    expect(plain.html).not.toContain('name="remember"')
    await prove(other, plain, key, { remember: '1' })
    expect(await rowsOf(user)).toEqual([])
  })
})

describe('RMB-02 a change of the account', () => {
  test('asks for the second factor, even right after a login without it', async () => {
    const { user, browser, key } = await remembered()
    expect((await signIn(browser, await browser.get('/account'), user.username)).heading).toBe('Your account')
    for (const path of ['/account/change-password', '/account/security/add'])
      expect([path, (await browser.get(path)).heading]).toEqual([path, STEP])
    const page = await browser.get('/account/security')
    const factor_id = page.forms.find(({ fields }) => fields.factor_id)?.fields.factor_id ?? ''
    const csrf_token = page.forms.find(({ fields }) => fields.csrf_token)?.fields.csrf_token ?? ''
    await allow({ mfa_required: null })
    const posted = await browser.post('/account/security/codes', { csrf_token, factor_id })
    const step = await browser.follow(posted)
    expect(step.heading).toBe(STEP)
    expect((await prove(browser, step, key)).heading).toBe('Save your recovery codes')
  })

  test('PAG-61 stays undone when another request has got the second factor', async () => {
    const { user, browser, key } = await remembered()
    await signIn(browser, await browser.get('/account'), user.username)
    const page = await browser.get('/account/security')
    const step = await browser.follow(await browser.submit(page, {}, '/account/security/codes'))
    expect(step.heading).toBe(STEP)
    await prove(browser, await browser.get('/account/change-password'), key)
    await app.events()
    expect((await browser.follow(await browser.get(step.url))).heading).toBe('Confirm it’s you')
    expect(await app.events()).toEqual([])
  })

  test('by a reset mail waits for the second factor', async () => {
    const { user, browser } = await remembered()
    const login = await browser.get(authorizeUrl('web'))
    const form = await browser.get(linkWith(login, '/oauth/reset-password'))
    await browser.submit(form, { username: user.username }, '/oauth/reset-password')
    await deliverMails(app.context)
    const letter = mail.mails.findLast(({ subject }) => subject.startsWith('Choose a new password'))
    const link = /http:\S+/.exec(letter?.text ?? '')?.[0] ?? ''
    const typed = { password: 'Another-horse-8', password_repeat: 'Another-horse-8' }
    const step = await browser.follow(await browser.submit(await browser.get(link), typed))
    expect(step.heading).toBe(STEP)
    expect(step.html).not.toContain('name="remember"')
    const other = openBrowser(app)
    expect((await logIn(other, user.username)).heading).toBe(STEP)
  })
})

describe('RMB-03 the cookie', () => {
  test('has no effect for another user, or without the password', async () => {
    const { browser } = await remembered()
    const other = await newUser()
    expect((await logIn(browser, other.user.username)).heading).toBe(STEP)
    expect((await browser.get('/account')).heading).toBe('Sign in')
    expect(
      (await signIn(browser, await browser.get(authorizeUrl('web')), other.user.username, 'x')).status,
    ).toBe(401)
  })

  test('serves several users, and a replaced value serves nobody', async () => {
    const { user, browser } = await remembered()
    const former = browser.cookies.get(COOKIE) ?? ''
    const other = await newUser()
    const step = await logIn(browser, other.user.username)
    await prove(browser, step, other.key, { remember: '1' })
    signOut(browser)
    expect(browser.cookies.get(COOKIE)).not.toBe(former)
    expect([await asks(browser, user.username), await asks(browser, other.user.username)]).toEqual([
      false,
      false,
    ])
    const thief = openBrowser(app)
    thief.cookies.set(COOKIE, former)
    expect(await asks(thief, user.username)).toBe(true)
  })

  test('has no effect with a code by mail', async () => {
    await allow({ email_code: 'users' })
    const { user, browser } = await remembered()
    const step = await logInByMail(browser, user.username)
    expect(step.heading).toBe(STEP)
    expect(step.html).not.toContain('name="remember"')
    expect((await browser.get('/account')).heading).toBe('Sign in')
  })
})

describe('RMB-04 a remembered browser ends', () => {
  const ends: Record<string, (who: Awaited<ReturnType<typeof remembered>>) => Promise<unknown>> = {
    'with a new password': ({ user }) =>
      app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD }),
    'with a sign-out everywhere': ({ user }) => app.admin('DELETE', `/users/${user.id}/sessions`),
    'with another address': ({ user }) =>
      app.admin('PUT', `/users/${user.id}`, { email: `new-${user.email}`, email_verified: true }),
    'with another factor': async ({ user, key }) => {
      const own = openBrowser(app)
      const step = await signIn(own, await own.get('/account/security/add'), user.username)
      await enrolTotp(app, own, await prove(own, step, key))
    },
    'with a used recovery code': async ({ user, codes }) => {
      const own = openBrowser(app)
      const page = await own.get(linkWith(await logIn(own, user.username), 'method=recovery'))
      await own.submit(page, { recovery_code: codes[0] ?? '' }, '/oauth/second-factor')
    },
    'with the setting, also when it comes back': async () => {
      await allow({ remember_browser_days: null })
      await allow({ remember_browser_days: 30 })
    },
  }
  for (const [when, end] of Object.entries(ends))
    test(when, async () => {
      const who = await remembered()
      expect(await rowsOf(who.user)).toHaveLength(1)
      await end(who)
      expect(await rowsOf(who.user)).toEqual([])
      expect(await asks(who.browser, who.user.username)).toBe(true)
    })

  test('while the setting is off, and earlier when it allows fewer days', async () => {
    const { user, browser } = await remembered()
    app.clock.advance(3 * DAY)
    expect(await asks(browser, user.username)).toBe(false)
    await allow({ remember_browser_days: 2 })
    expect(await asks(browser, user.username)).toBe(true)
  })
})

describe('RMB-05 remembered browsers', () => {
  test('are listed and forgotten by their user, and by administrators', async () => {
    const { user, browser } = await remembered()
    const [row] = await rowsOf(user)
    expect((await app.events()).at(-1)).toMatchObject({
      type: 'user.browser_remembered',
      actor_id: user.id,
      metadata: { browser_id: row?.id },
    })
    await signIn(browser, await browser.get('/account'), user.username)
    const page = await browser.get('/account/security')
    expect(page.html).toContain('Remembered browsers')
    await app.events()
    const answer = await browser.submit(page, {}, '/account/security/forget')
    expect(answer.location).toContain('notice=browser_forgotten')
    expect((await app.events()).map(({ type, actor_id }) => [type, actor_id])).toEqual([
      ['user.browser_forgotten', user.id],
    ])
    const second = await remembered()
    const path = `/users/${second.user.id}/remembered-browsers`
    const { body } = await app.admin('GET', path)
    expect(body.pagination.total).toBe(1)
    expect(body.data[0]).toEqual({
      id: expect.stringMatching(/^brw_/),
      ip_address: '192.0.2.10',
      user_agent: expect.any(String),
      created_at: expect.any(String),
      expires_at: expect.any(String),
    })
    expect(
      (await app.admin('DELETE', `/users/${user.id}/remembered-browsers/${body.data[0].id}`)).status,
    ).toBe(404)
    await app.events()
    expect((await app.admin('DELETE', `${path}/${body.data[0].id}`)).status).toBe(204)
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.browser_forgotten'])
    expect(await asks(second.browser, second.user.username)).toBe(true)
  })

  test('are forgotten by their own user only', async () => {
    const [one, two] = [await remembered(), await remembered()]
    await signIn(one.browser, await one.browser.get('/account'), one.user.username)
    const page = await one.browser.get('/account/security')
    const [row] = await rowsOf(two.user)
    await one.browser.submit(page, { browser_id: row?.id ?? '' }, '/account/security/forget')
    expect(await rowsOf(two.user)).toHaveLength(1)
  })
})
