import { describe, expect, test } from 'bun:test'
import { HOUR } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser, type Page } from '#test/support/browser.ts'
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
import { restarting } from '#test/support/restarting.ts'

const app = await startApp()
const acme = await addOrganization(app, 'acme')
const ada = await addUser(app, 'ada')
const dora = await addUser(app, 'dora')
await app.admin('PUT', `/users/${dora.id}`, { enabled: false })
await addUser(app, 'foreign', { organization_id: acme.id })
await addClient(app, 'web')

const logins = () => app.context.store.read(async q => q.select().from(q.tables.logins))

const start = async () => {
  const browser = openBrowser(app)
  return { browser, page: await browser.get(authorizeUrl('web')) }
}
const credentials = { username: 'ada', password: PASSWORD }

test('the login page names the application, and posts the expected fields', async () => {
  const { page } = await start()
  expect(page.status).toBe(200)
  expect(page.html).toContain('The web')
  const { action, fields } = formOf(page)
  expect(action).toBe('/oauth/login')
  expect(Object.keys(fields).sort()).toEqual(['csrf_token', 'password', 'request', 'username'])
})

test('AUT-15 a login stores user, browser and time; the code waits for the client', async () => {
  const { browser, page } = await start()
  await app.events()
  const before = new Set((await logins()).map(({ id }) => id))
  const answer = answerOf(await browser.submit(page, credentials))
  const login = (await logins()).find(({ id }) => !before.has(id))
  expect(login).toMatchObject({
    user_id: ada.id,
    organization_id: 'org_default',
    auth_time: app.clock.now(),
    acr: '1',
    amr: ['pwd'],
    ip_address: '192.0.2.10',
    expires_at: app.clock.now() + 24 * HOUR,
  })
  expect(await codeRow(app, answer.code)).toMatchObject({
    client_id: 'web',
    user_id: ada.id,
    login_id: login?.id,
    auth_time: app.clock.now(),
  })
  const { body } = await app.admin('GET', `/users/${ada.id}`)
  expect(body.last_login).toBe(new Date(app.clock.now()).toISOString())
  // The event of the login is recorded later, when the code is exchanged.
  expect(await app.events()).toEqual([])
})

test('AUT-18 the three fields of the specification suffice', async () => {
  const { browser, page } = await start()
  const { csrf_token = '' } = formOf(page).fields
  expect(answerOf(await browser.post('/oauth/login', { csrf_token, ...credentials })).code).toBeString()
})

test('user name and address are matched without regard to case', async () => {
  for (const username of ['ADA', 'ada@example.com', 'Ada@EXAMPLE.com'])
    expect((await logInTo(openBrowser(app), 'web', username)).code).toBeString()
})

test('an empty form asks for the missing fields, and is not an attempt', async () => {
  const { browser, page } = await start()
  await app.events()
  for (const fields of [
    { username: '', password: '' },
    { username: 'ada', password: '' },
  ]) {
    const again = await browser.submit(page, fields)
    expect([again.status, formOf(again).fields.username]).toEqual([400, fields.username])
  }
  expect(await app.events()).toEqual([])
})

test('AUT-17 ten requests of one browser can be in flight, and all finish', async () => {
  const browser = openBrowser(app)
  const pages: Page[] = []
  for (let i = 0; i < 12; i++)
    pages.push(await browser.get(authorizeUrl('web', { state: `s${i}`, prompt: 'login' })))
  expect(browser.cookies.size).toBe(1)
  for (const [i, page] of pages.entries())
    expect(answerOf(await browser.submit(page, credentials)).state).toBe(`s${i}`)
})

test('O-27 pages with a form cannot be framed, run no foreign script, and send no referrer', async () => {
  await addClient(app, 'framed', { consent_required: true })
  const browser = openBrowser(app)
  const login = await browser.get(authorizeUrl('framed'))
  const consent = await signIn(browser, login, 'ada')
  expect(consent.heading).toStartWith('Allow')
  for (const { headers, html } of [login, consent]) {
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('same-origin')
    const csp = headers.get('content-security-policy') ?? ''
    expect(csp).toContain("frame-ancestors 'none'")
    expect(csp).not.toContain('unsafe')
    expect(headers.get('access-control-allow-origin')).toBeNull()
    expect([...html.matchAll(/(?:src|href)="([^"]*)"/g)].filter(([, url]) => !url?.startsWith('/'))).toEqual(
      [],
    )
  }
})

test('R-24 a restart between any two steps changes nothing', async () => {
  await addClient(app, 'patient', { consent_required: true })
  const user = await addUser(app, 'patty')
  await app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD, temporary: true })
  const browser = openBrowser(restarting(app))
  const login = await browser.get(authorizeUrl('patient'))
  const change = await signIn(browser, login, 'patty')
  expect(change.heading).toBe('Choose a new password')
  const password = 'Another-horse-8'
  const chosen = await browser.submit(change, { password, password_repeat: password })
  const consent = await browser.follow(chosen)
  expect(answerOf(await browser.submit(consent, { decision: 'approve' })).code).toBeString()
})

test('no login begins when the request has ended in the meantime', async () => {
  const { browser, page } = await start()
  const before = await logins()
  await app.events()
  const { store } = app.context
  const { write } = store
  store.write = async body => {
    await write(tx => tx.delete(tx.tables.authorization_requests))
    return write(body)
  }
  const late = await browser.submit(page, credentials)
  store.write = write
  expect([late.status, browser.received]).toEqual([400, []])
  expect(await logins()).toEqual(before)
  expect(await app.events()).toEqual([])
})

