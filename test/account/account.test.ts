import { describe, expect, test } from 'bun:test'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { sweep } from '#src/operations/sweep.ts'
import { createSession } from '#src/sessions/store.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser, type Page, unescapeHtml } from '#test/support/browser.ts'
import { linkWith } from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  codeRow,
  logInTo,
  PASSWORD,
  signIn,
} from '#test/support/people.ts'
import { post, redeem, refresh, secretOf } from '#test/support/tokens.ts'

const app = await startApp()
const acme = await addOrganization(app, 'acme')
const ada = await addUser(app, 'ada')
await addUser(app, 'amy', { organization_id: acme.id })
await addClient(app, 'web')
const NEW = 'Another-horse-8'
let users = 0

const signedIn = async () => {
  const user = await addUser(app, `user${++users}`)
  const browser = openBrowser(app)
  await signIn(browser, await browser.get('/account'), user.username)
  return { user, browser, page: await browser.get('/account') }
}

/** Starts a session at the client without a code exchange. */
const startSession = async (browser: ReturnType<typeof openBrowser>) => {
  const { code = '' } = answerOf(await browser.get(authorizeUrl('web')))
  const { login_id, user_id } = await codeRow(app, code)
  const now = app.clock.now()
  const id = newId('sess', now)
  await app.context.store.write(tx =>
    createSession(tx, {
      id,
      user_id,
      login_id,
      client_id: 'web',
      organization_id: 'org_default',
      scope: 'openid',
      ip_address: '192.0.2.10',
      user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0',
      location: '',
      started_at: now,
      expires_at: now + 60 * 60_000,
      ends_by: null,
      refresh_hash: null,
    }),
  )
  return id
}
const sessionRow = async (id: string) => {
  const rows = await app.context.store.read(async q => q.select().from(q.tables.sessions))
  return rows.find(each => each.id === id)
}

