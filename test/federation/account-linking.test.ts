import { describe, expect, spyOn, test } from 'bun:test'
import { setPassword } from '#src/directory/users/store.ts'
import type { Json } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser } from '#test/support/browser.ts'
import {
  addPasskeyUser,
  codeOf,
  enrolPasskey,
  enrolTotp,
  linkWith,
  openEnrolment,
  signInWith,
} from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  codeRow,
  PASSWORD,
  signIn,
} from '#test/support/people.ts'
import { restarting } from '#test/support/restarting.ts'
import { startLinking } from './linking-world.ts'
import { addProvider, goThrough, type UpstreamUser } from './upstream.ts'

const { app, upstream, trusted, fresh, somebody, entry, accountsOf, whoIs, refusal } = await startLinking()

describe('an address that already belongs to a user', () => {
  test('FED-03 is linked at once when the provider is trusted and calls it verified', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub)
    await app.events()
    const page = await goThrough(fresh(), upstream, entry('trusted'), { sub, email: email.toUpperCase() })
    expect(await whoIs(page)).toBe(user.id)
    expect(await app.events()).toEqual([
      {
        type: 'user.updated',
        actor_id: user.id,
        target_id: user.id,
        target_type: 'user',
        organization_id: 'org_default',
        metadata: { fields: ['external_accounts'], linked: trusted.id },
      },
    ])
    expect(await accountsOf(user.id)).toHaveLength(1)
  })

  const doubtful: [string, string, Json, UpstreamUser][] = [
    ['the provider is not trusted', 'asking', {}, {}],
    ['it is not verified', 'trusted', {}, { email_verified: 'false' }],
    ['S-35 M-09 the user is an admin', 'trusted', { roles: ['admin'] }, {}],
    ['the user has more rights than the role user', 'trusted', { roles: ['user', 'reader'] }, {}],
    ['registration is closed', 'closed', {}, {}],
  ]

  test.each(doubtful)('FED-04 needs the local password once when %s', async (_, alias, more, said) => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub, more)
    const browser = fresh()
    await app.events()
    const asked = await goThrough(browser, upstream, entry(alias), { sub, email, ...said })
    expect([asked.status, asked.heading]).toEqual([200, 'Is this you?'])
    expect(await app.events()).toEqual([])
    expect(await accountsOf(user.id)).toEqual([])
    const wrong = await browser.submit(asked, { password: 'Wrong-horse-7' })
    expect([wrong.status, wrong.heading]).toEqual([401, 'Is this you?'])
    expect(await refusal()).toEqual([['user.login_failed', user.id, 'wrong_password']])
    expect((await browser.submit(wrong, { password: '' })).status).toBe(400)
    const page = await browser.follow(await browser.submit(wrong, { password: PASSWORD }))
    expect(await whoIs(page)).toBe(user.id)
    expect(await refusal()).toMatchObject([['user.updated', user.id, { fields: ['external_accounts'] }]])
    const again = await goThrough(fresh(), upstream, entry(alias), { sub, email, ...said })
    expect(await whoIs(again)).toBe(user.id)
  })

  test('FED-04 a user without a password signs in another way, which the page offers to everyone', async () => {
    const [known, keyed] = [somebody(), somebody()]
    await addUser(app, known.sub)
    const { user, passkey } = await addPasskeyUser(app, keyed.sub)
    const other = await goThrough(fresh(), upstream, entry('asking'), known)
    expect(linkWith(other, '/oauth/login?request=')).toBeString()
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), keyed)
    expect(asked.heading).toBe('Is this you?')
    await app.events()
    const login = await browser.get(linkWith(asked, '/oauth/login?request='))
    expect(login.heading).toBe('Sign in')
    expect(await whoIs(await signInWith(browser, login, passkey))).toBe(user.id)
    expect(await app.events()).toEqual([])
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('is not linked by a password that is reset while it is being verified', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub)
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), { sub, email })
    const verify = spyOn(Bun.password, 'verify').mockImplementationOnce(async () => {
      const now = app.clock.now() + 1
      const reset = { password_hash: 'of another', password_temporary: false, password_changed_at: now }
      await app.context.store.write(tx => setPassword(tx, user.id, { ...reset, updated_at: now }))
      return true
    })
    const page = await browser.submit(asked, { password: PASSWORD })
    verify.mockRestore()
    expect([page.status, page.location]).toEqual([400, undefined])
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('M-09 in another organization is not linked: a new user is created in this organization', async () => {
    const { sub, email } = somebody()
    const { id } = await addOrganization(app, `home-of-${sub}`)
    const other = await addUser(app, sub, { organization_id: id })
    const page = await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
    const mine = await app.admin('GET', `/users/${await whoIs(page)}`)
    expect(mine.body).toMatchObject({ organization_id: 'org_default', email })
    expect(await accountsOf(other.id)).toEqual([])
  })

  test('of a disabled user is refused', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub, { enabled: false })
    await app.events()
    expect((await goThrough(fresh(), upstream, entry('trusted'), { sub, email })).status).toBe(400)
    expect(await refusal()).toEqual([['user.login_failed', user.id, 'user_disabled']])
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), { sub, email })
    expect((await browser.submit(asked, { password: PASSWORD })).status).toBe(401)
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('unverified, on an account from another provider, does not lock out its owner', async () => {
    const { sub, email } = somebody()
    await goThrough(fresh(), upstream, entry('asking'), { sub: `trap-${sub}`, email })
    const owner = await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
    expect(owner.heading).toBe('Is this you?')
  })

  test('unverified, on an account from another provider without a login, does not lock out its owner', async () => {
    const require = (mfa_required: boolean | null) =>
      app.admin('PUT', '/organizations/default', { settings: { mfa_required } })
    const { sub, email } = somebody()
    await require(true)
    const thief = await goThrough(fresh(), upstream, entry('asking'), { sub: `trap-${sub}`, email })
    await require(null)
    expect(thief.heading).toBe('Protect your account')
    const owner = await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
    expect(owner.heading).toBe('Is this you?')
  })

  test('S-35 entered by a user without verification does not lock out its owner', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, `trap-of-${sub}`)
    const browser = fresh()
    await signIn(browser, await browser.get('/account'), user.username)
    const moved = await app.admin('PUT', `/users/${user.id}`, { email })
    expect(moved.body).toMatchObject({ email, email_verified: false })
    const owner = await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
    expect(owner.heading).toBe('Is this you?')
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('of a linked user who was disabled since, or whose provider was deleted', async () => {
    const { sub, email } = somebody()
    const id = await whoIs(await goThrough(fresh(), upstream, entry('asking'), { sub, email }))
    await app.admin('PUT', `/users/${id}`, { enabled: false })
    await app.events()
    expect((await goThrough(fresh(), upstream, entry('asking'), { sub, email })).status).toBe(400)
    expect(await refusal()).toEqual([['user.login_failed', id, 'user_disabled']])
    expect((await app.admin('DELETE', `/users/${id}`)).status).toBe(204)
    expect(await accountsOf(id)).toEqual([])
  })
})