test('a form whose field names another request than its token is refused', async () => {
  const { browser, page } = await start()
  const { request = '' } = formOf(await browser.get(authorizeUrl('web'))).fields
  expect((await browser.submit(page, { ...credentials, request })).status).toBe(403)
  expect(answerOf(await browser.submit(page, credentials)).code).toBeString()
})

test('O-33 the password form is answered with a redirect to a GET', async () => {
  const { browser, page } = await start()
  expect((await browser.submit(page, credentials)).status).toBe(302)
  await addClient(app, 'asking', { consent_required: true })
  const other = openBrowser(app)
  const asked = await other.submit(await other.get(authorizeUrl('asking')), credentials)
  expect(asked.status).toBe(303)
})

describe('O-34 answers do not reveal which users exist', () => {
  const attempt = async (username: string, password: string) => {
    const { browser, page } = await start()
    const answer = await browser.submit(page, { username, password })
    const { request = '', csrf_token = '' } = formOf(page).fields
    return {
      status: answer.status,
      cookies: browser.received.length,
      headers: [...answer.headers].filter(([name]) => name !== 'x-request-id'),
      html: answer.html
        .replaceAll(csrf_token, 'CSRF')
        .replaceAll(request, 'HANDLE')
        .replace(/challenge&quot;:&quot;[\w-]+/, 'CHALLENGE')
        .replaceAll(answer.headers.get('x-request-id') ?? 'none', 'ID')
        .replaceAll(username, 'NAME'),
    }
  }

  test('an unknown user, a wrong password, a disabled user and a user of another organization get the same answer', async () => {
    const wrong = await attempt('ada', 'Wrong-horse-7')
    expect(wrong.status).toBe(401)
    expect(wrong.html).toContain('The username, email or password is wrong.')
    expect(await attempt('nobody', PASSWORD)).toEqual(wrong)
    expect(await attempt('dora', PASSWORD)).toEqual(wrong)
    expect(await attempt('dora', 'Wrong-horse-7')).toEqual(wrong)
    expect(await attempt('foreign', PASSWORD)).toEqual(wrong)
  })

  test('EVT-13 only the audit log tells them apart', async () => {
    await app.events()
    const { browser, page } = await start()
    for (const [username, password] of [
      ['ada', 'Wrong-horse-8'],
      ['nobody', PASSWORD],
      ['DORA', PASSWORD],
      ['foreign', PASSWORD],
    ] as const)
      await browser.submit(page, { username, password })
    const failure = (username_attempted: string, failure_reason: string, target_id: string) => ({
      type: 'user.login_failed',
      actor_id: null,
      target_id,
      target_type: 'user',
      organization_id: 'org_default',
      metadata: { username_attempted, failure_reason, attempt_count: 2 },
    })
    const recorded = await app.events()
    expect(recorded.map(event => ({ ...event, metadata: { ...event.metadata, attempt_count: 2 } }))).toEqual([
      failure('ada', 'wrong_password', ada.id),
      failure('nobody', 'unknown_user', ''),
      failure('DORA', 'user_disabled', dora.id),
      failure('foreign', 'unknown_user', ''),
    ])
  })
})

describe('O-58 hostile text in the form', () => {
  test.each([
    ['a NUL', 'ada%00', 400],
    ['overlong UTF-8', '%C0%AFada', 400],
    ['a lone surrogate', '%ED%A0%80', 400],
    ['CRLF', 'ada%0D%0ASet-Cookie:%20a=b', 401],
    ['10 KB', 'x'.repeat(10_000), 401],
    ['a script', encodeURIComponent('"><script>alert(1)</script>'), 401],
  ])('%s', async (_, username, status) => {
    const { browser, page } = await start()
    const { csrf_token } = formOf(page).fields
    const answer = await browser.post(
      '/oauth/login',
      `csrf_token=${csrf_token}&username=${username}&password=x`,
    )
    expect(answer.status).toBe(status)
    expect(answer.html).not.toContain('<script>alert')
    expect(browser.received).toEqual([])
  })

  test('an overlong name is cut in the log, between characters', async () => {
    await app.events()
    const { browser, page } = await start()
    await browser.submit(page, { username: `${'x'.repeat(319)}🦊${'x'.repeat(5000)}`, password: 'x' })
    const [event] = await app.events()
    const attempted = String(event?.metadata.username_attempted)
    expect(attempted.length).toBeLessThanOrEqual(320)
    expect(attempted.isWellFormed()).toBeTrue()
  })

  test('a repeated field', async () => {
    const { browser, page } = await start()
    const form = new URLSearchParams({ ...formOf(page).fields, ...credentials })
    expect((await browser.post('/oauth/login', `${form}&username=bob`)).status).toBe(400)
  })

  test('O-57 a password of a million characters', async () => {
    const { browser, page } = await start()
    expect((await browser.submit(page, { username: 'ada', password: 'x'.repeat(1_000_000) })).status).toBe(
      413,
    )
    expect((await browser.submit(page, { username: 'ada', password: 'x'.repeat(2000) })).status).toBe(401)
  })
})

test('O-43 no answer and no event contains a password', async () => {
  await app.events()
  const { browser, page } = await start()
  const password = 'A-Secret-Nobody-Sees-1'
  const answer = await browser.submit(page, { username: 'ada', password })
  expect(answer.html).not.toContain(password)
  expect(JSON.stringify(await app.events())).not.toContain(password)
})
