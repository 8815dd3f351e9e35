import { beforeEach, describe, expect, test } from 'bun:test'
import { HOUR } from '#src/lib/duration.ts'
import { purge } from '#src/operations/purge.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf, create, refused } from '#test/support/callers.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  logInTo,
  PASSWORD,
  REDIRECT,
  signIn,
  VERIFIER,
} from '#test/support/people.ts'

let app: TestApp
beforeEach(async () => {
  app = await startApp()
})

const nothing = { logins: 0, failed_logins: 0, new_users: 0, active_users: 0, tokens: 0 }

/**
 * Returns the points in which a count is not 0. The key of each point is the beginning of its hour or day.
 */
const counts = async (query = '', token?: string): Promise<Json> => {
  const { status, body } = await app.admin('GET', `/statistics${query}`, undefined, token)
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  const points = body.data.map(({ start, ...point }: Json) => [start, point])
  return Object.fromEntries(points.filter(([, point]: Json) => !Bun.deepEquals(point, nothing)))
}

const token = async (client: Json, fields: Record<string, string>): Promise<Json> => {
  const { client_id, client_secret } = client
  const body = new URLSearchParams({ client_id, client_secret, ...fields })
  return (await app.call('/oauth/token', { method: 'POST', body })).json()
}

const signInTo = async (client: Json, username: string): Promise<Json> => {
  const { code = '' } = await logInTo(openBrowser(app), client.client_id, username)
  return token(client, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    code_verifier: VERIFIER,
  })
}

describe('STA-01 the statistics', () => {
  test('count logins, failures, new users and tokens by hour and day, and a user as active once', async () => {
    const shop = await addClient(app, 'shop')
    await addUser(app, 'alice')
    await addUser(app, 'bob')
    const { refresh_token } = await signInTo(shop, 'alice')
    await signInTo(shop, 'alice')
    app.clock.advance(HOUR)
    await token(shop, { grant_type: 'refresh_token', refresh_token })
    await signInTo(shop, 'bob')
    app.clock.advance(24 * HOUR)
    await signInTo(shop, 'alice')

    expect(await counts('?interval=hour')).toEqual({
      // One of the three tokens is the admin client's token, with which the test calls the admin API.
      '2026-01-15T12:00:00.000Z': { ...nothing, logins: 2, new_users: 2, active_users: 1, tokens: 3 },
      '2026-01-15T13:00:00.000Z': { ...nothing, logins: 1, active_users: 2, tokens: 2 },
      '2026-01-16T13:00:00.000Z': { ...nothing, logins: 1, active_users: 1, tokens: 2 },
    })
    expect(await counts()).toEqual({
      '2026-01-15T00:00:00.000Z': { ...nothing, logins: 3, new_users: 2, active_users: 2, tokens: 5 },
      '2026-01-16T00:00:00.000Z': { ...nothing, logins: 1, active_users: 1, tokens: 2 },
    })
  })

  test('count a user who was active while the clock was ahead', async () => {
    const shop = await addClient(app, 'shop')
    await addUser(app, 'alice')
    app.clock.advance(48 * HOUR)
    await signInTo(shop, 'alice')
    app.clock.advance(-48 * HOUR)
    await signInTo(shop, 'alice')
    await signInTo(shop, 'alice')
    const start = '2026-01-15T12:00:00.000Z'
    expect((await counts('?interval=hour'))[start]).toMatchObject({ logins: 2, active_users: 1 })
    expect((await counts())['2026-01-15T00:00:00.000Z']).toMatchObject({ logins: 2, active_users: 1 })
  })

  test('count a failed login', async () => {
    await addClient(app, 'shop')
    await addUser(app, 'alice')
    const browser = openBrowser(app)
    await signIn(browser, await browser.get(authorizeUrl('shop')), 'alice', `${PASSWORD}!`)
    expect(await counts('?interval=hour')).toMatchObject({
      '2026-01-15T12:00:00.000Z': { failed_logins: 1, logins: 0 },
    })
  })

  test('give a point for each hour or day, also without events', async () => {
    const { body } = await app.admin('GET', '/statistics')
    expect([body.interval, body.data.length]).toEqual(['day', 31])
    expect(body.data[0]).toEqual({ start: '2025-12-16T00:00:00.000Z', ...nothing })
    expect((await app.admin('GET', '/statistics?interval=hour')).body.data.length).toBe(49)
    const days = await app.admin('GET', '/statistics?from=2026-01-01&to=2026-01-02')
    expect(days.body.data.map(({ start }: Json) => start.slice(0, 10))).toEqual(['2026-01-01', '2026-01-02'])
    for (const query of ['?from=2024-12-10', '?interval=hour&from=2025-12-01', '?from=2026-02-01'])
      expect(refused(await app.admin('GET', `/statistics${query}`))).toEqual(['from'])
    expect((await app.admin('GET', '/statistics?from=2024-12-12')).body.data.length).toBe(400)
  })
})

test('STA-02 a tenant sees its own counts, and the instance the sum', async () => {
  const { id } = await addOrganization(app, 'acme')
  await addUser(app, 'alice')
  await addUser(app, 'carol', { organization_id: id })
  const caller = await callerOf(app, id, ['events:read'])
  const start = '2026-01-15T00:00:00.000Z'
  const own = { ...nothing, new_users: 1, tokens: 1 }
  for (const query of ['', `?organization_id=${id}`])
    expect(await counts(query, caller)).toEqual({ [start]: own })
  expect(await counts('?organization_id=org_default', caller)).toEqual({})
  expect(await counts(`?organization_id=${id}`)).toEqual({ [start]: own })
  expect((await counts())[start]).toMatchObject({ new_users: 2 })
})

test('STA-03 deletions change no past count, except that an organization is deleted with its own counts', async () => {
  const { id } = await addOrganization(app, 'acme')
  const user = await addUser(app, 'alice')
  await create(app, '/users', {
    username: 'carol',
    email: 'carol@example.com',
    first_name: '',
    last_name: '',
    password: PASSWORD,
    organization_id: id,
  })
  const before = await counts()
  expect(Object.values<Json>(before)[0].new_users).toBe(2)
  await app.admin('DELETE', `/users/${user.id}`)
  await app.admin('DELETE', `/organizations/${id}`)
  expect(await counts(`?organization_id=${id}`)).toEqual({})
  await purge(app.context)
  expect(await counts()).toEqual(before)
  const left = await app.context.store.read(async q => q.select().from(q.tables.statistics))
  expect(left.map(row => row.organization_id)).not.toContain(id)
})
