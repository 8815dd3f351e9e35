import { beforeEach, describe, expect, test } from 'bun:test'
import { HOUR } from '#src/lib/duration.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, listAll, refused } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { addLogin, bearer, claimsOf, get, grantTokens, refresh } from '#test/support/tokens.ts'

let app: TestApp
let alice: Json
let shop: Json
beforeEach(async () => {
  app = await startApp()
  alice = await addUser(app, 'alice')
  shop = await addClient(app, 'shop')
})

const sid = (tokens: Json) => `sess_${claimsOf(tokens.access_token).sid}`
const isAlive = async ({ access_token }: Json): Promise<boolean> =>
  (await get(app, '/oauth/userinfo', { headers: bearer(access_token) })).status === 200
const list = async (query = '', token?: string) =>
  (await app.admin('GET', `/sessions${query}`, undefined, token)).body
const ids = async (query = '', token?: string) =>
  (await listAll(app, `/sessions${query}`, token)).map(({ id }) => id)

describe('GET /sessions', () => {
  test('SES-10 shows each field of a session', async () => {
    const tokens = await grantTokens(app, shop, alice)
    expect(await list()).toEqual({
      data: [
        {
          id: sid(tokens),
          user_id: alice.id,
          username: 'alice',
          client_id: 'shop',
          organization_id: 'org_default',
          ip_address: '192.0.2.10',
          user_agent: 'A browser',
          location: '',
          started_at: '2026-01-15T12:00:00.000Z',
          last_active_at: '2026-01-15T12:00:00.000Z',
          expires_at: '2026-02-14T12:00:00.000Z',
        },
      ],
      pagination: { total: 1, limit: 20, has_more: false },
    })
    app.clock.advance(HOUR)
    await refresh(app, shop, tokens.refresh_token)
    expect((await list()).data[0]).toMatchObject({
      started_at: '2026-01-15T12:00:00.000Z',
      last_active_at: '2026-01-15T13:00:00.000Z',
      expires_at: '2026-02-14T13:00:00.000Z',
    })
  })

  test('SES-05 only active sessions, newest first, page by page', async () => {
    const made: string[] = []
    for (let i = 0; i < 5; i++) {
      app.clock.advance(1000)
      made.push(sid(await grantTokens(app, shop, alice)))
    }
    expect(await ids()).toEqual(made.toReversed())
    expect(await ids('?order=asc')).toEqual(made)
    await app.admin('DELETE', `/sessions/${made[2]}`)
    expect(await ids('?order=asc')).toEqual(made.filter(id => id !== made[2]))
    expect((await list()).pagination.total).toBe(4)
    app.clock.advance(31 * 24 * HOUR)
    expect(await list()).toEqual({ data: [], pagination: { total: 0, limit: 20, has_more: false } })
  })

  test('SES-06 filters, alone and combined; unknown filters and bad values are 422', async () => {
    const bob = await addUser(app, 'bob')
    const other = await addClient(app, 'other')
    const [a, b, c] = [
      sid(await grantTokens(app, shop, alice)),
      sid(await grantTokens(app, other, alice)),
      sid(await grantTokens(app, shop, bob)),
    ]
    expect(new Set(await ids(`?user_id=${alice.id}`))).toEqual(new Set([a, b]))
    expect(new Set(await ids('?client_id=shop'))).toEqual(new Set([a, c]))
    expect(await ids(`?client_id=shop&user_id=${bob.id}&organization_id=org_default`)).toEqual([c])
    expect((await list(`?user_id=${alice.id}`)).pagination.total).toBe(2)
    for (const query of ['?user_id=usr_x', '?client_id=x', '?organization_id=org_x'])
      expect([query, (await list(query)).pagination.total]).toEqual([query, 0])
    expect(refused(await app.admin('GET', '/sessions?username=alice'))).toEqual(['username'])
    expect(refused(await app.admin('GET', '/sessions?limit=101'))).toEqual(['limit'])
    expect((await app.admin('GET', '/sessions?cursor=x')).status).toBe(400)
  })
})

