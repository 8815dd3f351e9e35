import { describe, expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { answerOf, type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { enrolTotp, openEnrolment, recoveryCodesOf } from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  logInTo,
  PASSWORD,
  signIn,
  VERIFIER,
} from '#test/support/people.ts'

const app = await startApp({}, { mail: captureMail() })
const acme = await addOrganization(app, 'acme', {
  settings: { allowed_domains: ['example.com'], self_deletion: true },
})
const shop = await addClient(app, 'shop', { consent_required: true })
const web = await addClient(app, 'web')
const acmeWeb = await addClient(app, 'acme-web', { organization_id: acme.id })
let users = 0

const signedIn = async (more: Json = {}) => {
  const user = await addUser(app, `user${++users}`, more)
  const browser = openBrowser(app)
  const start = more.organization_id ? '/account?organization=acme' : '/account'
  await signIn(browser, await browser.get(start), user.username)
  await app.events()
  return { user, browser }
}
const shown = async (browser: Browser, path: string, heading: string) => {
  const page = await browser.get(path)
  expect(page.heading).toBe(heading)
  return page
}
const types = async () => (await app.events()).map(({ type, metadata }) => [type, metadata])
const send = (client: Json, code = '') =>
  app.call('/oauth/token', {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${client.client_id}:${client.client_secret}`)}` },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: 'https://app.example/callback',
      code_verifier: VERIFIER,
    }),
  })
const redeem = async (client: Json, code = '') => {
  const answer = await send(client, code)
  expect(answer.status).toBe(200)
  return (await answer.json()) as { refresh_token: string }
}
const stored = async (user: Json) => (await app.admin('GET', `/users/${user.id}`)).body

describe('profile', () => {
  const fields = (page: Page) => formOf(page, '/account/profile').fields

  test('the user changes their name: one event lists the fields', async () => {
    const { user, browser } = await signedIn({ email_verified: true })
    const page = await shown(browser, '/account/profile', 'Profile')
    expect(fields(page)).toMatchObject({ first_name: user.first_name, email: user.email })
    const change = { first_name: ' Ada ', last_name: '' }
    const done = await browser.submit(page, change, '/account/profile')
    expect(done.location).toBe('/account/profile?notice=saved')
    expect(await stored(user)).toMatchObject({ ...change, first_name: 'Ada', email: user.email })
    expect(await app.events()).toEqual([
      {
        type: 'user.updated',
        actor_id: user.id,
        target_id: user.id,
        target_type: 'user',
        organization_id: 'org_default',
        metadata: { fields: ['first_name', 'last_name'] },
      },
    ])
  })

  test('changing the case of an address keeps it verified; an unchanged form records nothing', async () => {
    const { user, browser } = await signedIn({ email_verified: true })
    const page = await shown(browser, '/account/profile', 'Profile')
    await browser.submit(page, {}, '/account/profile')
    expect(await types()).toEqual([])
    await browser.submit(page, { email: user.email.toUpperCase() }, '/account/profile')
    expect(await stored(user)).toMatchObject({ email: user.email.toUpperCase(), email_verified: true })
    expect(await types()).toEqual([['user.updated', { fields: ['email'] }]])
  })

  test.each([
    ['no address', 'Enter an email address', {}],
    ['other@evil.com', 'Use an address of your organization', {}],
    ['x'.repeat(300), 'Enter an email address', {}],
    ['ok@example.com', 'at most 255 characters', { first_name: 'x'.repeat(256) }],
    ['fine@example.com', 'no control characters', { first_name: 'Ada\u202e' }],
  ])('%.20s is refused on the page', async (email, text, more) => {
    const { user, browser } = await signedIn({ organization_id: acme.id })
    const page = await shown(browser, '/account/profile?organization=acme', 'Profile')
    await app.events()
    const again = await browser.submit(page, { email, ...more }, '/account/profile')
    expect([again.status, again.heading]).toEqual([400, 'Profile'])
    expect(again.html).toContain(text)
    expect(fields(again).email).toBe(email)
    expect(await app.events()).toEqual([])
    expect((await stored(user)).email).toBe(user.email)
  })

  test('asks for authentication within the last five minutes', async () => {
    const { user, browser } = await signedIn()
    const page = await shown(browser, '/account/profile', 'Profile')
    app.clock.advance(5 * MINUTE + 1)
    await shown(browser, '/account/profile', 'Profile')
    const asked = await browser.follow(await browser.submit(page, { first_name: 'Late' }, '/account/profile'))
    expect(asked.heading).toBe('Confirm it’s you')
    expect((await stored(user)).first_name).not.toBe('Late')
    const back = await signIn(browser, asked, user.username)
    expect([back.url, back.heading]).toEqual(['/account/profile?notice=saved', 'Profile'])
    expect((await stored(user)).first_name).toBe('Late')
  })

  test('is refused without the permission', async () => {
    const reader = await app.admin('POST', '/roles', { name: 'reader', permissions: ['profile:read'] })
    expect(reader.status).toBe(201)
    const { browser } = await signedIn({ roles: ['reader'] })
    for (const path of ['/account/profile', '/account/security', '/account/security/add'])
      expect((await browser.get(path)).status).toBe(403)
    const page = await shown(browser, '/account/data', 'Your data')
    const { csrf_token = '' } = formOf(page).fields
    for (const path of ['/account/profile', '/account/security/codes', '/account/applications/disconnect'])
      expect((await browser.post(path, { csrf_token })).status).toBe(403)
    expect(page.html).not.toContain('/account/profile')
  })
})

