import { describe, expect, test } from 'bun:test'
import { type Json, startApp } from '#test/support/app.ts'
import { answerOf, type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  codeRow,
  logInTo,
  PASSWORD,
  signIn,
  signInLink,
} from '#test/support/people.ts'
import { addCode, grantTokens, redeem, refresh } from '#test/support/tokens.ts'

const app = await startApp()
const acme = await addOrganization(app, 'acme', { display_name: 'Acme Ltd' })
const blue = await addOrganization(app, 'blue')
const inA = { organization_id: acme.id }
const inB = { organization_id: blue.id }
const same = { email: 'same@example.com' }
const adaA = await addUser(app, 'ada', { ...inA, ...same })
const adaB = await addUser(app, 'ada', { ...inB, ...same })
await addUser(app, 'onlyb', inB)
await addUser(app, 'seconda', inA)
await addClient(app, 'a-web', inA)
await addClient(app, 'b-web', inB)
await addClient(app, 'cross', { capabilities: ['cross_organization'] })

const inBrowser = async (...logins: [client_id: string, username: string][]): Promise<Browser> => {
  const browser = openBrowser(app)
  for (const [client_id, username] of logins) await logInTo(browser, client_id, username, { prompt: 'login' })
  return browser
}

describe('M-03 a request for one organization never gets a user of another', () => {
  test.each([
    ['a-web', {}],
    ['cross', inA],
  ])('AUT-31 %s: by password', async (client_id, more) => {
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl(client_id, more))
    expect(page.html).toContain('Acme Ltd')
    expect((await signIn(browser, page, 'onlyb')).status).toBe(401)
    expect((await signIn(browser, page, 'onlyb@example.com')).status).toBe(401)
  })

  test.each([
    ['a-web', {}],
    ['cross', inA],
  ])('%s: by the cookie of another organization', async (client_id, more) => {
    const browser = await inBrowser(['b-web', 'onlyb'])
    expect((await browser.get(authorizeUrl(client_id, more))).heading).toBe('Sign in')
    const silent = await browser.get(authorizeUrl(client_id, { ...more, prompt: 'none' }))
    expect(answerOf(silent).error).toBe('login_required')
  })

  test('by the account picker', async () => {
    const browser = await inBrowser(['b-web', 'onlyb'], ['a-web', 'ada'], ['b-web', 'ada'])
    const { code } = answerOf(await browser.get(authorizeUrl('a-web', { prompt: 'select_account' })))
    expect((await codeRow(app, code)).user_id).toBe(adaA.id)
    await logInTo(browser, 'a-web', 'seconda', { prompt: 'login' })
    const page = await browser.get(authorizeUrl('a-web', { prompt: 'select_account' }))
    const foreign = await app.context.store.read(async q => q.select().from(q.tables.logins))
    const login = foreign.find(({ user_id }) => user_id === adaB.id)?.id ?? 'missing'
    expect(page.html).not.toContain(login)
    expect((await browser.submit(page, { login })).status).toBe(400)
  })

  test('O-51 by a login_hint', async () => {
    const browser = await inBrowser(['b-web', 'onlyb'])
    const page = await browser.get(authorizeUrl('cross', { ...inA, login_hint: 'onlyb' }))
    expect(formOf(page).fields.username).toBe('onlyb')
    expect((await browser.submit(page, { password: PASSWORD })).status).toBe(401)
  })

  test('organization_id must exist, and must be the client’s own without the capability', async () => {
    const error = async (client_id: string, organization_id: string) =>
      answerOf(await openBrowser(app).get(authorizeUrl(client_id, { organization_id }))).error
    expect(await error('a-web', blue.id)).toBe('invalid_request')
    expect(await error('cross', 'org_019bc186-de00-77c8-8403-8f016336b926')).toBe('invalid_request')
    expect(await error('cross', 'acme')).toBe('invalid_request')
    expect((await openBrowser(app).get(authorizeUrl('a-web', inA))).heading).toBe('Sign in')
  })
})