describe('GET /account', () => {
  test('records a login that no client asked for, and ends it there', async () => {
    const browser = openBrowser(app)
    const page = await browser.get('/account')
    expect(page.heading).toBe('Sign in')
    await app.events()
    const account = await signIn(browser, page, 'ada')
    expect([account.status, account.url, account.heading]).toEqual([200, '/account', 'Your account'])
    expect(account.html).toContain('ada@example.com')
    expect(await app.events()).toEqual([
      {
        type: 'user.login',
        actor_id: ada.id,
        target_id: ada.id,
        target_type: 'user',
        organization_id: 'org_default',
        metadata: { client_id: '', grant_type: '', session_id: '', amr: ['pwd'] },
      },
    ])
  })

  test.each(['', 'default', 'acme'])('an expired sign-in page of %s leads to a new one', async slug => {
    const browser = openBrowser(app)
    const page = await browser.get(`/account${slug && `?organization=${slug}`}`)
    app.clock.advance(31 * MINUTE)
    const username = slug === 'acme' ? 'amy' : 'ada'
    for (const late of [
      await browser.submit(page, { username, password: PASSWORD }),
      await browser.get(`/oauth/login?request=${formOf(page).fields.request}`),
    ]) {
      expect([late.status, late.heading]).toEqual([400, 'This page has expired'])
      expect(late.html).not.toContain('Go back to the application')
      const again = await browser.get(linkWith(late, '/account'))
      expect((await signIn(browser, again, username)).heading).toBe('Your account')
      browser.cookies.delete('gatehouse_login_8080')
    }
  })

  test('opens without another login when the user is signed in at a client', async () => {
    const browser = openBrowser(app)
    await logInTo(browser, 'web', 'ada')
    await startSession(browser)
    await app.events()
    expect((await browser.get('/account')).heading).toBe('Your account')
    expect(await app.events()).toEqual([])
  })

  test('PEO-31 records a login once that would leave no trace, because its client exchanged no code', async () => {
    const browser = openBrowser(app, { ip: '203.0.113.66' })
    const { code } = await logInTo(browser, 'web', 'ada')
    expect(code).toBeString()
    await app.events()
    const pages = [await browser.get('/account'), await browser.get('/account/history')]
    expect(pages.map(({ status }) => status)).toEqual([200, 200])
    expect(pages[1]?.html).toContain('203.0.113.66')
    const metadata = { client_id: '', grant_type: '', session_id: '', amr: ['pwd'] }
    expect(await app.events()).toMatchObject([{ type: 'user.login', actor_id: ada.id, metadata }])
    app.clock.advance(60_000)
    await logInTo(browser, 'web', 'ada', { prompt: 'login' })
    expect(await app.events()).toEqual([])
    await Promise.all([browser.get('/account'), browser.get('/account/security')])
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.login'])
  })

  test('PEO-31 records a login without a trace although an earlier session of the browser is refreshed after it', async () => {
    const client = await addClient(app, 'renewed')
    const browser = openBrowser(app)
    const { code = '' } = await logInTo(browser, 'renewed', 'ada')
    const { refresh_token } = (await redeem(app, client, code)).body
    app.clock.advance(MINUTE)
    await logInTo(browser, 'renewed', 'ada', { prompt: 'login' })
    expect((await refresh(app, client, refresh_token)).status).toBe(200)
    await app.events()
    await browser.get('/account')
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.login'])
  })

  test('PEO-31 records no login again after the clean-up has removed the sessions that show it', async () => {
    await app.admin('PUT', '/organizations/org_default', { settings: { session_ttl: '30d' } })
    const client = await addClient(app, 'swept')
    const browser = openBrowser(app)
    const { code = '' } = await logInTo(browser, 'swept', 'ada')
    const { refresh_token } = (await redeem(app, client, code)).body
    await post(app, '/oauth/revoke', { token: refresh_token, ...secretOf(client) })
    app.clock.advance(2 * DAY)
    await sweep(app.context)
    await app.events()
    expect((await browser.get('/account')).heading).toBe('Your account')
    expect(await app.events()).toEqual([])
    await app.admin('PUT', '/organizations/org_default', { settings: { session_ttl: null } })
  })

  test('separates organizations', async () => {
    const browser = openBrowser(app)
    const page = await browser.get('/account?organization=acme')
    expect((await signIn(browser, page, 'ada')).status).toBe(401)
    const account = await signIn(browser, page, 'amy')
    expect(account.html).toContain('amy@example.com')
    expect((await browser.get('/account?organization=default')).heading).toBe('Sign in')
    await logInTo(browser, 'web', 'ada')
    expect((await browser.get('/account')).html).toContain('ada@example.com')
    expect((await browser.get('/account?organization=acme')).html).toContain('amy@example.com')
    expect((await browser.get('/account?organization=nowhere')).status).toBe(404)
  })

  test('stays within the organization of its URL, on every page and after every form', async () => {
    const browser = openBrowser(app)
    await signIn(browser, await browser.get('/account?organization=acme'), 'amy')
    await logInTo(browser, 'web', 'ada')
    const elsewhere = openBrowser(app)
    await signIn(elsewhere, await elsewhere.get('/account?organization=acme'), 'amy')
    const home = await browser.get('/account?organization=acme')
    const linked = (page: Page) => [...page.html.matchAll(/href="(\/account[^"]*)"/g)].map(([, url]) => url)
    const seen = new Set(linked(home))
    for (const url of seen) {
      const page = await browser.follow(await browser.get(unescapeHtml(url ?? '')))
      expect([url, page.status, page.html.includes('ada@')]).toEqual([url, 200, false])
      for (const next of linked(page)) seen.add(next)
      for (const { action } of page.forms)
        if (action.startsWith('/account')) expect(action).toEndWith('?organization=acme')
    }
    const names = [
      'applications',
      'change-password',
      'data',
      'history',
      'profile',
      'security',
      'security/add',
    ]
    expect(seen).toEqual(
      new Set(['/account?organization=acme', ...names.map(name => `/account/${name}?organization=acme`)]),
    )
    const ended = await browser.submit(home, {}, '/account/logins/others')
    expect(ended.location).toBe('/account?notice=others_ended&organization=acme')
    expect((await browser.follow(ended)).html).toContain('amy@example.com')
    const profile = await browser.get('/account/profile?organization=acme')
    app.clock.advance(10 * MINUTE)
    const confirm = await browser.follow(await browser.submit(profile, {}, '/account/profile'))
    expect(confirm.html).toContain('href="/account/profile?organization=acme"')
    const saved = await browser.follow(await browser.submit(confirm, { password: PASSWORD }))
    expect(saved.url).toBe('/account/profile?notice=saved&organization=acme')
    expect(saved.html).toContain('amy@example.com')
  })

  test('is refused until a required password change is done', async () => {
    const { user, browser } = await signedIn()
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD, temporary: true })
    const due = await signIn(browser, await browser.get('/account'), user.username)
    expect(due.heading).toBe('Choose a new password')
    expect((await browser.get('/account')).heading).toBe('Choose a new password')
    const done = await browser.follow(await browser.submit(due, { password: NEW, password_repeat: NEW }))
    expect(done.heading).toBe('Your account')
  })

  test('PAG-01 needs profile:read, and profile:update for changes', async () => {
    const role = async (name: string, permissions: string[]) => {
      await app.admin('POST', '/roles', { name, permissions })
      const user = await addUser(app, `user${++users}`, { roles: [name] })
      const browser = openBrowser(app)
      return { browser, page: await signIn(browser, await browser.get('/account'), user.username) }
    }
    const none = await role('nothing', [])
    expect([none.page.status, none.page.heading]).toEqual([403, 'This page isn’t open to you'])
    const reader = await role('reader', ['profile:read'])
    expect(reader.page.heading).toBe('Your account')
    expect(reader.page.html).not.toContain('/account/change-password')
    expect((await reader.browser.get('/account/change-password')).status).toBe(403)
    const { csrf_token = '' } = formOf(reader.page).fields
    const fields = { csrf_token, current_password: PASSWORD, password: NEW, password_repeat: NEW }
    expect((await reader.browser.post('/account/change-password', fields)).status).toBe(403)
  })

  test('O-68 follows no address of another site', async () => {
    const browser = openBrowser(app)
    const target = 'https://evil.example/'
    const query = `return_to=${target}&next=${target}&redirect_uri=${target}&post_logout_redirect_uri=${target}`
    const page = await browser.get(`/account?${query}`)
    expect(page.html).not.toContain('evil.example')
    const done = await browser.submit(page, { username: 'ada', password: PASSWORD })
    expect(done.location).toBe('/account')
    expect((await browser.get(`/account?notice=<script>&${query}`)).html).not.toContain('evil.example')
  })
})

