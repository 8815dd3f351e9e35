import { describe, expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { answerOf, openBrowser, type Page } from '#test/support/browser.ts'
import { enrolPasskey, linkWith, openEnrolment, optionsOf, signInWith } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, codeRow, signIn } from '#test/support/people.ts'
import { restarting } from '#test/support/restarting.ts'
import { startWithFactors } from './factor-world.ts'

const { app, rows, withPasskey, secondStep, send } = await startWithFactors()

describe('a passkey', () => {
  test('a lost passkey that signed in alone is replaced with a recovery code', async () => {
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

  test('serves as the second factor after a password', async () => {
    const { user, passkey } = await withPasskey()
    const { browser, page } = await secondStep(user)
    const options = optionsOf(page)
    expect(options.allowCredentials.map(({ id }: { id: string }) => id)).toEqual([passkey.id])
    const credential = passkey.get(options, { verified: false })
    const row = await codeRow(app, answerOf(await send(browser, page, { credential })).code)
    expect([row.acr, row.amr]).toEqual(['phr', ['pwd', 'hwk', 'mfa']])
  })

  test('signs in alone, without name or password', async () => {
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

  test('H-23 of a known browser is accepted while its network is blocked, as is the second factor', async () => {
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

  test('an unknown passkey, junk, a disabled user and another organization get the same answer', async () => {
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

  test('each response works once, and only in its own flow', async () => {
    const { passkey } = await withPasskey()
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl('shop'))
    const credential = passkey.get(optionsOf(page))
    const elsewhere = await browser.get(authorizeUrl('shop'))
    expect((await browser.submit(elsewhere, { credential }, '/oauth/passkey')).status).toBe(401)
    expect((await browser.submit(page, { credential }, '/oauth/passkey')).status).toBe(303)
    expect((await browser.submit(page, { credential }, '/oauth/passkey')).status).toBe(401)
  })

  test('is bound to one account: a second enrolment is refused', async () => {
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

  test('is offered only on https and on localhost', async () => {
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

test('R-24 a restart between the steps of a passkey changes nothing: enrolled once, each response works once', async () => {
  const user = await addUser(app, 'steady')
  const browser = openBrowser(restarting(app))
  const choice = await openEnrolment(browser, 'steady')
  const offer = await browser.get(linkWith(choice, 'kind=passkey'))
  const passkey = newPasskey()
  const credential = passkey.create(optionsOf(offer))
  await browser.submit(offer, { credential }, '/oauth/enrol')
  expect((await browser.submit(offer, { credential }, '/oauth/enrol')).status).toBe(303)
  expect((await rows('factors')).filter(({ user_id }) => user_id === user.id)).toHaveLength(1)
  const fresh = openBrowser(restarting(app))
  const login = await fresh.get(authorizeUrl('shop'))
  const answer = passkey.get(optionsOf(login))
  expect((await fresh.submit(login, { credential: answer }, '/oauth/passkey')).status).toBe(303)
  expect((await fresh.submit(login, { credential: answer }, '/oauth/passkey')).status).toBe(401)
})