describe('H-12 a client that loses cross_organization', () => {
  const withdraw = (client: Json) => app.admin('PUT', `/clients/${client.client_id}`, { capabilities: [] })
  const wide = (client_id: string) => addClient(app, client_id, { capabilities: ['cross_organization'] })
  const sessionsOf = (client: Json) =>
    app.context.store.read(async q =>
      (await q.select().from(q.tables.sessions)).filter(({ client_id }) => client_id === client.client_id),
    )

  test('gets nothing more for refresh tokens of other tenants’ users; those of its own users work', async () => {
    const client = await wide('narrowed')
    const own = await addUser(app, 'own')
    const foreign = await grantTokens(app, client, adaA)
    const kept = await grantTokens(app, client, own)
    await withdraw(client)
    const before = await sessionsOf(client)
    await app.events()
    const refused = await refresh(app, client, foreign.refresh_token)
    expect([refused.status, refused.body.error]).toEqual([400, 'invalid_grant'])
    expect(await sessionsOf(client)).toEqual(before)
    expect(await app.events()).toEqual([])
    expect((await refresh(app, client, kept.refresh_token)).status).toBe(200)
  })

  test('gets nothing for a code of another tenant’s user', async () => {
    const client = await wide('narrowed-code')
    const code = await addCode(app, client, adaA)
    await withdraw(client)
    await app.events()
    const refused = await redeem(app, client, code)
    expect([refused.status, refused.body.error]).toEqual([400, 'invalid_grant'])
    expect(await sessionsOf(client)).toEqual([])
    expect(await app.events()).toEqual([])
  })

  test('gets no answer from a pending login or a stored POST', async () => {
    const client = await wide('narrowed-login')
    const browser = openBrowser(app)
    const url = authorizeUrl('narrowed-login', inA)
    const page = await browser.get(url)
    const stored = await app.call('/oauth/authorize', {
      method: 'POST',
      body: new URLSearchParams(url.split('?')[1]),
    })
    await withdraw(client)
    expect((await browser.submit(page, { username: 'ada', password: PASSWORD })).status).toBe(400)
    expect((await browser.get(stored.headers.get('location') ?? '')).status).toBe(400)
  })
})

test('M-08 the same name, address and password in two organizations are two users', async () => {
  for (const username of ['ada', 'ADA', 'same@example.com'])
    for (const [client_id, user] of [
      ['a-web', adaA],
      ['b-web', adaB],
    ] as const) {
      const { code } = await logInTo(openBrowser(app), client_id, username)
      expect(await codeRow(app, code)).toMatchObject({
        user_id: user.id,
        organization_id: user.organization_id,
      })
    }
})

test('M-08 failures in one organization do not slow the other down', async () => {
  const browser = openBrowser(app, { ip: '198.51.100.1' })
  const page = await browser.get(authorizeUrl('a-web'))
  const fields = { username: 'ada', password: 'wrong' }
  for (let i = 0; i < 5; i++) await browser.submit(page, fields)
  expect((await browser.submit(page, fields)).status).toBe(429)
  const other = openBrowser(app, { ip: '198.51.100.1' })
  expect(answerOf(await signIn(other, await other.get(authorizeUrl('b-web')), 'ada')).code).toBeString()
})