describe('O-69 a user who has a second factor', () => {
  const guarded = async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub, { email_verified: true })
    const own = fresh()
    const { key } = await enrolTotp(app, own, await openEnrolment(own, sub))
    app.clock.advance(30_000)
    const code = () => codeOf(app, key)
    await app.events()
    return { user, sub, email, code, browser: fresh() }
  }
  const loginsOf = async (id: string) =>
    (await app.context.store.read(async q => q.select().from(q.tables.logins))).filter(
      ({ user_id }) => user_id === id,
    )

  test.each([['asking'], ['trusted']])('is not linked with less, at %s', async alias => {
    const { user, sub, email, code, browser } = await guarded()
    const said = { sub, email, email_verified: String(alias === 'trusted') }
    const arrived = await goThrough(browser, upstream, entry(alias), said)
    const step =
      alias === 'trusted'
        ? arrived
        : await browser.follow(await browser.submit(arrived, { password: PASSWORD }))
    expect(step.heading).toBe('Two-step verification')
    const before = await loginsOf(user.id)
    expect(await accountsOf(user.id)).toEqual([])
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.first_factor_proven'])
    const [stored] = (
      await app.context.store.read(async q => q.select().from(q.tables.authorization_requests))
    ).filter(({ proof }) => proof?.user_id === user.id)
    expect(stored?.proof).toMatchObject({ user_id: user.id, action: expect.any(String) })
    expect(JSON.stringify(stored)).not.toContain(email)
    expect((await browser.submit(step, { code: '000000' })).status).toBe(401)
    expect((await refusal())[0]?.[2]).toBe('wrong_code')
    expect(await accountsOf(user.id)).toEqual([])
    const page = await browser.follow(await browser.submit(step, { code: code() }))
    expect(await whoIs(page)).toBe(user.id)
    expect(await accountsOf(user.id)).toMatchObject([{ subject: sub, label: email }])
    expect(await loginsOf(user.id)).toHaveLength(before.length + 1)
    expect(await refusal()).toMatchObject([['user.updated', user.id, { fields: ['external_accounts'] }]])
    expect((await browser.submit(step, { code: code() })).status).toBe(400)
    expect(await accountsOf(user.id)).toHaveLength(1)
  })

  test('is asked for it after linking too: a provider replaces only the password', async () => {
    const { user, sub, email, code, browser } = await guarded()
    const proof = await goThrough(browser, upstream, entry('asking'), { sub, email })
    const step = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
    await browser.follow(await browser.submit(step, { code: code() }))
    app.clock.advance(30_000)
    await app.events()
    const later = fresh()
    const again = await goThrough(later, upstream, entry('asking'), { sub, email })
    expect(again.heading).toBe('Two-step verification')
    expect((await later.get('/account')).heading).toBe('Sign in')
    const silent = answerOf(await later.get(authorizeUrl('app', { prompt: 'none' })))
    expect(silent.error).toBe('login_required')
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.amr])).toEqual([
      ['user.first_factor_proven', ['fed']],
    ])
    const page = await later.follow(await later.submit(again, { code: code() }))
    const { acr, amr } = await codeRow(app, answerOf(page).code)
    expect([await whoIs(page), acr, amr]).toEqual([user.id, '2', ['fed', 'otp', 'mfa']])
  })

  test('RMB-03 may have a browser remembered beside a provider, but not for a new link', async () => {
    const allow = (remember_browser_days: number | null) =>
      app.admin('PUT', '/organizations/default', { settings: { remember_browser_days } })
    expect((await allow(30)).status).toBe(200)
    const { sub, email, code, browser } = await guarded()
    const proof = await goThrough(browser, upstream, entry('asking'), { sub, email })
    const linking = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
    expect(linking.html).not.toContain('name="remember"')
    await browser.follow(await browser.submit(linking, { code: code() }))
    app.clock.advance(30_000)
    const later = fresh()
    const step = await goThrough(later, upstream, entry('asking'), { sub, email })
    await later.submit(step, { code: code(), remember: '1' })
    later.cookies.delete('gatehouse_login_8080')
    const page = await goThrough(later, upstream, entry('asking'), { sub, email })
    const { acr, amr } = await codeRow(app, answerOf(page).code)
    expect([acr, amr]).toEqual(['1', ['fed']])
    expect((await allow(null)).status).toBe(200)
  })

  test('is not linked when another user signs in instead, or when the provider is deleted meanwhile', async () => {
    const { user, sub, email, code, browser } = await guarded()
    const other = await addUser(app, `other-${sub}`)
    const login = await browser.get(authorizeUrl('app'))
    const way = `/oauth/social/asking?request=${formOf(login).fields.request}`
    const proof = await goThrough(browser, upstream, way, { sub, email })
    expect((await browser.follow(await browser.submit(proof, { password: PASSWORD }))).heading).toBe(
      'Two-step verification',
    )
    expect(await whoIs(await signIn(browser, login, other.username))).toBe(other.id)
    expect((await accountsOf(user.id)).concat(await accountsOf(other.id))).toEqual([])
    await addProvider(app, 'fleeting', { client_id: 'fleeting' })
    const again = fresh()
    const asked = await goThrough(again, upstream, entry('fleeting'), { sub, email })
    const step = await again.follow(await again.submit(asked, { password: PASSWORD }))
    await app.admin('PUT', '/identity-providers/fleeting', { enabled: false })
    const late = await again.submit(step, { code: code() })
    expect([late.status, late.location]).toEqual([400, undefined])
    expect(await accountsOf(user.id)).toEqual([])
    expect((await app.events()).map(({ type }) => type)).not.toContain('user.updated')
  })

  test('is linked by the last requested factor, not by an earlier one', async () => {
    const { user, sub, email, code, browser } = await guarded()
    const stronger = `${entry('asking')}&acr_values=phr`
    const proof = await goThrough(browser, upstream, stronger, { sub, email })
    const step = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
    const choice = await browser.follow(await browser.submit(step, { code: code() }))
    expect(choice.html).toContain('data-passkey="create"')
    expect(await accountsOf(user.id)).toEqual([])
    const { page } = await enrolPasskey(browser, choice)
    expect((await codeRow(app, answerOf(page).code)).acr).toBe('phr')
    expect(await accountsOf(user.id)).toMatchObject([{ subject: sub }])
  })

  test('R-24 or must enrol a second factor: the link waits for the enrolment, across restarts', async () => {
    const strict = await addOrganization(app, 'guarded', { settings: { mfa_required: true } })
    await addClient(app, 'guarded-app', { organization_id: strict.id })
    await addProvider(app, 'guarded-id', { organization_id: strict.id, client_id: 'guarded' })
    const { sub, email } = somebody()
    const user = await addUser(app, sub, { organization_id: strict.id })
    const at = authorizeUrl('guarded-app').replace('/oauth/authorize', '/oauth/social/guarded-id')
    const browser = openBrowser(restarting(app))
    const proof = await goThrough(browser, upstream, at, { sub, email })
    const choice = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
    expect(choice.heading).toBe('Protect your account')
    expect(await accountsOf(user.id)).toEqual([])
    const { page } = await enrolTotp(app, browser, choice)
    expect(await accountsOf(user.id)).toMatchObject([{ subject: sub }])
    expect(await whoIs(await browser.submit(page, {}, '/oauth/enrol'))).toBe(user.id)
    // A user who comes from the provider also has to enrol a factor before the login begins.
    const newcomer = fresh()
    const first = await goThrough(newcomer, upstream, at, somebody())
    expect(first.heading).toBe('Protect your account')
    expect((await newcomer.get('/account?organization=guarded')).heading).toBe('Sign in')
  })
})
