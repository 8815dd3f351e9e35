import { beforeEach, describe, expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { answerOf, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import {
  addPasskeyUser,
  codeOf,
  enrolPasskey,
  enrolTotp,
  linkWith,
  openEnrolment,
  optionsOf,
  recoveryCodesOf,
  sendForm,
  signInWith,
} from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, codeRow, PASSWORD, signIn } from '#test/support/people.ts'

const app = await startApp()
await addClient(app, 'web')
let made = 0
const newUser = () => addUser(app, `person${++made}`)
/** Creates a user who is invited by a link. */
const invite = () =>
  app.admin('POST', '/users', {
    username: `person${++made}`,
    email: `person${made}@example.com`,
    first_name: 'A',
    last_name: 'B',
    invite: 'link',
  })

const require = async (passkey_required: boolean | null) =>
  expect((await app.admin('PUT', '/organizations/default', { settings: { passkey_required } })).status).toBe(
    200,
  )

/** Returns acr and amr of the code that the client gets. */
const acrOf = async (page: Page) => {
  const { acr, amr } = await codeRow(app, answerOf(page).code)
  return [acr, amr]
}

const toClient = (more: Record<string, string> = {}) => authorizeUrl('web', more)

beforeEach(async () => {
  await require(null)
  await app.events()
})

describe('PEO-14 where passkeys are required', () => {
  test('a user without one adds it after the password, and needs it from then on', async () => {
    const user = await newUser()
    await require(true)
    const browser = openBrowser(app)
    const asked = await signIn(browser, await browser.get(toClient()), user.username)
    expect(asked.heading).toBe('Add a passkey')
    expect(asked.html).not.toContain('kind=totp')
    const { passkey, page } = await enrolPasskey(browser, asked)
    expect(await acrOf(await browser.submit(page, {}, '/oauth/enrol'))).toEqual([
      'phr',
      ['pwd', 'hwk', 'mfa'],
    ])

    const later = openBrowser(app)
    const second = await signIn(later, await later.get(toClient()), user.username)
    expect(second.heading).toBe('Two-step verification')
    const credential = passkey.get(optionsOf(second))
    expect(await acrOf(await later.submit(second, { credential }, '/oauth/second-factor'))).toEqual([
      'phr',
      ['pwd', 'hwk', 'mfa'],
    ])
    const alone = openBrowser(app)
    const page2 = await signInWith(alone, await alone.get(toClient()), passkey)
    expect(await acrOf(page2)).toEqual(['phr', ['hwk', 'mfa']])
  })

  test('an app is proven before a passkey is added, and does not suffice afterwards', async () => {
    const user = await newUser()
    const browser = openBrowser(app)
    const { key } = await enrolTotp(app, browser, await openEnrolment(browser, user.username))
    app.clock.advance(30_000)
    await require(true)
    const login = openBrowser(app)
    const step = await signIn(login, await login.get(toClient({ acr_values: '1' })), user.username)
    const code = codeOf(app, key)
    const asked = await login.follow(await login.submit(step, { code }, '/oauth/second-factor'))
    expect(asked.heading).toBe('Add a passkey')
    await enrolPasskey(login, asked)
    app.clock.advance(30_000)
    const later = openBrowser(app)
    const second = await signIn(later, await later.get(toClient()), user.username)
    expect(second.html).not.toContain('method=totp')
    expect((await later.submit(second, { code: codeOf(app, key) }, '/oauth/second-factor')).status).toBe(400)
    expect((await later.get('/account')).heading).toBe('Sign in')
  })

  test('a login without a passkey is asked for one, even by account pages; prompt=none is refused', async () => {
    const user = await newUser()
    const browser = openBrowser(app)
    await signIn(browser, await browser.get('/account'), user.username)
    await require(true)
    expect((await browser.get('/account')).heading).toBe('Add a passkey')
    expect(answerOf(await browser.get(toClient({ prompt: 'none' }))).error).toBe('interaction_required')
  })

  test('a user without any permission adds it too', async () => {
    const user = await addUser(app, `person${++made}`, { roles: [] })
    await require(true)
    const browser = openBrowser(app)
    const asked = await signIn(browser, await browser.get(toClient()), user.username)
    const { page } = await enrolPasskey(browser, asked)
    expect(recoveryCodesOf(page)).toHaveLength(10)
  })

  test('a lost passkey is replaced with password and recovery code, in the same login', async () => {
    const user = await newUser()
    await require(true)
    const browser = openBrowser(app)
    const first = await signIn(browser, await browser.get('/account'), user.username)
    const { page: saved } = await enrolPasskey(browser, first)
    const [recovery_code = ''] = recoveryCodesOf(saved)
    await app.events()

    const later = openBrowser(app)
    const second = await signIn(later, await later.get(toClient()), user.username)
    const recover = await later.get(linkWith(second, 'method=recovery'))
    const asked = await later.follow(await later.submit(recover, { recovery_code }, '/oauth/second-factor'))
    expect(asked.heading).toBe('Add a passkey')
    expect(answerOf(await later.get(toClient({ prompt: 'none' }))).error).toBe('login_required')
    // The recovery code does not work for another user in this request, and does not work a second time.
    const other = await newUser()
    const left = await later.follow(await later.submit(asked, {}, '/oauth/other-account'))
    expect((await signIn(later, left, other.username)).heading).toBe('Add a passkey')
    const again = await signIn(later, await later.get(toClient()), user.username)
    expect(again.heading).toBe('Two-step verification')
    const used = await later.get(linkWith(again, 'method=recovery'))
    expect((await later.submit(used, { recovery_code }, '/oauth/second-factor')).status).toBe(401)
  })

  /** Signs in with the password and a recovery code in place of the passkey, in a new browser. */
  const recover = async (temporary = false) => {
    const user = await newUser()
    await require(true)
    const owner = openBrowser(app)
    const first = await signIn(owner, await owner.get('/account'), user.username)
    const [recovery_code = ''] = recoveryCodesOf((await enrolPasskey(owner, first)).page)
    if (temporary)
      await app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD, temporary })
    const browser = openBrowser(app)
    const login = await browser.get(toClient())
    const form = await browser.get(linkWith(await signIn(browser, login, user.username), 'method=recovery'))
    const asked = await browser.follow(await browser.submit(form, { recovery_code }, '/oauth/second-factor'))
    return { user, owner, browser, login, asked }
  }

  const factorsOf = async (id: string) =>
    (await app.context.store.read(async q => q.select().from(q.tables.factors))).filter(
      ({ user_id }) => user_id === id,
    )

  test.each(['new codes', 'sessions'])(
    'PEO-16 a recovery that the owner ended (%s) does not continue after the password alone',
    async how => {
      const { user, owner, browser, login, asked } = await recover()
      expect(asked.heading).toBe('Add a passkey')
      await (how === 'sessions'
        ? app.admin('DELETE', `/users/${user.id}/sessions`)
        : owner.submit(await owner.get('/account/security'), {}, '/account/security/codes'))
      await app.events()
      expect((await signIn(browser, login, user.username)).heading).toBe('Two-step verification')
      expect((await enrolPasskey(browser, asked)).page.status).toBe(400)
      expect(await factorsOf(user.id)).toHaveLength(1)
      const [pending] = await app.context.store.read(async q =>
        q.select().from(q.tables.authorization_requests),
      )
      expect(pending?.recovered_by).toBeNull()
      expect((await app.events()).map(({ type }) => type)).toEqual([])
    },
  )

  /** Uses a recovery code in a browser whose login is older than the passkey. */
  const recoverLogin = async () => {
    const user = await newUser()
    const [browser, owner] = [openBrowser(app), openBrowser(app)]
    await signIn(browser, await browser.get('/account'), user.username)
    const saved = await enrolPasskey(owner, await openEnrolment(owner, user.username))
    await require(true)
    const step = await browser.get(linkWith(await browser.get(toClient()), 'method=recovery'))
    const [recovery_code = ''] = recoveryCodesOf(saved.page)
    const asked = await browser.follow(await browser.submit(step, { recovery_code }, '/oauth/second-factor'))
    expect(asked.heading).toBe('Add a passkey')
    await app.events()
    return { user, owner, browser, asked }
  }

  test('PEO-16 a recovery code in an older login leads to a passkey and to its client', async () => {
    const { user, browser, asked } = await recoverLogin()
    expect(await acrOf((await enrolPasskey(browser, asked)).page)).toEqual([
      'phr',
      ['pwd', 'otp', 'mfa', 'hwk'],
    ])
    expect(await factorsOf(user.id)).toHaveLength(2)
  })

  test('PEO-16 new codes end a recovery, even if the older login is chosen again', async () => {
    const [user, other] = [await newUser(), await newUser()]
    const [browser, owner] = [openBrowser(app), openBrowser(app)]
    for (const { username } of [other, user])
      await signIn(browser, await browser.get(toClient({ prompt: 'login' })), username)
    const saved = await enrolPasskey(owner, await openEnrolment(owner, user.username))
    await require(true)
    const chooser = await browser.get(toClient({ prompt: 'select_account' }))
    // The latest login is the first that the page offers.
    const login = formOf(chooser).buttons.find(({ name }) => name === 'login')?.value ?? ''
    const choose = async () => browser.follow(await browser.submit(chooser, { login }))
    const step = await browser.get(linkWith(await choose(), 'method=recovery'))
    const [recovery_code = ''] = recoveryCodesOf(saved.page)
    const asked = await browser.follow(await browser.submit(step, { recovery_code }, '/oauth/second-factor'))
    expect(asked.heading).toBe('Add a passkey')
    await owner.submit(await owner.get('/account/security'), {}, '/account/security/codes')
    await app.events()
    expect((await choose()).heading).toBe('Two-step verification')
    expect((await enrolPasskey(browser, asked)).page.status).toBe(400)
    expect(await factorsOf(user.id)).toHaveLength(1)
    expect(await app.events()).toEqual([])
  })

  test('PEO-16 new codes end a recovery in an older login', async () => {
    const { user, owner, browser, asked } = await recoverLogin()
    await owner.submit(await owner.get('/account/security'), {}, '/account/security/codes')
    await app.events()
    expect((await enrolPasskey(browser, asked)).page.status).toBe(400)
    expect((await browser.get(toClient())).heading).toBe('Two-step verification')
    expect(await factorsOf(user.id)).toHaveLength(1)
    expect(await app.events()).toEqual([])
  })

  test('PEO-16 a recovery continues after a temporary password is replaced', async () => {
    const { user, browser, asked } = await recover(true)
    expect(asked.heading).toBe('Choose a new password')
    const given = { password: 'Owner-horse-72', password_repeat: 'Owner-horse-72' }
    const step = await browser.follow(await browser.submit(asked, given, '/oauth/change-password'))
    expect(step.heading).toBe('Add a passkey')
    expect((await enrolPasskey(browser, step)).page.status).toBe(302)
    expect(await factorsOf(user.id)).toHaveLength(2)
  })

  test('a recovery code has no effect for another user of the same request', async () => {
    const thief = await addPasskeyUser(app, `person${++made}`)
    const victim = await addPasskeyUser(app, `person${++made}`)
    await app.admin('POST', `/users/${victim.user.id}/reset-password`, { password: PASSWORD })
    const browser = openBrowser(app)
    const login = await browser.get(toClient())
    const page = await browser.get(linkWith(login, '/oauth/recover'))
    const typed = { username: thief.user.username, recovery_code: thief.codes[0] ?? '' }
    const asked = await browser.follow(await browser.submit(page, typed, '/oauth/recover'))
    expect(asked.heading).toBe('Add a passkey')
    const step = await signIn(browser, login, victim.user.username)
    expect(step.heading).toBe('Two-step verification')
  })

  test('a client that asks for a passkey gets no user with a recovery code elsewhere', async () => {
    const { user, codes } = await addPasskeyUser(app, `person${++made}`)
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD })
    const browser = openBrowser(app)
    const second = await signIn(browser, await browser.get(toClient({ acr_values: 'phr' })), user.username)
    const answer = await browser.submit(second, { recovery_code: codes[0] ?? '' }, '/oauth/second-factor')
    expect(answer.status).toBe(400)
    expect((await browser.get('/account')).heading).toBe('Sign in')
  })

  test('an invitation takes a passkey and no password', async () => {
    await require(true)
    const { body } = await invite()
    const browser = openBrowser(app)
    const page = await browser.get(body.invitation_url)
    expect(page.html).not.toContain('name="password"')
    expect(page.html).toContain('Use another browser or device.')
    const password = { password: PASSWORD, password_repeat: PASSWORD }
    expect((await browser.submit(page, password)).status).toBe(400)
    const credential = newPasskey().create(optionsOf(page))
    expect((await sendForm(browser, page, 'credential', { credential })).heading).toBe(
      'Save your recovery codes',
    )
  })

  describe('when the server has got a URL at which browsers have no passkeys', () => {
    const moved = () =>
      startApp({ url: 'http://192.0.2.1:8080' }, { store: app.context.store, clock: app.clock })
    const codesOf = () => app.context.store.read(async q => q.select().from(q.tables.recovery_codes))

    test('nobody signs in, and no recovery code is used up', async () => {
      const browser = openBrowser(app)
      const ada = await newUser()
      await enrolPasskey(browser, await openEnrolment(browser, ada.username))
      const bob = await newUser()
      await require(true)
      const [later, codes] = [await moved(), await codesOf()]
      await later.events()
      for (const { username, id } of [ada, bob]) {
        const elsewhere = openBrowser(later)
        const answer = await signIn(elsewhere, await elsewhere.get(toClient()), username)
        expect(answerOf(answer).error).toBe('unmet_authentication_requirements')
        expect((await later.events()).map(({ type, target_id }) => [type, target_id])).toEqual([
          ['user.first_factor_proven', id],
        ])
      }
      expect(await codesOf()).toEqual(codes)
    })

    test('an invitation stays open, and its page says that the address of the server is the reason', async () => {
      const { body } = await invite()
      await require(true)
      const later = await moved()
      await later.events()
      const { pathname, search } = new URL(body.invitation_url)
      const page = await openBrowser(later).get(pathname + search)
      expect([page.status, page.heading]).toEqual([503, 'Passkeys don’t work at this address'])
      expect(await later.events()).toEqual([])
      expect((await openBrowser(app).get(pathname + search)).status).toBe(200)
    })

    test('an invitation of a new person stays open, also for a provider that is chosen on its page', async () => {
      const provider = { type: 'oauth2', preset: 'github', alias: 'github', name: 'GitHub' }
      await create(app, '/identity-providers', { ...provider, client_id: 'a', client_secret: 'b' })
      const { invitation_url } = await create(app, '/invitations', { delivery: 'link' })
      const { pathname, search } = new URL(invitation_url)
      const later = await moved()
      const browser = openBrowser(later)
      const page = await browser.get(pathname + search)
      await require(true)
      await later.events()
      const stored = () =>
        app.context.store.read(async q => [
          await q.select().from(q.tables.authorization_requests),
          await q.select().from(q.tables.invitations),
        ])
      const before = await stored()
      for (const answer of [
        await browser.submit({ ...page, forms: page.forms.slice(0, 1) }, { provider: 'github' }),
        await openBrowser(later).get(pathname + search),
      ])
        expect([answer.status, answer.heading]).toEqual([503, 'Passkeys don’t work at this address'])
      expect([await stored(), await later.events()]).toEqual([before, []])
      expect((await openBrowser(app).get(pathname + search)).status).toBe(200)
    })

    test('the checks of the server name the organization', async () => {
      await require(true)
      const { body } = await (await moved()).admin('GET', '/health')
      expect(body.data.find(({ name }: { name: string }) => name === 'scheme')).toEqual({
        name: 'scheme',
        state: 'fail',
        text: 'nobody can sign in to default: passkeys are required, and browsers offer none at http://192.0.2.1:8080: set url to an https address with a host name, or end passkey_required and console_acr by the admin API',
      })
    })
  })

  test('the setting is refused where browsers have no passkeys', async () => {
    const bare = await startApp({ url: 'http://192.0.2.1:8080' })
    const settings = { passkey_required: true }
    expect(await bare.admin('PUT', '/organizations/default', { settings })).toMatchObject({
      status: 422,
      body: { details: [{ field: 'settings.passkey_required', code: 'not_allowed' }] },
    })
    expect((await bare.admin('POST', '/organizations', { name: 'A', slug: 'acme', settings })).status).toBe(
      422,
    )
  })
})
