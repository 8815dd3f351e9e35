import { describe, expect, test } from 'bun:test'
import type { TokenType } from '#src/context.ts'
import { DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser } from '#test/support/browser.ts'
import { addClient, addUser, authorizeUrl, codeRow, logInTo, PASSWORD, signIn } from '#test/support/people.ts'

const app = await startApp()
const ada = await addUser(app, 'ada')
const bob = await addUser(app, 'bob')
await addClient(app, 'web')
await addClient(app, 'shop', { consent_required: true })

const loggedIn = async (username = 'ada') => {
  const browser = openBrowser(app)
  await logInTo(browser, 'web', username)
  return browser
}

const signed = (claims: Record<string, unknown>, typ: TokenType = 'JWT') =>
  app.context.keys.sign(claims, 'ES256', typ)

const idToken = (user: { id: string }, more: Record<string, unknown> = {}) =>
  signed({
    iss: app.context.config.url,
    sub: user.id.slice(4),
    aud: 'web',
    exp: app.clock.now() / 1000 + 3600,
    iat: app.clock.now() / 1000,
    ...more,
  })

describe('O-46 prompt=none shows nothing and sets no cookie', () => {
  const none = async (browser: ReturnType<typeof openBrowser>, client_id = 'web', more = {}) => {
    const page = await browser.get(authorizeUrl(client_id, { prompt: 'none', ...more }))
    expect(page.status).toBe(302)
    expect(browser.received).toEqual([])
    return answerOf(page).error
  }

  test('AUT-27 not signed in', async () => {
    expect(await none(openBrowser(app))).toBe('login_required')
  })

  test('a forged cookie', async () => {
    const browser = await loggedIn()
    browser.cookies.set('gatehouse_login_8080', 'A'.repeat(43))
    expect(await none(browser)).toBe('login_required')
  })

  test('signed in', async () => {
    const browser = await loggedIn()
    const { code } = answerOf(await browser.get(authorizeUrl('web', { prompt: 'none' })))
    expect((await codeRow(app, code)).user_id).toBe(ada.id)
    expect(browser.received).toEqual([])
  })

  test('AUT-26 no consent', async () => {
    expect(await none(await loggedIn(), 'shop')).toBe('consent_required')
  })

  test('max_age has passed', async () => {
    const browser = await loggedIn()
    expect(await none(browser, 'web', { max_age: '60' })).toBeUndefined()
    app.clock.advance(61 * SECOND)
    expect(await none(browser, 'web', { max_age: '60' })).toBe('login_required')
    expect(await none(browser, 'web', { max_age: '0' })).toBe('login_required')
  })

  test('AUT-21 a disabled user', async () => {
    const user = await addUser(app, 'dora')
    const browser = await loggedIn('dora')
    await app.admin('PUT', `/users/${user.id}`, { enabled: false })
    expect(await none(browser)).toBe('login_required')
    await app.admin('PUT', `/users/${user.id}`, { enabled: true })
    expect(await none(browser)).toBeUndefined()
  })

  test('a deleted user', async () => {
    const user = await addUser(app, 'dave')
    const browser = await loggedIn('dave')
    await app.admin('DELETE', `/users/${user.id}`)
    expect(await none(browser)).toBe('login_required')
  })

  test('AUT-23 a password change is due', async () => {
    const browser = await loggedIn()
    const password_policy = { max_age_days: 30 }
    await app.admin('PUT', '/organizations/org_default', {
      settings: { password_policy, session_ttl: '60d' },
    })
    const old = openBrowser(app)
    await logInTo(old, 'web', 'bob')
    app.clock.advance(30 * DAY + 1)
    expect(await none(old)).toBe('interaction_required')
    await app.admin('PUT', '/organizations/org_default', {
      settings: { password_policy: { max_age_days: null }, session_ttl: null },
    })
    expect(await none(old)).toBeUndefined()
    // The login of `browser` began with the default session_ttl of 24 hours.
    expect(await none(browser)).toBe('login_required')
  })

  test('with an id_token_hint for another user', async () => {
    const browser = await loggedIn()
    expect(await none(browser, 'web', { id_token_hint: await idToken(bob) })).toBe('login_required')
    expect(await none(browser, 'web', { id_token_hint: await idToken(ada) })).toBeUndefined()
  })
})

describe('O-48 prompt=login', () => {
  test('AUT-24 asks although a user is signed in, and the code has the new auth_time', async () => {
    const browser = await loggedIn()
    app.clock.advance(10 * MINUTE)
    const page = await browser.get(authorizeUrl('web', { prompt: 'login' }))
    expect(page.heading).toBe('Sign in')
    const { code } = answerOf(await signIn(browser, page, 'ada'))
    expect((await codeRow(app, code)).auth_time).toBe(app.clock.now())
  })

  test('the same address asks again each time', async () => {
    const browser = openBrowser(app)
    const url = authorizeUrl('web', { prompt: 'login' })
    await signIn(browser, await browser.get(url), 'ada')
    expect((await browser.get(url)).heading).toBe('Sign in')
  })

  test('a request whose code was issued cannot be reused', async () => {
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl('web', { prompt: 'login' }))
    await signIn(browser, page, 'ada')
    const again = await signIn(browser, page, 'ada')
    expect([again.status, again.heading]).toEqual([400, 'This page has expired'])
    const handle = page.forms[0]?.fields.request
    expect((await browser.get(`/oauth/login?request=${handle}`)).status).toBe(400)
  })

  test('a login in another tab does not count for this request', async () => {
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl('web', { prompt: 'login' }))
    await logInTo(browser, 'web', 'ada')
    const handle = page.forms[0]?.fields.request
    expect((await browser.get(`/oauth/login?request=${handle}`)).heading).toBe('Sign in')
  })
})

