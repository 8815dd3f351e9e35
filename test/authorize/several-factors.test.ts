import { describe, expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { answerOf, formOf, openBrowser } from '#test/support/browser.ts'
import { refused } from '#test/support/callers.ts'
import {
  codeOf,
  enrolPasskey,
  enrolTotp,
  keyOf,
  linkWith,
  openEnrolment,
  signInWith,
} from '#test/support/factors.ts'
import { addUser, authorizeUrl, codeRow, logInTo, signIn } from '#test/support/people.ts'
import { startWithFactors } from './factor-world.ts'

const { app, nextCode, rows, loginsOf, withTotp, secondStep, send } = await startWithFactors()

describe('several factors', () => {
  test('are added after proof of an existing factor, named, used and removed', async () => {
    const { user, browser, key } = await withTotp()
    await browser.get('/account')
    const choice = await browser.follow(await browser.get('/account/security/add'))
    expect([choice.heading, linkWith(choice, '/account')]).toEqual([
      'Protect your account',
      '/account/security',
    ])
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

  test('an app keeps the secret that was scanned before the login became too old', async () => {
    const user = await addUser(app, 'slow')
    const browser = openBrowser(app)
    const { passkey } = await enrolPasskey(browser, await openEnrolment(browser, 'slow'))
    const choice = await browser.follow(await browser.get('/account/security/add'))
    const page = await browser.get(linkWith(choice, 'kind=totp'))
    app.clock.advance(6 * MINUTE)
    const code = codeOf(app, keyOf(page))
    const login = await browser.follow(await browser.submit(page, { code }, '/oauth/enrol'))
    expect(login.heading).toBe('Sign in')
    const again = await signInWith(browser, login, passkey)
    await app.events()
    const { key, page: done } = await enrolTotp(app, browser, again)
    expect([key, done.url]).toEqual([keyOf(page), '/account/security?notice=factor_added'])
    const mine = (await rows('factors')).filter(({ user_id }) => user_id === user.id)
    expect(mine.map(({ type }) => type)).toEqual(['passkey', 'totp'])
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.updated', 'user.login'])
  })

  test('get a name of one line with at most 64 characters; the same name changes nothing', async () => {
    const { user, browser, page } = await withTotp()
    const security = await browser.follow(await browser.submit(page, {}, '/oauth/enrol'))
    const { fields } = formOf(security, '/account/security/rename')
    const nameOf = async () => (await rows('factors')).find(({ user_id }) => user_id === user.id)?.name
    const rename = async (name: string) =>
      (await browser.post('/account/security/rename', { ...fields, name })).status
    const before = await nameOf()
    await app.events()
    for (const name of ['', '  ', 'x'.repeat(65), 'a\nb', 'a\u202eb'])
      expect([name, await rename(name)]).toEqual([name, 400])
    expect(await rename(` ${before} `)).toBe(303)
    expect([await nameOf(), await app.events()]).toEqual([before, []])
    expect(await rename('x'.repeat(64))).toBe(303)
    expect(await nameOf()).toBe('x'.repeat(64))
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.fields])).toEqual([
      ['user.updated', ['factors']],
    ])
  })

  test('of another user are left alone', async () => {
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

  test('are kept when a call that removes them has a mistyped query', async () => {
    const { user } = await withTotp()
    const mine = async () => (await rows('factors')).filter(({ user_id }) => user_id === user.id)
    const before = await mine()
    await app.events()
    const path = `/users/${user.id}/factors?factor_id=${before[0]?.id}`
    expect(refused(await app.admin('DELETE', path))).toEqual(['factor_id'])
    expect([before.length, await mine(), await app.events()]).toEqual([1, before, []])
  })

  test('an earlier login by password proves a factor before another is added', async () => {
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