describe('sessions', () => {
  test('are listed and signed out one by one; the login of an ended session ends too', async () => {
    const { user, browser } = await signedIn()
    const id = await startSession(browser)
    const page = await browser.get('/account')
    expect(page.html).toContain('The web')
    await app.events()
    const ended = await browser.submit(page, {}, '/account/sessions')
    expect(ended.location).toBe('/account?notice=session_ended')
    expect((await sessionRow(id))?.ended_at).toBe(app.clock.now())
    expect(await app.events()).toEqual([
      {
        type: 'session.revoked',
        actor_id: user.id,
        target_id: id,
        target_type: 'session',
        organization_id: 'org_default',
        metadata: { user_id: user.id, client_id: 'web', reason: 'user' },
      },
    ])
    expect((await browser.get('/account')).heading).toBe('Sign in')
  })

  test('of another user are left alone', async () => {
    const other = await signedIn()
    const id = await startSession(other.browser)
    const { browser } = await signedIn()
    await startSession(browser)
    const page = await browser.get('/account')
    for (const session_id of [id, 'sess_junk', ''])
      expect((await browser.submit(page, { session_id }, '/account/sessions')).status).toBe(303)
    expect((await sessionRow(id))?.ended_at).toBeNull()
  })
})

describe('sign out', () => {
  test('ends every login of this browser, and every session from them', async () => {
    const { user, browser } = await signedIn()
    const id = await startSession(browser)
    const elsewhere = openBrowser(app)
    await logInTo(elsewhere, 'web', user.username)
    await logInTo(browser, 'web', 'ada', { prompt: 'login' })
    const account = await browser.get('/account')
    await app.events()
    const page = await browser.follow(await browser.submit(account, {}, '/account/logout'))
    expect(page.heading).toBe('You’re signed out')
    expect(browser.cookies.has('gatehouse_login_8080')).toBeFalse()
    const recorded = (await app.events()).map(({ type, target_id }) => `${type} ${target_id}`)
    expect(recorded.sort()).toEqual(
      [`session.revoked ${id}`, `user.logout ${ada.id}`, `user.logout ${user.id}`].sort(),
    )
    expect((await browser.get(authorizeUrl('web'))).heading).toBe('Sign in')
    expect(answerOf(await elsewhere.get(authorizeUrl('web'))).code).toBeString()
  })
})