describe('O-49 max_age', () => {
  test('0 asks for a login, even right after one', async () => {
    const browser = await loggedIn()
    const page = await browser.get(authorizeUrl('web', { max_age: '0' }))
    expect(page.heading).toBe('Sign in')
    expect(answerOf(await signIn(browser, page, 'ada')).code).toBeString()
  })

  test('AUT-25 asks once the login is older', async () => {
    const browser = await loggedIn()
    const began = app.clock.now()
    app.clock.advance(MINUTE)
    const { code } = answerOf(await browser.get(authorizeUrl('web', { max_age: '60' })))
    expect((await codeRow(app, code)).auth_time).toBe(began)
    app.clock.advance(1)
    expect((await browser.get(authorizeUrl('web', { max_age: '60' }))).heading).toBe('Sign in')
  })
})

describe('O-50 id_token_hint', () => {
  test('selects the account', async () => {
    const browser = await loggedIn('bob')
    await logInTo(browser, 'web', 'ada', { prompt: 'login' })
    const { code } = answerOf(
      await browser.get(authorizeUrl('web', { id_token_hint: await idToken(bob), prompt: 'none' })),
    )
    expect((await codeRow(app, code)).user_id).toBe(bob.id)
  })

  test.each([{ prompt: 'login' }, { max_age: '0' }])(
    'names the user of a new authentication, with %j',
    async demand => {
      const browser = await loggedIn('bob')
      await logInTo(browser, 'web', 'ada', { prompt: 'login' })
      const page = await browser.get(authorizeUrl('web', { ...demand, id_token_hint: await idToken(bob) }))
      expect([page.heading, formOf(page).fields.username]).toEqual(['Sign in', 'bob'])
      const { code } = answerOf(await signIn(browser, page, 'bob'))
      expect((await codeRow(app, code)).user_id).toBe(bob.id)
    },
  )

  test('may be arbitrarily old', async () => {
    const hint = await idToken(ada, { exp: 1, iat: 0 })
    const page = await (await loggedIn()).get(authorizeUrl('web', { id_token_hint: hint, prompt: 'none' }))
    expect(answerOf(page).code).toBeString()
  })

  test('a login as another user ends in login_required', async () => {
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl('web', { id_token_hint: await idToken(ada) }))
    expect(answerOf(await signIn(browser, page, 'bob')).error).toBe('login_required')
  })

  test('is not stored', async () => {
    const hint = await idToken(ada)
    await openBrowser(app).get(authorizeUrl('web', { id_token_hint: hint }))
    await openBrowser(app).post(
      '/oauth/authorize',
      authorizeUrl('web', { id_token_hint: hint }).split('?')[1] ?? '',
    )
    const rows = await app.context.store.read(async q => [
      await q.select().from(q.tables.authorization_requests),
      await q.select().from(q.tables.stored_posts),
    ])
    expect(JSON.stringify(rows)).not.toContain(hint)
  })

  const unsigned = (claims: object) =>
    `${[{ alg: 'none', typ: 'JWT' }, claims].map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.`
  const good = { iss: 'http://localhost:8080', sub: ada.id.slice(4), aud: 'web' }

  test.each([
    ['of another issuer', signed({ ...good, iss: 'https://evil.example' })],
    ['for another client', signed({ ...good, aud: 'shop' })],
    ['an access token', signed({ ...good, scope: 'openid' }, 'at+jwt')],
    ['unsigned', unsigned(good)],
    [
      'tampered',
      Promise.resolve(signed(good)).then(token =>
        token.replace(
          /\.[^.]+\./,
          `.${Buffer.from(JSON.stringify({ ...good, sub: bob.id.slice(4) })).toString('base64url')}.`,
        ),
      ),
    ],
    ['no token', 'junk'],
    ['9 KB', 'x'.repeat(9000)],
  ])('%s is invalid_request', async (_, hint) => {
    const page = await openBrowser(app).get(authorizeUrl('web', { id_token_hint: await hint }))
    expect(answerOf(page).error).toBe('invalid_request')
  })
})

test('AUT-28 prompt=consent asks although consent was given', async () => {
  const browser = await loggedIn()
  const consent = await browser.get(authorizeUrl('shop'))
  await browser.submit(consent, { decision: 'approve' })
  expect(answerOf(await browser.get(authorizeUrl('shop'))).code).toBeString()
  expect((await browser.get(authorizeUrl('shop', { prompt: 'consent' }))).heading).toBe(
    'Allow The shop to use your account?',
  )
})

test('prompt=login consent asks for both', async () => {
  const browser = await loggedIn()
  const page = await browser.get(authorizeUrl('web', { prompt: 'login consent' }))
  expect(page.heading).toBe('Sign in')
  const consent = await signIn(browser, page, 'ada', PASSWORD)
  expect(consent.heading).toBe('Allow The web to use your account?')
  expect(consent.url).toStartWith('/oauth/consent?request=')
  expect(answerOf(await browser.submit(consent, { decision: 'approve' })).code).toBeString()
})

test('AUT-22 a login lasts as long as its organization allows', async () => {
  const browser = await loggedIn()
  app.clock.advance(DAY - 1)
  expect(answerOf(await browser.get(authorizeUrl('web'))).code).toBeString()
  app.clock.advance(1)
  expect((await browser.get(authorizeUrl('web'))).heading).toBe('Sign in')
})