describe('M-04, M-05 a handle, code, link or cookie is refused in place of another kind', () => {
  const secrets = (page: Page) => Object.values(formOf(page).fields).filter(value => value.length > 40)

  test('handles and csrf tokens as codes', async () => {
    const browser = await inBrowser(['a-web', 'ada'])
    const page = await browser.get(authorizeUrl('a-web', { prompt: 'login' }))
    const cookies = [...browser.cookies.values()]
    for (const value of [...secrets(page), ...cookies]) {
      await expect(codeRow(app, value)).rejects.toThrow('no code')
      expect((await browser.get(`/account/sign-in?token=${value}`)).status).toBe(410)
      expect((await browser.get(`/account/set-up?token=${value}`)).status).toBe(410)
      expect((await browser.get(`/oauth/authorize/replay?handle=${value}`)).status).toBe(400)
    }
  })

  test('a code, a link or a cookie as handle or csrf token', async () => {
    const browser = await inBrowser(['a-web', 'ada'])
    const { code = '' } = answerOf(await browser.get(authorizeUrl('a-web')))
    const link = new URL(await signInLink(app, adaA)).searchParams.get('token') ?? ''
    const page = await browser.get(authorizeUrl('a-web', { prompt: 'login' }))
    for (const value of [code, link, ...browser.cookies.values()]) {
      expect((await browser.get(`/oauth/login?request=${value}`)).status).toBe(400)
      expect((await browser.submit(page, { csrf_token: value })).status).toBe(403)
      expect((await browser.submit(page, { csrf_token: `${value}.${value}` })).status).toBe(403)
    }
  })

  test('each cookie in place of another', async () => {
    const browser = await inBrowser(['a-web', 'ada'])
    const page = await browser.get(authorizeUrl('a-web', { prompt: 'login' }))
    const [first, second] = [...browser.cookies.keys()]
    const [one = '', two = ''] = [...browser.cookies.values()]
    browser.cookies.set(first ?? '', two).set(second ?? '', one)
    expect((await browser.get(authorizeUrl('a-web'))).heading).toBe('Sign in')
    expect((await browser.submit(page, { username: 'ada', password: PASSWORD })).status).toBe(403)
  })
})

describe('M-07 a flow or link of one organization is refused in another', () => {
  test('a pending request', async () => {
    const browser = openBrowser(app)
    const a = await browser.get(authorizeUrl('a-web'))
    const b = await browser.get(authorizeUrl('b-web'))
    const { csrf_token = '' } = formOf(a).fields
    expect((await browser.submit(b, { csrf_token, username: 'ada', password: PASSWORD })).status).toBe(403)
  })

  test('a sign-in link', async () => {
    const url = await signInLink(app, adaA)
    await app.context.store.write(tx => tx.update(tx.tables.links).set({ organization_id: blue.id }))
    expect((await openBrowser(app).get(url)).status).toBe(410)
  })

  test('deleting an organization deletes its pending requests, logins and links', async () => {
    const gone = await addOrganization(app, 'gone')
    const user = await addUser(app, 'gil', { organization_id: gone.id })
    await addClient(app, 'gone-web', { organization_id: gone.id })
    const browser = await inBrowser(['gone-web', 'gil'])
    const page = await browser.get(authorizeUrl('gone-web', { prompt: 'login' }))
    const link = await signInLink(app, user)
    expect((await app.admin('DELETE', `/organizations/${gone.id}`)).status).toBe(204)
    expect((await browser.submit(page, { username: 'gil', password: PASSWORD })).status).toBe(400)
    expect((await browser.get(authorizeUrl('gone-web'))).status).toBe(400)
    expect((await browser.get(link)).status).toBe(410)
    expect((await browser.get('/account')).heading).toBe('Sign in')
    expect((await browser.get('/account?organization=gone')).status).toBe(404)
  })
})

test('M-13 parallel requests of one browser for two organizations are never mixed up', async () => {
  const browser = await inBrowser(['a-web', 'ada'], ['b-web', 'ada'])
  for (let round = 0; round < 20; round++) {
    const pages = await Promise.all(
      Array.from({ length: 50 }, (_, i) => browser.get(authorizeUrl(i % 2 ? 'a-web' : 'b-web'))),
    )
    for (const [i, page] of pages.entries())
      expect((await codeRow(app, answerOf(page).code)).user_id).toBe(i % 2 ? adaA.id : adaB.id)
  }
})