describe('DELETE /sessions/{session_id}', () => {
  test('SES-07 its tokens and its login end at once, and it is recorded', async () => {
    const login_id = await addLogin(app, alice, hashSecret('browser'))
    const tokens = await grantTokens(app, shop, alice, { login_id })
    const sibling = await grantTokens(app, shop, alice)
    await app.events()
    expect((await app.admin('DELETE', `/sessions/${sid(tokens)}`)).status).toBe(204)
    expect(await app.events()).toEqual([
      {
        type: 'session.revoked',
        actor_id: 'gatehouse-admin',
        target_id: sid(tokens),
        target_type: 'session',
        organization_id: 'org_default',
        metadata: { user_id: alice.id, client_id: 'shop', reason: 'admin' },
      },
    ])
    expect([await isAlive(tokens), await isAlive(sibling)]).toEqual([false, true])
    expect((await refresh(app, shop, tokens.refresh_token)).body.error).toBe('invalid_grant')
    const logins = await app.context.store.read(q => q.select().from(q.tables.logins))
    expect(logins.map(({ id }) => id)).not.toContain(login_id)
    for (const id of [sid(tokens), 'sess_0190a7c0-0000-7000-8000-000000000000', 'x'])
      expect((await app.admin('DELETE', `/sessions/${id}`)).status).toBe(404)
  })
})

describe('DELETE /sessions', () => {
  test('SES-08 needs at least one filter', async () => {
    const tokens = await grantTokens(app, shop, alice)
    for (const query of [
      '',
      '?limit=5',
      '?user_id=x&everything=true',
      '?user_id=',
      '?client_id=&organization_id=',
    ]) {
      const { status, body } = await app.admin('DELETE', `/sessions${query}`)
      expect([query, status, body.error]).toEqual([query, 422, 'validation_failed'])
    }
    expect(await isAlive(tokens)).toBe(true)
  })

  test('SES-09 revokes the sessions that match every filter, returns their number, and records each', async () => {
    const bob = await addUser(app, 'bob')
    const other = await addClient(app, 'other')
    const kept = await grantTokens(app, other, bob)
    const gone = [
      await grantTokens(app, shop, alice),
      await grantTokens(app, shop, bob),
      await grantTokens(app, shop, bob),
    ]
    await app.events()
    const answer = await app.admin('DELETE', `/sessions?client_id=shop&user_id=${bob.id}`)
    expect([answer.status, answer.body]).toEqual([
      200,
      { revoked_count: 2, message: '2 sessions were revoked.' },
    ])
    expect((await app.events()).map(({ type }) => type)).toEqual(['session.revoked', 'session.revoked'])
    expect((await app.admin('DELETE', '/sessions?client_id=shop')).body).toEqual({
      revoked_count: 1,
      message: '1 session was revoked.',
    })
    for (const tokens of gone) expect(await isAlive(tokens)).toBe(false)
    expect(await isAlive(kept)).toBe(true)
    expect((await app.admin('DELETE', '/sessions?organization_id=org_default')).body.revoked_count).toBe(1)
    expect((await app.admin('DELETE', '/sessions?user_id=usr_x')).body.revoked_count).toBe(0)
  })

  test('M-06 a tenant’s caller reaches only its own sessions', async () => {
    const acme = await addOrganization(app, 'acme')
    const anna = await addUser(app, 'anna', { organization_id: acme.id })
    const client = await addClient(app, 'acme-app', { organization_id: acme.id })
    const token = await callerOf(app, acme.id, ['sessions:read', 'sessions:revoke'])
    const foreign = await grantTokens(app, shop, alice)
    const own = await grantTokens(app, client, anna)
    expect(await ids('', token)).toEqual([sid(own)])
    expect((await list('', token)).pagination.total).toBe(1)
    for (const query of [
      'organization_id=org_default',
      'organization_id=org_x',
      `user_id=${alice.id}`,
      `user_id=${alice.id}&organization_id=${acme.id}`,
      'client_id=shop',
    ]) {
      expect([query, await ids(`?${query}`, token)]).toEqual([query, []])
      const { status, body } = await app.admin('DELETE', `/sessions?${query}`, undefined, token)
      expect([query, status, body.revoked_count]).toEqual([query, 200, 0])
    }
    expect((await app.admin('DELETE', `/sessions/${sid(foreign)}`, undefined, token)).status).toBe(404)
    expect((await app.admin('DELETE', `/users/${alice.id}/sessions`, undefined, token)).status).toBe(404)
    expect([await isAlive(foreign), await isAlive(own)]).toEqual([true, true])
    expect(
      (await app.admin('DELETE', `/sessions?user_id=${anna.id}`, undefined, token)).body.revoked_count,
    ).toBe(1)
    expect(await isAlive(own)).toBe(false)
  })
})
