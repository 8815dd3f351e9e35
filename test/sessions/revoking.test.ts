import { describe, expect, test } from 'bun:test'
import { touchDevice } from '#src/directory/users/device-store.ts'
import { revokeAllSessions } from '#src/directory/users/revocation.ts'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { purge } from '#src/operations/purge.ts'
import { countSessions, findActiveSession, listSessions, listUserSessions } from '#src/sessions/list-store.ts'
import { moveLogins } from '#src/sessions/login-store.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { revokeSessions } from '#src/sessions/service.ts'
import type { Transaction } from '#src/storage/store.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import {
  addCode,
  addLogin,
  bearer,
  claimsOf,
  get,
  grantTokens,
  post,
  redeem,
  refresh,
} from '#test/support/tokens.ts'

const start = async () => {
  const app = await startApp()
  const alice = await addUser(app, 'alice')
  const bob = await addUser(app, 'bob')
  const client = await addClient(app, 'shop')
  const other = await addClient(app, 'other')
  await app.events()
  const { context } = app
  const by = {
    actor: { id: 'admin', email: null },
    client_info: { ip_address: '', user_agent: '' },
    reason: 'admin',
  }
  return {
    app,
    alice,
    bob,
    client,
    other,
    now: () => context.clock.now(),
    read: context.store.read,
    revoke: (filter: Json) => context.store.write(tx => revokeSessions(context, tx, filter, by)),
    revokeAll: (filter: Json, caller?: Json) => revokeAllSessions(context, filter, { ...by, caller }),
    /**
     * Throws if any session has ended. On an admin route, the check throws if the caller's session has ended.
     */
    confirm: async (tx: Transaction) => {
      const sessions = await tx.select().from(tx.tables.sessions)
      if (sessions.some(({ ended_at }) => ended_at !== null)) throw new Error('A session has ended.')
    },
    loginsOf: (user: Json) =>
      context.store.read(async q =>
        (await q.select().from(q.tables.logins)).filter(({ user_id }) => user_id === user.id),
      ),
    isAlive: async (tokens: Json): Promise<boolean> =>
      (await get(app, '/oauth/userinfo', { headers: bearer(tokens.access_token) })).status === 200,
  }
}
const sid = (tokens: Json) => `sess_${claimsOf(tokens.access_token).sid}` as const

