import { describe, expect, test } from 'bun:test'
import { type Json, startApp } from '#test/support/app.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { addPasskeyUser, enrolPasskey, enrolTotp, openEnrolment, sendForm } from '#test/support/factors.ts'
import { addUser, PASSWORD, signIn, signInLink } from '#test/support/people.ts'

const app = await startApp()
let made = 0
const ONLY = 'One of these is your only way to sign in'

const factors = async ({ id }: { id: string }) =>
  (await app.context.store.read(async q => q.select().from(q.tables.factors))).filter(
    ({ user_id }) => user_id === id,
  )

/** Posts the removal of a factor with the CSRF token of the page. */
const remove = async (browser: Browser, page: Page, factor_id: string) => {
  const csrf_token = page.forms.find(({ fields }) => fields.csrf_token)?.fields.csrf_token ?? ''
  return browser.post('/account/security/remove', { csrf_token, factor_id })
}

describe('PEO-18 the only way in', () => {
  test('of an account with one passkey is kept, and can be removed after a password was set', async () => {
    const { user, browser } = await addPasskeyUser(app, `person${++made}`)
    const [factor] = await factors(user)
    const page = await browser.get('/account/security')
    expect(page.html).toContain(ONLY)
    expect(page.html).toContain('Choose a password')
    expect(page.forms.some(({ action }) => action === '/account/security/remove')).toBe(false)
    expect((await remove(browser, page, factor?.id ?? '')).status).toBe(400)
    expect(await factors(user)).toHaveLength(1)
    const form = await browser.get('/account/change-password')
    expect(form.html).not.toContain('current_password')
    const chosen = { password: PASSWORD, password_repeat: PASSWORD }
    await browser.follow(await sendForm(browser, form, 'password', chosen))
    const freed = await browser.get('/account/security')
    expect(freed.html).not.toContain(ONLY)
    await app.events()
    expect((await remove(browser, freed, factor?.id ?? '')).location).toContain('notice=factor_removed')
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.mfa_disabled'])
    const later = openBrowser(app)
    expect((await signIn(later, await later.get('/account'), user.username)).heading).toBe('Your account')
  })

  test('is neither of two passkeys, and no app beside a passkey', async () => {
    const { user, browser } = await addPasskeyUser(app, `person${++made}`)
    await enrolPasskey(browser, await browser.follow(await browser.get('/account/security/add')))
    const [first, second] = await factors(user)
    const page = await browser.get('/account/security')
    expect((await remove(browser, page, first?.id ?? '')).location).toContain('notice=factor_removed')
    const left = await browser.get('/account/security')
    expect((await remove(browser, left, second?.id ?? '')).status).toBe(400)
    await enrolTotp(app, browser, await browser.follow(await browser.get('/account/security/add')))
    const again = await browser.get('/account/security')
    expect((await remove(browser, again, second?.id ?? '')).status).toBe(400)
    expect(await factors(user)).toHaveLength(2)
  })

  test('stays when two requests at once remove both passkeys', async () => {
    const { user, browser } = await addPasskeyUser(app, `person${++made}`)
    await enrolPasskey(browser, await browser.follow(await browser.get('/account/security/add')))
    const page = await browser.get('/account/security')
    await Promise.all((await factors(user)).map(({ id }) => remove(browser, page, id)))
    expect(await factors(user)).toHaveLength(1)
  })

  test('is removed by an administrator only with only_way_in=true', async () => {
    const { user } = await addPasskeyUser(app, `person${++made}`)
    const [factor] = await factors(user)
    for (const path of [`/users/${user.id}/factors`, `/users/${user.id}/factors/${factor?.id}`]) {
      const refused = { status: 409, body: { error: 'conflict' } }
      expect(await app.admin('DELETE', path)).toMatchObject(refused)
      expect(await app.admin('DELETE', `${path}?only_way_in=false`)).toMatchObject(refused)
      expect((await app.admin('DELETE', `${path}?only_way_in=yes`)).status).toBe(422)
    }
    expect(await factors(user)).toHaveLength(1)
    expect((await app.admin('DELETE', `/users/${user.id}/factors?only_way_in=true`)).status).toBe(204)
    // A user with a password can sign in without factors, so no confirmation is needed.
    const other = await addUser(app, `person${++made}`)
    const browser = openBrowser(app)
    await enrolPasskey(browser, await openEnrolment(browser, other.username))
    expect((await app.admin('DELETE', `/users/${other.id}/factors`)).status).toBe(204)
  })

  test('the last passkey stays where passkeys are required', async () => {
    const user = await addUser(app, `person${++made}`)
    const browser = openBrowser(app)
    await enrolPasskey(browser, await openEnrolment(browser, user.username))
    await enrolTotp(app, browser, await browser.follow(await browser.get('/account/security/add')))
    await app.admin('PUT', '/organizations/default', { settings: { passkey_required: true } })
    const page = await browser.get('/account/security')
    const [passkey, totp] = await factors(user)
    expect((await remove(browser, page, passkey?.id ?? '')).status).toBe(400)
    expect((await remove(browser, page, totp?.id ?? '')).location).toContain('notice=factor_removed')
    await app.admin('PUT', '/organizations/default', { settings: { passkey_required: null } })
  })
})

test('a sign-in link offers no passkey to a user who has a factor, because the link must not replace it', async () => {
  const [plain, guarded] = [await addUser(app, `person${++made}`), await addUser(app, `person${++made}`)]
  const owner = openBrowser(app)
  await enrolTotp(app, owner, await openEnrolment(owner, guarded.username))
  const offers = async (user: Json) => {
    const page = await openBrowser(app).get(await signInLink(app, user as { id: string }))
    return [page.status, page.html.includes('data-options')]
  }
  expect([await offers(plain), await offers(guarded)]).toEqual([
    [200, true],
    [200, false],
  ])
})