describe('change password', () => {
  const fields = { current_password: PASSWORD, password: NEW, password_repeat: NEW }

  test('asks for the current one, and signs out everywhere else', async () => {
    const { user, browser } = await signedIn()
    const elsewhere = openBrowser(app)
    await logInTo(elsewhere, 'web', user.username)
    const id = await startSession(elsewhere)
    const old = browser.cookies.get('gatehouse_login_8080')
    const page = await browser.get('/account/change-password')
    await app.events()
    const wrong = await browser.submit(page, { ...fields, current_password: 'wrong' })
    expect(wrong.html).toContain('not your current password')
    const done = await browser.submit(page, fields)
    expect(done.location).toBe('/account?notice=password_changed')
    expect((await app.events()).map(({ type, target_id }) => `${type} ${target_id}`)).toEqual([
      `user.login_failed ${user.id}`,
      `user.password_changed ${user.id}`,
      `session.revoked ${id}`,
    ])
    expect(browser.cookies.get('gatehouse_login_8080')).not.toBe(old)
    expect((await browser.get('/account?notice=password_changed')).html).toContain(
      'Your new password is saved',
    )
    expect((await elsewhere.get(authorizeUrl('web'))).heading).toBe('Sign in')
    const again = openBrowser(app)
    const first = await again.get(authorizeUrl('web'))
    expect((await signIn(again, first, user.username, PASSWORD)).status).toBe(401)
    expect(answerOf(await signIn(again, first, user.username, NEW)).code).toBeString()
  })

  test('is no new login: last_login and the end of the login stay', async () => {
    const { user, browser } = await signedIn()
    const times = async () => {
      const { last_login } = (await app.admin('GET', `/users/${user.id}`)).body
      const logins = await app.context.store.read(async q => q.select().from(q.tables.logins))
      const own = logins.filter(({ user_id }) => user_id === user.id)
      return [last_login, own.map(({ signed_in_at, expires_at }) => [signed_in_at, expires_at])]
    }
    const before = await times()
    app.clock.advance(MINUTE)
    const done = await browser.submit(await browser.get('/account/change-password'), fields)
    expect(done.location).toBe('/account?notice=password_changed')
    expect(await times()).toEqual(before)
  })

  test('throttles guesses at the current password', async () => {
    const { browser } = await signedIn()
    const page = await browser.get('/account/change-password')
    const guess = () => browser.submit(page, { ...fields, current_password: 'wrong' })
    for (let i = 0; i < 5; i++) expect((await guess()).status).toBe(401)
    const blocked = await guess()
    expect([blocked.status, blocked.headers.get('retry-after')]).toEqual([429, '60'])
  })
})

test.each(['in', 'out'])('an open page is refused after its browser signed %s, and links back', async way => {
  const { browser, page } = await signedIn()
  if (way === 'in') await logInTo(browser, 'web', 'ada', { prompt: 'login' })
  else await browser.submit(await browser.get('/account'), {}, '/account/logout')
  const late = await browser.submit(page, {}, '/account/logout')
  expect([late.status, late.heading]).toEqual([403, 'This page has expired'])
  expect(late.html).not.toContain('Go back to the application')
  const again = await browser.get(linkWith(late, '/account'))
  expect(again.heading).toBe(way === 'in' ? 'Your account' : 'Sign in')
})

describe('O-28 forms that were not issued to this login', () => {
  test.each([
    ['/account/logout'],
    ['/account/logins'],
    ['/account/logins/others'],
    ['/account/sessions'],
    ['/account/change-password'],
  ])('%s', async action => {
    const { browser, page } = await signedIn()
    const other = await signedIn()
    const { csrf_token = '' } = formOf(page).fields
    const { csrf_token: foreign = '' } = formOf(other.page).fields
    const login = formOf(await browser.get(authorizeUrl('web', { prompt: 'login' }))).fields.csrf_token ?? ''
    await app.events()
    for (const token of ['', 'junk', foreign, login])
      expect((await browser.post(action, { csrf_token: token })).status).toBe(403)
    expect((await browser.post(action, { csrf_token }, { origin: 'https://evil.example' })).status).toBe(403)
    await logInTo(browser, 'web', 'ada', { prompt: 'login' })
    expect((await browser.post(action, { csrf_token })).status).toBe(403)
    expect(await app.events()).toEqual([])
  })
})