describe('revoking', () => {
  test('SES-04 one session: its tokens and its login end at once; other sessions of that login continue', async () => {
    const { app, alice, client, other, revoke, loginsOf, isAlive } = await start()
    const login_id = await addLogin(app, alice)
    const first = await grantTokens(app, client, alice, { login_id })
    const second = await grantTokens(app, other, alice, { login_id })
    const elsewhere = await addLogin(app, alice)
    await app.events()
    expect(await revoke({ session_id: sid(first) })).toBe(1)
    expect(await app.events()).toEqual([
      {
        type: 'session.revoked',
        actor_id: 'admin',
        target_id: sid(first),
        target_type: 'session',
        organization_id: 'org_default',
        metadata: { user_id: alice.id, client_id: 'shop', reason: 'admin' },
      },
    ])
    expect([await isAlive(first), await isAlive(second)]).toEqual([false, true])
    expect((await refresh(app, client, first.refresh_token)).status).toBe(400)
    expect((await refresh(app, other, second.refresh_token)).status).toBe(200)
    expect((await loginsOf(alice)).map(({ id }) => id)).toEqual([elsewhere])
    expect(await revoke({ session_id: sid(first) })).toBe(0)
  })

  test('SES-03 all sessions of a user: with all logins and codes, and none of other users', async () => {
    const { app, alice, bob, client, revokeAll, loginsOf, isAlive } = await start()
    const mine = [await grantTokens(app, client, alice), await grantTokens(app, client, alice)]
    await addLogin(app, alice)
    const code = await addCode(app, client, alice)
    const theirs = await grantTokens(app, client, bob)
    expect(await revokeAll({ user_id: alice.id })).toBe(2)
    expect([await isAlive(mine[0]), await isAlive(mine[1]), await isAlive(theirs)]).toEqual([
      false,
      false,
      true,
    ])
    expect([(await loginsOf(alice)).length, (await loginsOf(bob)).length]).toEqual([0, 1])
    expect((await redeem(app, client, code)).status).toBe(400)
  })

  test('M-06 a filter by another organization revokes no session, login or code', async () => {
    const { app, alice, client, revokeAll, loginsOf, isAlive } = await start()
    const acme = await addOrganization(app, 'acme')
    const tokens = await grantTokens(app, client, alice)
    const code = await addCode(app, client, alice)
    expect(await revokeAll({ user_id: alice.id, organization_id: acme.id })).toBe(0)
    expect([await isAlive(tokens), (await loginsOf(alice)).length]).toEqual([true, 2])
    expect((await redeem(app, client, code)).status).toBe(200)
  })

  test('a user’s sessions at one client also end the logins that they came from, and no others', async () => {
    const { app, alice, client, other, revokeAll, loginsOf } = await start()
    await grantTokens(app, client, alice)
    const kept = await addLogin(app, alice)
    await grantTokens(app, other, alice, { login_id: kept })
    expect(await revokeAll({ user_id: alice.id, client_id: 'shop' })).toBe(1)
    expect((await loginsOf(alice)).map(({ id }) => id)).toEqual([kept])
  })

  test('revokes the access tokens of sessions ended by /oauth/revoke, without counting or recording them', async () => {
    const { app, alice, client, revokeAll, isAlive } = await start()
    const tokens = await grantTokens(app, client, alice)
    await post(app, '/oauth/revoke', { token: tokens.refresh_token })
    expect(await isAlive(tokens)).toBe(true)
    await app.events()
    expect(await revokeAll({ user_id: alice.id })).toBe(0)
    expect(await isAlive(tokens)).toBe(false)
    expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
      ['user.updated', { fields: ['logins'] }],
    ])
  })

  test('expired sessions are not revoked again', async () => {
    const { app, alice, client, revokeAll } = await start()
    await grantTokens(app, client, alice)
    app.clock.advance(31 * DAY)
    expect(await revokeAll({ user_id: alice.id })).toBe(0)
  })

  test('many sessions are revoked in batches, each recorded once', async () => {
    const { app, alice, client, revokeAll } = await start()
    const login_id = await addLogin(app, alice)
    await Promise.all(Array.from({ length: 501 }, () => grantTokens(app, client, alice, { login_id })))
    await app.events()
    expect(await revokeAll({ client_id: 'shop' })).toBe(501)
    const targets = (await app.events()).map(({ type, target_id }) => `${type} ${target_id}`)
    expect(new Set(targets).size).toBe(501)
    expect(await revokeAll({ client_id: 'shop' })).toBe(0)
  })

  test('many sessions end although the first batch ends the session of the caller', async () => {
    const { app, alice, client, revokeAll, confirm } = await start()
    const login_id = await addLogin(app, alice)
    await Promise.all(Array.from({ length: 501 }, () => grantTokens(app, client, alice, { login_id })))
    expect(await revokeAll({ user_id: alice.id }, { confirm })).toBe(501)
    await expect(revokeAll({ user_id: alice.id }, { confirm })).rejects.toThrow('ended')
  })
})