describe('connected applications', () => {
  test('are listed; disconnecting one signs out of it, and it asks for consent again', async () => {
    const { user, browser } = await signedIn()
    const consent = await browser.get(authorizeUrl('shop', { scope: 'openid email' }))
    const { code } = answerOf(await browser.submit(consent, { decision: 'approve' }))
    const { refresh_token } = await redeem(shop, code)
    await redeem(web, answerOf(await browser.get(authorizeUrl('web'))).code)
    const page = await shown(browser, '/account/applications', 'Applications')
    expect(page.html).toContain('The shop')
    expect(page.html).toContain('name, username and email address')
    expect(page.html).toContain('The web')
    await app.events()
    const { csrf_token = '' } = formOf(page, '/account/applications/disconnect').fields
    const fields = { csrf_token, client_id: 'shop' }
    const done = await browser.post('/account/applications/disconnect', fields)
    expect(done.location).toBe('/account/applications?notice=disconnected')
    const [event, ...others] = await app.events()
    expect(others).toEqual([])
    expect([event?.type, event?.actor_id, event?.metadata]).toEqual([
      'session.revoked',
      user.id,
      { user_id: user.id, client_id: 'shop', reason: 'consent_withdrawn' },
    ])
    const refreshed = await app.call('/oauth/token', {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`shop:${shop.client_secret}`)}` },
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token }),
    })
    expect(refreshed.status).toBe(400)
    const again = await signIn(browser, await browser.get(authorizeUrl('shop')), user.username)
    expect(again.heading).toStartWith('Allow')
  })

  test('show a scope of a client whose name begins like the id of an API', async () => {
    await addClient(app, 'reports', { consent_required: true, scopes: ['openid', 'api_read', 'api_v1/read'] })
    const { browser } = await signedIn()
    const consent = await browser.get(authorizeUrl('reports', { scope: 'openid api_read api_v1/read' }))
    answerOf(await browser.submit(consent, { decision: 'approve' }))
    const page = await shown(browser, '/account/applications', 'Applications')
    expect(page.html).toContain('api_read')
    expect(page.html).toContain('api_v1/read')
  })

  test('disconnecting also revokes a code that is not redeemed yet, and no code of another user', async () => {
    const { browser } = await signedIn()
    const consent = await browser.get(authorizeUrl('shop'))
    const { code } = answerOf(await browser.submit(consent, { decision: 'approve' }))
    const elsewhere = answerOf(await browser.get(authorizeUrl('web'))).code
    const page = await shown(browser, '/account/applications', 'Applications')
    await app.events()
    const fields = { ...formOf(page, '/account/applications/disconnect').fields, client_id: 'shop' }
    await browser.post('/account/applications/disconnect', fields)
    const late = await send(shop, code)
    expect([late.status, await late.json()]).toMatchObject([400, { error: 'invalid_grant' }])
    expect(await app.events()).toEqual([])
    expect((await redeem(web, elsewhere)).refresh_token).toBeString()
    await app.events()
  })

  test('of another user are left alone', async () => {
    const other = await signedIn()
    const consent = await other.browser.get(authorizeUrl('shop'))
    await redeem(shop, answerOf(await other.browser.submit(consent, { decision: 'approve' })).code)
    const { browser } = await signedIn()
    const page = await shown(browser, '/account/applications', 'Applications')
    const { csrf_token = '' } = formOf(page).fields
    await browser.post('/account/applications/disconnect', { csrf_token, client_id: 'shop' })
    expect(await app.events()).toEqual([])
    expect(answerOf(await other.browser.get(authorizeUrl('shop'))).code).toBeString()
  })
})

describe('download', () => {
  test('contains all that is stored about the user, and no secret', async () => {
    const user = await addUser(app, 'ada', { attributes: { shoe: 38 } })
    const browser = openBrowser(app)
    const { key, page: codes } = await enrolTotp(app, browser, await openEnrolment(browser, 'ada'))
    const consent = await browser.get(authorizeUrl('shop'))
    await redeem(shop, answerOf(await browser.submit(consent, { decision: 'approve' })).code)
    const page = await shown(browser, '/account/data', 'Your data')
    const other = await addUser(app, 'eve')
    const { body: group } = await app.admin('POST', '/groups', { name: 'Sales' })
    for (const { id } of [user, other]) await app.admin('PUT', `/groups/${group.id}/members/${id}`)
    await app.events()
    const file = await browser.submit(page, {}, '/account/data/download')
    expect(await app.events()).toEqual([])
    expect(file.headers.get('content-disposition')).toBe('attachment; filename="ada.json"')
    expect(file.headers.get('cache-control')).toBe('no-store')
    const data = JSON.parse(file.html)
    expect(data.user).toEqual(await stored(user))
    expect(Object.keys(data)).toEqual([
      'made_at',
      'user',
      'organization',
      'terms',
      'factors',
      'external_accounts',
      'applications',
      'remembered_browsers',
      'browsers',
      'sessions',
      'events',
    ])
    expect(data.factors).toMatchObject([{ type: 'totp', name: 'Authenticator app', last_used_at: null }])
    expect(data.applications).toMatchObject([{ client_id: 'shop', scopes: ['openid'] }])
    expect(data.browsers).toMatchObject([{ ip_address: '192.0.2.10', acr: '2', amr: ['pwd', 'otp', 'mfa'] }])
    expect(data.sessions).toMatchObject([{ client_id: 'shop' }])
    expect(data.events.map(({ type }: Json) => type)).toContain('user.mfa_enabled')
    const own = data.events.filter(({ type }: Json) => type === 'user.mfa_enabled')
    expect(own).toMatchObject([{ ip_address: '192.0.2.10', user_agent: expect.any(String) }])
    // The file lists changes of a group that concern this user, and no changes that concern another user.
    const joined = data.events.filter(({ type }: Json) => type === 'group.updated')
    expect(joined).toMatchObject([{ metadata: { name: 'Sales', member_added: user.id } }])
    // An event that an administrator caused does not contain the administrator's id, address and user agent.
    const foreign = data.events.filter(({ type }: Json) => type === 'user.created')
    expect(foreign.map(Object.keys)).toEqual([
      ['id', 'type', 'target_id', 'target_type', 'metadata', 'timestamp'],
    ])
    for (const secret of [key.replaceAll(' ', ''), ...recoveryCodesOf(codes), '$argon2', other.id, PASSWORD])
      expect(file.html).not.toContain(secret)
  })

  test('is charged: a network and a browser have 50 downloads each at once', async () => {
    const small = await startApp()
    const browser = openBrowser(small)
    const { username } = await addUser(small, 'ada')
    await browser.follow(await signIn(browser, await browser.get('/account'), username))
    const page = await browser.get('/account/data')
    const statuses: number[] = []
    for (let i = 0; i < 101; i++)
      statuses.push((await browser.submit(page, {}, '/account/data/download')).status)
    expect([statuses[0], statuses.at(-1)]).toEqual([200, 429])
  })
})

describe('deletion', () => {
  const start = async (more: Json = {}) => {
    const made = await signedIn({ organization_id: acme.id, ...more })
    return { ...made, page: await shown(made.browser, '/account/data?organization=acme', 'Your data') }
  }

  test('is offered only where the organization allows it', async () => {
    const { user, browser } = await signedIn()
    const page = await shown(browser, '/account/data', 'Your data')
    expect(page.html).not.toContain('/account/data/delete')
    const { csrf_token = '' } = formOf(page).fields
    const refused = await browser.post('/account/data/delete', { csrf_token, username: user.username })
    expect(refused.status).toBe(403)
    expect(await stored(user)).toMatchObject({ id: user.id })
  })

  test('requires the user name, and cannot be undone', async () => {
    const { user, browser, page } = await start()
    await redeem(acmeWeb, (await logInTo(browser, 'acme-web', user.username, { prompt: 'login' })).code)
    await app.events()
    const { csrf_token = '' } = formOf(await browser.get('/account/data?organization=acme')).fields
    const fields = { csrf_token, username: 'somebody' }
    const wrong = await browser.post('/account/data/delete', fields)
    expect([wrong.status, wrong.heading]).toEqual([400, 'Your data'])
    expect(await app.events()).toEqual([])
    const done = await browser.post('/account/data/delete', {
      ...fields,
      username: user.username.toUpperCase(),
    })
    expect((await browser.follow(done)).heading).toBe('Your account is deleted')
    expect(browser.cookies.has('gatehouse_login_8080')).toBe(false)
    expect(await app.events()).toEqual([
      {
        type: 'user.deleted',
        actor_id: user.id,
        target_id: user.id,
        target_type: 'user',
        organization_id: acme.id,
        metadata: {},
      },
    ])
    const { data: events } = (await app.admin('GET', `/events?target_id=${user.id}`)).body
    expect(events).toHaveLength(1)
    expect(events[0]).toMatchObject({ actor_id: user.id, actor_email: null, ip_address: '', user_agent: '' })
    expect((await app.admin('GET', `/users/${user.id}`)).status).toBe(404)
    expect((await browser.submit(page, { username: user.username }, '/account/data/delete')).status).toBe(403)
  })

  test('keeps another user of the same browser signed in', async () => {
    const { user: other, browser } = await signedIn()
    const user = await addUser(app, `user${++users}`, { organization_id: acme.id })
    await signIn(browser, await browser.get('/account?organization=acme'), user.username)
    const page = await shown(browser, '/account/data?organization=acme', 'Your data')
    const cookie = browser.cookies.get('gatehouse_login_8080')
    await app.events()
    const done = await browser.submit(page, { username: user.username }, '/account/data/delete')
    expect([done.status, done.location]).toEqual([303, '/account/deleted?organization=acme'])
    expect(await types()).toEqual([['user.deleted', {}]])
    expect((await app.admin('GET', `/users/${user.id}`)).status).toBe(404)
    expect(browser.cookies.get('gatehouse_login_8080')).toBe(cookie)
    expect((await browser.get('/account')).html).toContain(other.username)
  })

  test('is refused to administrators', async () => {
    const { user, browser, page } = await start({ roles: ['admin'] })
    expect(page.html).toContain('another administrator')
    const { csrf_token = '' } = formOf(page).fields
    expect((await browser.post('/account/data/delete', { csrf_token, username: user.username })).status).toBe(
      403,
    )
  })
})

test('O-28 forms that were not issued to this login', async () => {
  const { browser } = await signedIn()
  const other = await signedIn()
  const { csrf_token = '' } = formOf(await other.browser.get('/account/data')).fields
  for (const path of ['profile', 'applications/disconnect', 'data/download', 'data/delete'])
    for (const [token, origin] of [
      [csrf_token, app.context.config.url],
      ['', app.context.config.url],
    ] as const)
      expect((await browser.post(`/account/${path}`, { csrf_token: token }, { origin })).status).toBe(403)
  const own = formOf(await browser.get('/account/data')).fields.csrf_token ?? ''
  expect(
    (await browser.post('/account/data/download', { csrf_token: own }, { origin: 'https://evil.example' }))
      .status,
  ).toBe(403)
  expect(await app.events()).toEqual([])
})
