import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY, HOUR, SECOND } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { BASE, type Json } from '#test/support/app.ts'
import { formOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addOrganization, authorizeUrl, signIn } from '#test/support/people.ts'
import { COOKIE, STEP, startRemembering } from './remembered-world.ts'

const { app, allow, rowsOf, newUser, logIn, code, prove, signOut, remembered, asks } =
  await startRemembering()

beforeEach(async () => {
  app.clock.advance(HOUR)
  await allow({ remember_browser_days: 30, mfa_required: true, passkey_required: null })
  await app.events()
})

describe('RMB-01 a remembered browser', () => {
  test('has no effect for the console', async () => {
    const { user, browser } = await remembered()
    const plain = { redirect_uri: `${BASE}/console/callback`, scope: 'openid' }
    const login = await browser.get(authorizeUrl('gatehouse-console', plain), {
      'sec-fetch-mode': 'navigate',
    })
    expect((await signIn(browser, login, user.username)).heading).toBe(STEP)
  })
})

describe('RMB-02 a factor', () => {
  test('is added only after the second factor, also when the login ends meanwhile', async () => {
    const { user, key, browser } = await remembered()
    const confirm = await signIn(browser, await browser.get('/account/security/add'), user.username)
    const enrol = await prove(browser, confirm, key)
    expect(enrol.html).toContain('kind=totp')
    signOut(browser)
    const again = await signIn(browser, await browser.get(enrol.url), user.username)
    expect(again.heading).toBe(STEP)
  })
})

describe('RMB-03 a browser is remembered', () => {
  test('only when the user chose it, and with the login', async () => {
    const { user, key } = await newUser()
    const browser = openBrowser(app)
    const form = formOf(await logIn(browser, user.username), '/oauth/second-factor')
    const { remember, ...fields } = form.fields
    expect(remember).toBe('1')
    await browser.post('/oauth/second-factor', { ...fields, code: code(key) })
    expect((await browser.get('/account')).heading).toBe('Your account')
    expect([await rowsOf(user), browser.cookies.has(COOKIE)]).toEqual([[], false])
    const other = openBrowser(app)
    const step = await logIn(other, user.username, { acr_values: 'phr' })
    const enrol = await prove(other, step, key, { remember: '1' })
    expect(enrol.heading).toBe('Add a passkey')
    expect([await rowsOf(user), other.cookies.has(COOKIE)]).toEqual([[], false])
  })

  test('nowhere while the organization requires passkeys', async () => {
    const { user } = await newUser()
    await allow({ passkey_required: true })
    const step = await logIn(openBrowser(app), user.username)
    expect([step.heading, step.html.includes('name="remember"')]).toEqual([STEP, false])
  })

  test('by a cookie that lasts as long as the choice', async () => {
    await allow({ remember_browser_days: 7 })
    const { user, key } = await newUser()
    const browser = openBrowser(app)
    const step = await logIn(browser, user.username)
    await browser.submit(step, { code: code(key), remember: '1' }, '/oauth/second-factor')
    const line = browser.received.find(each => each.startsWith(COOKIE))
    expect(line).toEndWith(`; Path=/; HttpOnly; SameSite=Lax; Max-Age=${(7 * DAY) / SECOND}`)
  })
})

describe('RMB-04 the number of days', () => {
  test('that is raised does not extend an earlier choice', async () => {
    await allow({ remember_browser_days: 1 })
    const { user, browser } = await remembered()
    await allow({ remember_browser_days: 30 })
    expect(await asks(browser, user.username)).toBe(false)
    app.clock.advance(DAY)
    expect(await asks(browser, user.username)).toBe(true)
  })

  test('revives no browser whose row an interrupted withdrawal has left', async () => {
    const { user, browser } = await remembered()
    const left = await rowsOf(user)
    await allow({ remember_browser_days: null })
    await app.context.store.write(async tx => {
      await tx.insert(tx.tables.remembered_browsers).values(left)
    })
    expect(await asks(browser, user.username)).toBe(true)
    await allow({ remember_browser_days: 30 })
    expect(await rowsOf(user)).toEqual([])
    expect(await asks(browser, user.username)).toBe(true)
  })

  test('leaves the browsers of other organizations', async () => {
    const { user } = await remembered()
    const { id } = await addOrganization(app, 'tenant', { settings: { remember_browser_days: 7 } })
    expect(
      (await app.admin('PUT', `/organizations/${id}`, { settings: { remember_browser_days: null } })).status,
    ).toBe(200)
    expect(await rowsOf(user)).toHaveLength(1)
  })
})

describe('RMB-05 remembered browsers', () => {
  test('are forgotten only with the permission to change the profile', async () => {
    const { user, browser } = await remembered()
    await signIn(browser, await browser.get('/account'), user.username)
    const page = await browser.get('/account/security')
    expect((await app.admin('PUT', `/users/${user.id}`, { roles: [] })).status).toBe(200)
    expect((await browser.submit(page, {}, '/account/security/forget')).status).toBe(403)
    expect(await rowsOf(user)).toHaveLength(1)
  })

  test('are forgotten one by one', async () => {
    const first = await remembered()
    const second = await remembered({}, first)
    const path = `/users/${first.user.id}/remembered-browsers`
    const { data } = (await app.admin('GET', path)).body
    expect(data).toHaveLength(2)
    expect(data[0].created_at > data[1].created_at).toBe(true)
    expect((await app.admin('DELETE', `${path}/${data[1].id}`)).status).toBe(204)
    expect(await asks(first.browser, first.user.username)).toBe(true)
    expect(await asks(second.browser, first.user.username)).toBe(false)
    app.clock.advance(30 * DAY)
    expect((await app.admin('GET', path)).body.data).toEqual([])
  })

  test('are at most twenty, the latest ones', async () => {
    const { user, key, codes, browser } = await remembered()
    const [own] = await rowsOf(user)
    app.clock.advance(1)
    const more = Array.from({ length: 19 }, (_, i) => ({
      ...(own as NonNullable<typeof own>),
      id: newId('brw', app.clock.now() + i),
      browser_hash: `hash-${i}` as NonNullable<typeof own>['browser_hash'],
    }))
    await app.context.store.write(async tx => {
      await tx.insert(tx.tables.remembered_browsers).values(more)
    })
    const last = await remembered({}, { user, key, codes })
    expect(await rowsOf(user)).toHaveLength(20)
    expect(await asks(browser, user.username)).toBe(true)
    expect(await asks(last.browser, user.username)).toBe(false)
  })

  test('of a user with more permissions than the caller cannot be listed or forgotten', async () => {
    const { user } = await remembered({ roles: ['admin'] })
    const client: Json = await create(app, '/clients', {
      client_id: 'helpdesk',
      name: 'Help desk',
      type: 'confidential',
      grant_types: ['client_credentials'],
      scopes: ['users:read', 'users:update'],
    })
    const token = await app.tokenOf(client.client_id, client.client_secret)
    const path = `/users/${user.id}/remembered-browsers`
    const [row] = await rowsOf(user)
    for (const each of [path, `${path}/${row?.id}`])
      expect((await app.admin('DELETE', each, undefined, token)).status).toBe(403)
    expect(await rowsOf(user)).toHaveLength(1)
  })
})
