import { describe, expect, test } from 'bun:test'
import { retryLater } from '#src/lib/app-error.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addUser, authorizeUrl, logInTo, PASSWORD } from '#test/support/people.ts'
import { addCode, bearer, get, grantTokens, post, redeem, refresh } from '#test/support/tokens.ts'

const app = await startApp()
const alice = await addUser(app, 'alice')
const client = await addClient(app, 'shop', {
  grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
})
const { client_id, client_secret } = client
const tokens = await grantTokens(app, client, alice)
const code = await addCode(app, client, alice)
const browser = openBrowser(app)
await logInTo(browser, 'shop', 'alice')
const stranger = openBrowser(app)
const login = await stranger.get(authorizeUrl('shop'))

const CAUSE = 'the disk is on fire, says /var/lib/secret-path'
const failures = {
  'is full for the moment': {
    error: () => retryLater('temporarily_unavailable', 'The store cannot write.', 1000),
    status: 503,
    code: 'temporarily_unavailable',
  },
  'fails in a way nobody thought of': { error: () => new Error(CAUSE), status: 500, code: 'server_error' },
} as const

/** Returns all stored rows by table. A refusal must not change these rows. */
const stored = () =>
  app.context.store.read(async q => {
    const rows: Json = {}
    for (const [name, table] of Object.entries(q.tables)) rows[name] = await q.select().from(table)
    return rows
  })

const withoutWrites = async <T>(error: () => Error, work: () => Promise<T>): Promise<T> => {
  const { write } = app.context.store
  Object.assign(app.context.store, { write: () => Promise.reject(error()) })
  try {
    return await work()
  } finally {
    Object.assign(app.context.store, { write })
  }
}

describe.each(Object.entries(failures))('R-05 a store that %s', (_, { error, status, code: error_code }) => {
  const refused = (answer: { status: number; body: Json; headers: Headers }) => {
    expect([answer.status, answer.body.error, answer.body.status]).toEqual([status, error_code, status])
    expect(answer.headers.get('retry-after')).toBe(status === 503 ? '1' : null)
    expect(JSON.stringify(answer.body)).not.toContain('secret-path')
  }

  test('R-05 issues no token and uses up none', async () => {
    const before = await stored()
    await withoutWrites(error, async () => {
      refused(await redeem(app, client, code))
      refused(await refresh(app, client, tokens.refresh_token))
      refused(await post(app, '/oauth/token', { grant_type: 'client_credentials', client_id, client_secret }))
    })
    expect(await stored()).toEqual(before)
  })

  test('R-05 refuses changes by the admin API, and still reads', async () => {
    const token = await app.tokenOf('gatehouse-admin', 'test-admin-secret-with-enough-entropy')
    const before = await stored()
    await withoutWrites(error, async () => {
      refused(await app.admin('POST', '/organizations', { name: 'Acme', slug: 'acme' }, token))
      refused(await app.admin('PUT', `/users/${alice.id}`, { first_name: 'Mallory' }, token))
      refused(await app.admin('DELETE', `/users/${alice.id}`, undefined, token))
      expect((await app.admin('GET', '/users', undefined, token)).status).toBe(200)
      expect((await get(app, '/oauth/userinfo', { headers: bearer(tokens.access_token) })).status).toBe(200)
      for (const path of ['/.well-known/jwks.json', '/.well-known/openid-configuration', '/healthz'])
        expect((await get(app, path)).status).toBe(200)
    })
    expect(await stored()).toEqual(before)
  })

  test('R-05 is reported to the client by redirect and to the user by a page, without the cause', async () => {
    const before = await stored()
    await withoutWrites(error, async () => {
      for (const person of [browser, openBrowser(app)]) {
        const page = await person.get(authorizeUrl('shop', { nonce: 'n'.repeat(400) }))
        expect(page.status).toBe(302)
        expect(answerOf(page)).toMatchObject({
          error: error_code,
          state: 'xyz',
          iss: 'http://localhost:8080',
        })
        expect(page.location).not.toContain('secret-path')
      }
      const page = await stranger.submit(login, { username: 'alice', password: PASSWORD }, '/oauth/login')
      expect(page.status).toBe(status)
      expect(page.html).not.toContain('secret-path')
      expect(stranger.cookies.keys().toArray()).toEqual(['gatehouse_browser_8080'])
    })
    expect(await stored()).toEqual(before)
  })
})

test('R-05 a login that names an API is not called expired while the store cannot read', async () => {
  const resource = 'https://api.example.com'
  await create(app, '/apis', {
    name: 'API',
    identifier: resource,
    clients: [{ client_id: 'shop', scopes: [] }],
  })
  const page = await stranger.get(authorizeUrl('shop', { resource }))
  const again = `/oauth/login?request=${formOf(page, '/oauth/login').fields.request}`
  // The change of the API empties the cache, so the next request has to read the API again.
  await create(app, '/apis', { name: 'Other', identifier: 'https://other.example.com' })
  const { read } = app.context.store
  let reads = 0
  const busy = () => Promise.reject(retryLater('temporarily_unavailable', 'The store cannot read.', 1000))
  Object.assign(app.context.store, {
    read: (body: Parameters<typeof read>[0]) => (reads++ ? busy() : read(body)),
  })
  const answer = await stranger.get(again)
  Object.assign(app.context.store, { read })
  expect(answer.status).toBe(503)
  expect((await stranger.get(again)).heading).toBe(page.heading)
})

test('R-05 once it can write again, the same code, token and form work', async () => {
  expect((await redeem(app, client, code)).status).toBe(200)
  expect((await refresh(app, client, tokens.refresh_token)).status).toBe(200)
  expect(answerOf(await browser.get(authorizeUrl('shop'))).code).toBeString()
  const page = await stranger.submit(login, { username: 'alice', password: PASSWORD }, '/oauth/login')
  expect(answerOf(page).code).toBeString()
})