describe('lists', () => {
  test('active sessions only, by id in both directions, page by page, with the user name', async () => {
    const { app, alice, client, other, now } = await start()
    const made = []
    for (let i = 0; i < 5; i++) made.push(sid(await grantTokens(app, client, alice)))
    const short = await addClient(app, 'short', { refresh_token_ttl: 300 })
    await grantTokens(app, short, alice)
    const ended = await grantTokens(app, other, alice)
    await post(app, '/oauth/revoke', { token: ended.refresh_token })
    app.clock.advance(HOUR / 2)
    const pages = async (order: 'asc' | 'desc') => {
      const seen: { id: string; username: string }[] = []
      for (let after: string | undefined; ; ) {
        const rows = await listSessions(app.context.store, { now: now(), order, after, limit: 2 })
        seen.push(...rows.map(({ id, username }) => ({ id, username })))
        after = rows.at(-1)?.id
        if (rows.length < 2) return seen
      }
    }
    const expected = made.map(id => ({ id, username: 'alice' }))
    expect(await pages('asc')).toEqual(expected)
    expect(await pages('desc')).toEqual(expected.toReversed())
    expect(await countSessions(app.context.store, { now: now() }, 100)).toBe(5)
  })

  test('filters narrow the list within the caller’s organization', async () => {
    const { app, alice, bob, client, other, now, read } = await start()
    const acme = await addOrganization(app, 'acme')
    const carol = await addUser(app, 'carol', { organization_id: acme.id })
    const acmeClient = await addClient(app, 'acme-app', { organization_id: acme.id })
    const shop = sid(await grantTokens(app, client, alice))
    const elsewhere = sid(await grantTokens(app, other, alice))
    const bobs = sid(await grantTokens(app, client, bob))
    const theirs = sid(await grantTokens(app, acmeClient, carol))
    const found = async (filter: Json) => {
      const rows = await listSessions(app.context.store, { ...filter, now: now(), order: 'asc', limit: 10 })
      const count = await countSessions(app.context.store, { ...filter, now: now() }, 2)
      expect(count).toBe(Math.min(rows.length, filter.within && Object.keys(filter).length === 1 ? 10 : 3))
      return rows.map(({ id }) => id)
    }
    expect(await found({ user_id: alice.id })).toEqual([shop, elsewhere])
    expect(await found({ client_id: 'shop' })).toEqual([shop, bobs])
    expect(await found({ user_id: bob.id, client_id: 'other' })).toEqual([])
    expect(await found({ organization_id: acme.id })).toEqual([theirs])
    expect(await found({ organization_id: 'org_default' })).toEqual([shop, elsewhere, bobs])
    expect(await found({ within: acme.id })).toEqual([theirs])
    expect(await found({ within: acme.id, user_id: alice.id })).toEqual([])
    expect(await countSessions(app.context.store, { now: now() }, 2)).toBe(4)
    const find = (organization_id?: Json) =>
      read(q => findActiveSession(q, { session_id: shop, organization_id, now: now() }))
    expect([(await find())?.username, (await find('org_default'))?.id]).toEqual(['alice', shop])
    expect(await find(acme.id)).toBeUndefined()
  })

  test('M-10 expired sessions of a deleted organization are not subtracted from the total', async () => {
    const { app, alice, client, now } = await start()
    const acme = await addOrganization(app, 'acme')
    const carol = await addUser(app, 'carol', { organization_id: acme.id })
    const short = { organization_id: acme.id, refresh_token_ttl: 300 }
    await grantTokens(app, await addClient(app, 'acme-app', short), carol)
    await grantTokens(app, client, alice)
    app.clock.advance(HOUR / 2)
    const total = async () => [
      await countSessions(app.context.store, { now: now() }, 100),
      (await listSessions(app.context.store, { now: now(), order: 'asc', limit: 100 })).length,
    ]
    expect(await total()).toEqual([1, 1])
    await app.admin('DELETE', `/organizations/${acme.id}`)
    expect(await total()).toEqual([1, 1])
    await purge(app.context)
    expect(await total()).toEqual([1, 1])
  })

  test('a user’s own sessions have the names of their clients, newest first', async () => {
    const { app, alice, bob, client, other, now, read } = await start()
    await grantTokens(app, client, alice)
    await grantTokens(app, other, alice)
    await grantTokens(app, other, bob)
    const rows = await read(q => listUserSessions(q, alice.id, now()))
    expect(rows.map(({ client_name }) => client_name)).toEqual(['The other', 'The shop'])
  })
})

describe('the logins of a browser', () => {
  test('are listed until they expire, newest first, disabled users included, and move to a new cookie', async () => {
    const { app, alice, bob, read } = await start()
    const { context } = app
    const [before, after] = [hashSecret(newSecret()), hashSecret(newSecret())]
    const first = await addLogin(app, alice, before)
    app.clock.advance(HOUR)
    const second = await addLogin(app, bob, before)
    await app.admin('PUT', `/users/${bob.id}`, { enabled: false })
    await context.store.write(tx => moveLogins(tx, before, after))
    const list = (hash: typeof after) => read(q => listLogins(context, q, hash))
    expect(await list(before)).toEqual([])
    expect(await list(after)).toMatchObject([
      { id: second, username: 'bob', enabled: false, organization_slug: 'default' },
      { id: first, username: 'alice', enabled: true, amr: ['pwd'], acr: '1' },
    ])
    app.clock.advance(DAY - HOUR)
    expect((await list(after)).map(({ id }) => id)).toEqual([second])
  })
})

test('EVT-27 signing a user out who has no session, or ending what could sign the user in, is recorded', async () => {
  const { app, alice } = await start()
  const happened = async () =>
    (await app.events()).map(({ type, actor_id, target_id, metadata }) => [
      type,
      actor_id,
      target_id,
      metadata,
    ])
  const ended = (...fields: string[]) => [['user.updated', 'gatehouse-admin', alice.id, { fields }]]
  const revoke = (path: string) => app.admin('DELETE', path)
  await addLogin(app, alice)
  await app.events()
  const answer = await revoke(`/users/${alice.id}/sessions`)
  expect([answer.body.revoked_count, await happened()]).toEqual([0, ended('logins')])
  await revoke(`/users/${alice.id}/sessions`)
  expect(await happened()).toEqual([])

  await app.admin('POST', `/users/${alice.id}/sign-in-link`)
  await app.context.store.write(async tx => {
    await tx.update(tx.tables.users).set({ pending_email: 'new@example.com' })
    await touchDevice(tx, { user_id: alice.id, device_hash: hashSecret(newSecret()), last_seen_at: 0 })
  })
  await app.events()
  await revoke(`/sessions?user_id=${alice.id}`)
  expect(await happened()).toEqual(ended('known_browsers', 'sign_in_link', 'pending_email'))
})
