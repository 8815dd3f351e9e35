/** Tests that a browser has one session of the console, even if the console is loaded several times. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { sweep } from '#src/operations/sweep.ts'
import { BASE, type Json, startApp, type TestApp } from '#test/support/app.ts'
import { answerOf, type Browser, openBrowser } from '#test/support/browser.ts'
import { addOrganization, addUser, authorizeUrl, PASSWORD, signIn, VERIFIER } from '#test/support/people.ts'
import { bearer, claimsOf, post } from '#test/support/tokens.ts'

const CONSOLE = 'gatehouse-console'
const redirect_uri = `${BASE}/console/callback`

let app: TestApp
let ada: Json
let browser: Browser
beforeEach(async () => {
  app = await startApp()
  ada = await addUser(app, 'ada', { roles: ['admin'] })
  browser = anotherBrowser()
  await load()
})

const anotherBrowser = () => openBrowser(app, { headers: { 'sec-fetch-mode': 'navigate' } })

const redeem = async (code: string, more: Record<string, string> = {}) =>
  post(app, '/oauth/token', {
    grant_type: 'authorization_code',
    client_id: CONSOLE,
    redirect_uri,
    code,
    code_verifier: VERIFIER,
    ...more,
  })

/**
 * Loads the console as a browser does, and signs in if the login page appears. Returns the code and the
 * answer of the token endpoint.
 */
const load = async (more: Record<string, string> = {}) => {
  const request = authorizeUrl(CONSOLE, { redirect_uri, scope: 'openid admin', ...more })
  const first = await browser.get(request)
  const page = first.location ? first : await signIn(browser, first, ada.username, PASSWORD)
  const { code = '' } = answerOf(page)
  return { code, ...(await redeem(code)) }
}

const eventTypes = async () => (await app.events()).map(({ type }) => type)
const sessions = async () => (await app.admin('GET', `/sessions?client_id=${CONSOLE}`)).body.data as Json[]
const counted = async (): Promise<Json> => {
  const { logins, tokens } = (await app.admin('GET', '/statistics')).body.data.at(-1)
  return { logins, tokens }
}
const works = async (token: string) =>
  (await app.call('/api/v1/admin/users', { headers: bearer(token) })).status

describe('CON-30 a page of the console that is loaded again', () => {
  test('continues the session of this browser: no login, no session, one token', async () => {
    const [session] = await sessions()
    const before = await counted()
    await app.events()
    app.clock.advance(10 * MINUTE)
    const { status, body } = await load()
    expect(status).toBe(200)
    expect(`sess_${claimsOf(body.access_token).sid}`).toBe(session.id)
    expect(await works(body.access_token)).toBe(200)
    expect((await app.events()).filter(({ actor_id }) => actor_id === ada.id)).toMatchObject([
      { type: 'token.issued', target_id: session.id, metadata: { client_id: CONSOLE } },
    ])
    expect(await counted()).toEqual({ ...before, tokens: before.tokens + 1 })
    const [kept, ...others] = await sessions()
    expect(others).toEqual([])
    expect(Date.parse(kept.last_active_at) - Date.parse(session.last_active_at)).toBe(10 * MINUTE)
    expect(Date.parse(kept.expires_at) - Date.parse(session.expires_at)).toBe(10 * MINUTE)
  })

  test('takes each code once', async () => {
    const first = await load()
    expect((await redeem(first.code)).status).toBe(400)
    const second = await load()
    expect(second.status).toBe(200)
    expect((await redeem(second.code, { code_verifier: 'z'.repeat(43) })).status).toBe(400)
  })

  test('after a new proof it is a login, of the same session', async () => {
    const [session] = await sessions()
    await app.events()
    app.clock.advance(MINUTE)
    await load({ prompt: 'login' })
    expect((await app.events()).filter(({ type }) => /^(?:user|session|token)\./.test(type))).toMatchObject([
      { type: 'user.login', metadata: { session_id: session.id } },
      { type: 'token.issued', target_id: session.id },
    ])
    await load()
    expect(await eventTypes()).toEqual(['token.issued'])
    expect(await sessions()).toHaveLength(1)
  })

  test('all of its tokens end with the session, and the next login begins another', async () => {
    const tokens = [(await load()).body.access_token, (await load()).body.access_token]
    const [session] = await sessions()
    await app.admin('DELETE', `/sessions/${session.id}`)
    expect(await Promise.all(tokens.map(works))).toEqual([401, 401])
    await app.events()
    await load()
    expect(await eventTypes()).toEqual(['user.login', 'session.created', 'token.issued'])
    expect((await sessions()).map(({ id }) => id)).not.toEqual([session.id])
  })

  test('O-13 the code that began the session ends it when it is used again', async () => {
    browser = anotherBrowser()
    const { code, body } = await load()
    await app.events()
    expect((await redeem(code)).status).toBe(400)
    expect(await eventTypes()).toEqual(['session.revoked'])
    expect(await works(body.access_token)).toBe(401)
    expect(await sessions()).toHaveLength(1)
  })

  test('ends in time when it began while the clock was ahead', async () => {
    const stored = () => app.context.store.read(q => q.select().from(q.tables.sessions))
    const [before] = await stored()
    app.clock.advance(-MINUTE)
    await load()
    const [session, ...others] = await stored()
    const end = Number(before?.expires_at) - MINUTE
    expect([session?.id, session?.expires_at, others]).toEqual([before?.id, end, []])
    app.clock.advance(end - app.clock.now())
    await app.events()
    await sweep(app.context)
    expect(await app.events()).toMatchObject([{ type: 'session.expired', target_id: session?.id }])
  })

  test('another browser has a session of its own', async () => {
    browser = anotherBrowser()
    await load()
    expect(await sessions()).toHaveLength(2)
  })
})

describe('CON-31 a new tab of the console, in a browser of a tenant’s user', () => {
  const signInBob = async (roles: string[]) => {
    const { id } = await addOrganization(app, 'acme')
    const bob = await addUser(app, 'bob', { organization_id: id, roles })
    browser = anotherBrowser()
    const request = authorizeUrl(CONSOLE, { redirect_uri, scope: 'openid admin', organization_id: id })
    await redeem(answerOf(await signIn(browser, await browser.get(request), 'bob', PASSWORD)).code ?? '')
    await app.events()
    return bob
  }

  test('belongs to the default organization if the user may not use the console', async () => {
    await signInBob(['user'])
    const { body } = await load()
    expect(`usr_${claimsOf(body.access_token).sub}`).toBe(ada.id)
    expect(await eventTypes()).toEqual(['user.login', 'session.created', 'token.issued'])
    expect((await sessions())[0]).toMatchObject({ user_id: ada.id, organization_id: 'org_default' })
  })

  test('belongs to the tenant of an administrator, but not a request for another account', async () => {
    const bob = await signInBob(['admin'])
    expect(`usr_${claimsOf((await load()).body.access_token).sub}`).toBe(bob.id)
    expect(await eventTypes()).toEqual(['token.issued'])
    const { body } = await load({ prompt: 'login' })
    expect(`usr_${claimsOf(body.access_token).sub}`).toBe(ada.id)
    expect(await eventTypes()).toEqual(['user.login', 'session.created', 'token.issued'])
    expect((await sessions())[0]).toMatchObject({ user_id: ada.id, organization_id: 'org_default' })
  })
})
