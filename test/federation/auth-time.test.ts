import { beforeEach, describe, expect, test } from 'bun:test'
import { HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { BASE, type Json, startApp } from '#test/support/app.ts'
import { answerOf, type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { codeOf, enrolTotp } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, codeRow, signIn } from '#test/support/people.ts'
import { claimsOf, redeem } from '#test/support/tokens.ts'
import { addSaml, arrive, certifiedProvider, setOut } from './saml/world.ts'
import { addProvider, atUpstream, goThrough, ISSUER, pathOf, startFederated } from './upstream.ts'

const { app, upstream, honest } = await startFederated()
const client = await addClient(app, 'app')
await addProvider(app, 'upstream')

let made = 0
const fresh = (): Browser => openBrowser(app, { ip: `198.51.100.${made++ & 255}` })
const somebody = () => ({ sub: `person-${++made}`, email: `person-${made}@example.com` })
const entry = (more = '', client_id = 'app', alias = 'upstream') =>
  authorizeUrl(client_id).replace('/oauth/authorize', `/oauth/social/${alias}`) + more

/**
 * Makes the provider send an `auth_time` that lies this many seconds in the past. If `seconds` is undefined,
 * the provider sends no `auth_time`.
 */
const provenAgo = (seconds: number | undefined) => {
  upstream.twist = ({ claims }) => {
    if (seconds === undefined) delete claims.auth_time
    else claims.auth_time = Number(claims.iat) - seconds
  }
}
const now = () => app.clock.now()
const codeOfPage = (page: Page) => answerOf(page).code ?? ''
const loginOf = async (page: Page) => {
  const { login_id } = await codeRow(app, codeOfPage(page))
  const rows = await app.context.store.read(async q => q.select().from(q.tables.logins))
  const login = rows.find(({ id }) => id === login_id)
  if (!login) throw new Error('no login')
  return login
}
const prove = (browser: Browser) => browser.get('/account/security/add')
const facts = async () => (await app.events()).map(({ type, metadata }) => [type, metadata])

beforeEach(async () => {
  honest()
  await app.events()
})

describe('H-30 single sign-on at a provider', () => {
  test('H-30 an auth_time eight hours ago is passed to clients and does not count as fresh', async () => {
    const browser = fresh()
    const who = somebody()
    provenAgo(8 * 3600)
    const page = await goThrough(browser, upstream, entry(), who)
    const then = now() - 8 * HOUR
    expect(await loginOf(page)).toMatchObject({ auth_time: then, signed_in_at: now() })
    const { body } = await redeem(app, client, codeOfPage(page))
    expect(claimsOf(body.id_token).auth_time).toBe(then / SECOND)
    const { user_id } = await loginOf(page)
    expect((await app.admin('GET', `/users/${user_id}`)).body.last_login).toBe(new Date(now()).toISOString())

    const asked = await prove(browser)
    expect([asked.status, asked.heading]).toEqual([200, 'Confirm it’s you'])
    // The first answer is refused, because its auth_time lies eight hours in the past. The second answer is
    // accepted, because the provider has asked the user to sign in.
    const again = /request=[\w-]+/.exec(asked.html)?.[0]
    const away = await browser.get(`/oauth/social/upstream?${again}`)
    expect(new URL(away.location ?? '').searchParams.get('prompt')).toBe('login')
    const back = await browser.get(pathOf(await atUpstream(upstream, away.location ?? '', who)))
    expect(back.status).toBe(400)
    honest()
    const end = await goThrough(browser, upstream, `/oauth/social/upstream?${again}`, who)
    expect([end.status, end.heading]).toEqual([200, 'Protect your account'])
    expect((await prove(browser)).location).toStartWith('/oauth/enrol?request=')
    expect((await facts()).slice(-2)).toEqual([
      ['user.login_failed', expect.objectContaining({ failure_reason: 'old_authentication' })],
      ['user.login', { client_id: '', grant_type: '', session_id: '', amr: ['fed'] }],
    ])
  })

  test('H-30 a login without auth_time satisfies no max_age unless reauthentication was requested', async () => {
    const browser = fresh()
    const who = somebody()
    provenAgo(undefined)
    const page = await goThrough(browser, upstream, entry(), who)
    expect(await loginOf(page)).toMatchObject({ auth_time: 0, signed_in_at: now() })
    const { body } = await redeem(app, client, codeOfPage(page))
    expect(claimsOf(body.id_token).auth_time).toBe(0)
    expect((await prove(browser)).heading).toBe('Confirm it’s you')
    const limited = await browser.get(authorizeUrl('app', { max_age: '86400' }))
    expect(limited.heading).toBe('Sign in')
    const request = limited.forms[0]?.fields.request
    const end = await goThrough(browser, upstream, `/oauth/social/upstream?request=${request}`, who)
    expect(await loginOf(end)).toMatchObject({ auth_time: now() })
    expect((await prove(browser)).location).toStartWith('/oauth/enrol?request=')
  })

  test('H-30 an auth_time in the future is lowered to now', async () => {
    provenAgo(-3600)
    expect(await loginOf(await goThrough(fresh(), upstream, entry(), somebody()))).toMatchObject({
      auth_time: now(),
    })
    provenAgo(0.0015)
    const { auth_time } = await loginOf(await goThrough(fresh(), upstream, entry(), somebody()))
    expect(auth_time).toBe(now() - 2)
  })

  test('H-30 the second factor does not change auth_time', async () => {
    const browser = fresh()
    const who = somebody()
    await goThrough(browser, upstream, entry('&prompt=login'), who)
    const { key } = await enrolTotp(
      app,
      browser,
      await browser.follow(await browser.get('/account/security/add')),
    )
    app.clock.advance(MINUTE)
    provenAgo(3600)
    const other = fresh()
    const asked = await goThrough(other, upstream, entry(), who)
    const page = await other.follow(await other.submit(asked, { code: codeOf(app, key) }))
    expect(await loginOf(page)).toMatchObject({ auth_time: now() - HOUR, signed_in_at: now(), acr: '2' })
    expect((await prove(other)).heading).toBe('Confirm it’s you')
  })

  test('H-30 replacing a temporary password requires a fresh login: the provider is asked for one', async () => {
    const browser = fresh()
    const who = somebody()
    const { user_id } = await loginOf(await goThrough(browser, upstream, entry(), who))
    await app.admin('POST', `/users/${user_id}/reset-password`, {
      password: 'Temporary-horse-7',
      temporary: true,
    })
    provenAgo(8 * 3600)
    const visitor = fresh()
    const page = await goThrough(visitor, upstream, entry(), who)
    expect(page.heading).toBe('Sign in')
    const request = page.forms[0]?.fields.request
    const away = await visitor.get(`/oauth/social/upstream?request=${request}`)
    expect(new URL(away.location ?? '').searchParams.get('prompt')).toBe('login')
    honest()
    const end = await visitor.follow(
      await visitor.get(pathOf(await atUpstream(upstream, away.location ?? '', who))),
    )
    expect(end.heading).toBe('Choose a new password')
  })

  test('H-30 the account pages show the last sign-in, however old its auth_time', async () => {
    const browser = fresh()
    const local = await addUser(app, 'local')
    await signIn(browser, await browser.get(authorizeUrl('app')), local.username)
    app.clock.advance(MINUTE)
    provenAgo(undefined)
    const who = somebody()
    await goThrough(browser, upstream, entry(), who)
    expect((await browser.get('/account')).html).toContain(who.email)
  })

  test('H-30 the local password that links an account sets auth_time to now', async () => {
    const user = await addUser(app, 'both')
    provenAgo(8 * 3600)
    const browser = fresh()
    const page = await goThrough(browser, upstream, entry(), { ...somebody(), email: user.email })
    const end = await browser.follow(await browser.submit(page, { password: 'Correct-horse-7' }))
    expect(await loginOf(end)).toMatchObject({ auth_time: now(), amr: ['pwd', 'fed'] })
  })

  test('H-30 completing the profile keeps the provider’s auth_time', async () => {
    provenAgo(3600)
    const browser = fresh()
    const page = await goThrough(browser, upstream, entry(), { sub: `nameless-${++made}`, email: '' })
    const then = now() - HOUR
    app.clock.advance(10 * MINUTE)
    const end = await browser.follow(
      await browser.submit(page, { email: `nameless-${made}@example.com`, first_name: 'N', last_name: 'L' }),
    )
    expect(await loginOf(end)).toMatchObject({ auth_time: then, signed_in_at: now() })
  })
})

test('H-30 SAML: auth_time is AuthnInstant, even when an unsolicited response is allowed', async () => {
  const idp = await certifiedProvider()
  await addSaml(app, idp, 'idp', { allow_idp_initiated: true })
  const authn_instant = new Date(now() - 8 * HOUR).toISOString()
  const trip = await setOut(app, 'idp', authorizeUrl('app').replace('/oauth/authorize', ''))
  const page = await arrive(app, idp, trip, { authn_instant })
  expect(await loginOf(page)).toMatchObject({ auth_time: now() - 8 * HOUR })
  expect((await prove(trip.browser)).heading).toBe('Confirm it’s you')
})

describe('H-30 plain OAuth 2.0', () => {
  const answers: Record<string, () => Response> = {
    'https://github.com/login/oauth/access_token': () =>
      Response.json({ access_token: 'gho_1', token_type: 'bearer' }),
    'https://api.github.com/user': () => Response.json({ id: 1, login: 'octocat', name: 'Mona Octocat' }),
    'https://api.github.com/user/emails': () =>
      Response.json([{ email: 'mona@github.example', primary: true, verified: true }]),
  }

  test('H-30 has no auth_time: when a fresh login is due, the provider is asked to show a page', async () => {
    const other = await startApp(
      {},
      { fetch: async url => answers[String(url)]?.() ?? new Response('', { status: 404 }) },
    )
    const add = (more: Json) =>
      other.admin('POST', '/identity-providers', {
        type: 'oauth2',
        client_id: 'there',
        client_secret: 'secret',
        ...more,
      })
    await add({ preset: 'github', alias: 'github', name: 'GitHub' })
    await add({ preset: 'discord', alias: 'discord', name: 'Discord' })
    const own = `${ISSUER}/`
    await add({
      alias: 'plain',
      name: 'Plain',
      authorization_endpoint: `${own}authorize`,
      token_endpoint: `${own}token`,
      userinfo_endpoint: `${own}userinfo`,
      scopes: ['user'],
      attribute_mapping: { subject: 'id' },
    })
    await addClient(other, 'app')
    const browser = openBrowser(other)
    const promptOf = async (alias: string, more: string) =>
      new URL((await browser.get(entry(more, 'app', alias))).location ?? BASE).searchParams.get('prompt')
    expect([
      await promptOf('github', ''),
      await promptOf('github', '&prompt=login'),
      await promptOf('discord', '&max_age=60'),
      await promptOf('plain', '&prompt=login'),
    ]).toEqual([null, 'select_account', 'consent', 'login'])

    const away = new URL((await browser.get('/oauth/social/github')).location ?? '')
    const state = away.searchParams.get('state')
    await browser.follow(await browser.get(`/oauth/social/github/callback?code=c&state=${state}`))
    const [login] = await other.context.store.read(async q => q.select().from(q.tables.logins))
    expect(login).toMatchObject({ auth_time: 0, signed_in_at: other.clock.now() })
    expect((await browser.get('/account/security/add')).heading).toBe('Confirm it’s you')
  })
})

test('H-30 Google knows no prompt=login: its chooser of accounts is demanded in place of a new authentication', async () => {
  const issuer = 'https://accounts.google.com'
  upstream.intercept = ({ url }) =>
    url.startsWith(issuer)
      ? Response.json({ issuer, authorization_endpoint: `${issuer}/o/oauth2/v2/auth` })
      : undefined
  await addProvider(app, 'google', { preset: 'google', issuer: undefined })
  const asked = async (more: string) => {
    const { location } = await fresh().get(entry(more, 'app', 'google'))
    const { host, searchParams } = new URL(location ?? BASE)
    return [host, searchParams.get('prompt'), searchParams.get('max_age')]
  }
  const google = 'accounts.google.com'
  expect(await asked('')).toEqual([google, null, null])
  expect(await asked('&prompt=select_account')).toEqual([google, 'select_account', null])
  for (const more of ['&prompt=login', '&max_age=3600'])
    expect(await asked(more)).toEqual([google, 'select_account', '0'])
})

test('H-30 a new user without auth_time can enrol the factor that the organization requires', async () => {
  const { id } = await addOrganization(app, 'guarded', { settings: { mfa_required: true } })
  await addClient(app, 'guarded', { organization_id: id })
  await addProvider(app, 'silent', { organization_id: id, client_id: 'silent' })
  provenAgo(undefined)
  const browser = fresh()
  const page = await goThrough(browser, upstream, entry('', 'guarded', 'silent'), somebody())
  expect(page.heading).toBe('Protect your account')
  const { page: codes } = await enrolTotp(app, browser, page)
  expect(codes.status).toBe(200)
})
