import { expect, test } from 'bun:test'
import { and, type Column, getTableColumns, isNull, lte } from 'drizzle-orm'
import { DAY, HOUR, MINUTE } from '#src/lib/duration.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { sweep } from '#src/operations/sweep.ts'
import { expireDueSessions } from '#src/sessions/service.ts'
import { sqliteTables } from '#src/storage/sqlite/tables.ts'
import { startApp } from '#test/support/app.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { addCode, addLogin, claimsOf, grantTokens, post, redeem, refresh } from '#test/support/tokens.ts'

const start = async () => {
  const app = await startApp()
  const user = await addUser(app, 'alice')
  const client = await addClient(app, 'shop', { refresh_token_ttl: 3600 })
  await app.events()
  const count = (name: 'sessions' | 'authorization_codes' | 'logins' | 'throttles') =>
    app.context.store.read(q => q.$count(q.tables[name]))
  return { app, user, client, count, sweep: () => sweep(app.context) }
}
const sid = (tokens: { access_token: string }) => `sess_${claimsOf(tokens.access_token).sid}`

test('EVT-15 a step of the clean-up looks only at the sessions that are due first', async () => {
  const { app, user, client } = await start()
  await grantTokens(app, client, user)
  app.clock.advance(MINUTE)
  const { refresh_token } = await grantTokens(app, client, user)
  app.clock.advance(30 * MINUTE)
  await refresh(app, client, refresh_token)
  app.clock.advance(30 * MINUTE)
  const step = () => app.context.store.write(tx => expireDueSessions(app.context, tx, 1))
  expect([await step(), await step(), await step()]).toEqual([1, 1, 0])
})

test('EVT-15 an expired session is recorded once, however many sweeps run, and nothing else is recorded', async () => {
  const { app, user, client, sweep } = await start()
  const gone = await grantTokens(app, client, user)
  app.clock.advance(30 * MINUTE)
  const alive = await grantTokens(app, client, user)
  await app.events()
  await sweep()
  expect(await app.events()).toEqual([])
  app.clock.advance(30 * MINUTE)
  await Promise.all([sweep(), sweep()])
  await sweep()
  expect(await app.events()).toEqual([
    {
      type: 'session.expired',
      actor_id: null,
      target_id: sid(gone),
      target_type: 'session',
      organization_id: 'org_default',
      metadata: { user_id: user.id, client_id: 'shop' },
    },
  ])
  expect((await refresh(app, client, alive.refresh_token)).status).toBe(200)
})

test('a session that ended otherwise never expires', async () => {
  const { app, user, client, sweep } = await start()
  const revoked = await grantTokens(app, client, user)
  await app.admin('DELETE', `/sessions/${sid(revoked)}`)
  const released = await grantTokens(app, client, user)
  await post(app, '/oauth/revoke', { token: released.refresh_token })
  app.clock.advance(HOUR)
  await app.events()
  await sweep()
  expect(await app.events()).toEqual([])
})

test('R-20 more sessions than fit into one batch: each recorded once', async () => {
  const { app, user, client, sweep } = await start()
  const login_id = await addLogin(app, user)
  const made = await Promise.all(
    Array.from({ length: 600 }, () => grantTokens(app, client, user, { login_id })),
  )
  app.clock.advance(HOUR)
  await app.events()
  await sweep()
  const events = await app.events()
  expect(events.map(({ type }) => type)).toEqual(Array(600).fill('session.expired'))
  expect(new Set(events.map(({ target_id }) => target_id))).toEqual(new Set(made.map(sid)))
})

test('a session is removed once its last access token has expired', async () => {
  const { app, user, client, count, sweep } = await start()
  await grantTokens(app, client, user)
  app.clock.advance(HOUR)
  await sweep()
  app.clock.advance(DAY)
  await sweep()
  expect(await count('sessions')).toBe(1)
  app.clock.advance(10 * MINUTE)
  await sweep()
  expect(await count('sessions')).toBe(0)
})

test('a refreshed session expires at the time set by its last refresh, earlier or later', async () => {
  const { app, user, client, sweep } = await start()
  const later = await grantTokens(app, client, user)
  const sooner = await grantTokens(app, client, user)
  app.clock.advance(30 * MINUTE)
  await refresh(app, client, later.refresh_token)
  await app.admin('PUT', '/clients/shop', { refresh_token_ttl: 600 })
  await refresh(app, client, sooner.refresh_token)
  await app.events()
  const expired = async () => {
    await sweep()
    return (await app.events()).map(({ type, target_id }) => [type, target_id])
  }
  app.clock.advance(10 * MINUTE)
  expect(await expired()).toEqual([['session.expired', sid(sooner)]])
  app.clock.advance(50 * MINUTE - 1)
  expect(await expired()).toEqual([])
  app.clock.advance(1)
  expect(await expired()).toEqual([['session.expired', sid(later)]])
})

test('a batch full of refreshed sessions does not hold back an expired one, and is examined once', async () => {
  const { app, user, client, sweep } = await start()
  const login_id = await addLogin(app, user)
  const made = await Promise.all(
    Array.from({ length: 600 }, () => grantTokens(app, client, user, { login_id })),
  )
  app.clock.advance(30 * MINUTE)
  const [gone, ...kept] = made
  await Promise.all(kept.map(({ refresh_token }) => refresh(app, client, refresh_token)))
  app.clock.advance(30 * MINUTE)
  await app.events()
  await sweep()
  expect((await app.events()).map(({ target_id }) => target_id)).toEqual([sid(gone as never)])
  const { store, clock } = app.context
  const due = store.read(q =>
    q.$count(
      q.tables.sessions,
      and(isNull(q.tables.sessions.ended_at), lte(q.tables.sessions.due_at, clock.now())),
    ),
  )
  expect(await due).toBe(0)
})

test('a released session is removed although its refresh token has not expired', async () => {
  const { app, user, count, sweep } = await start()
  const lasting = await addClient(app, 'lasting')
  const { refresh_token } = await grantTokens(app, lasting, user)
  await post(app, '/oauth/revoke', { token: refresh_token })
  app.clock.advance(DAY + 10 * MINUTE)
  await sweep()
  expect(await count('sessions')).toBe(0)
})

test('burnt and stored codes are removed a minute after they expire, and a replay later still revokes', async () => {
  const { app, user, count, sweep } = await start()
  const lasting = await addClient(app, 'lasting')
  const code = await addCode(app, lasting, user)
  const { body } = await redeem(app, lasting, code)
  expect(await count('authorization_codes')).toBe(0)
  await addCode(app, lasting, user, { nonce: 'n'.repeat(400) })
  await redeem(app, lasting, await addCode(app, lasting, user), { code_verifier: 'z'.repeat(43) })
  app.clock.advance(2 * MINUTE - 1)
  await sweep()
  expect(await count('authorization_codes')).toBe(2)
  app.clock.advance(1)
  await sweep()
  expect(await count('authorization_codes')).toBe(0)
  app.clock.advance(HOUR)
  await redeem(app, lasting, code)
  expect((await refresh(app, lasting, body.refresh_token)).status).toBe(400)
})

test('logins, pending and stored requests, links and throttles are removed a minute after they expire', async () => {
  const { app, user, sweep } = await start()
  const { store, clock } = app.context
  await addLogin(app, user)
  const expires_at = clock.now() + DAY
  await store.write(async tx => {
    const { authorization_requests, links, stored_posts, throttles } = tx.tables
    const secret = () => hashSecret(newSecret())
    await tx.insert(authorization_requests).values({
      request_hash: secret(),
      browser_hash: secret(),
      client_id: 'shop',
      organization_id: user.organization_id,
      request: {},
      created_at: clock.now(),
      expires_at,
    })
    await tx.insert(stored_posts).values({ handle_hash: secret(), kind: 'authorize', body: '', expires_at })
    await tx.insert(links).values({
      link_hash: secret(),
      kind: 'sign_in',
      user_id: user.id,
      organization_id: user.organization_id,
      created_at: clock.now(),
      expires_at,
    })
    await tx
      .insert(throttles)
      .values({ key: 'x', failures: 1, window_started_at: clock.now(), blocked_until: 0, expires_at })
  })
  const counts = () =>
    store.read(q => {
      const { authorization_requests, links, logins, stored_posts, throttles } = q.tables
      return Promise.all(
        [authorization_requests, links, logins, stored_posts, throttles].map(table => q.$count(table)),
      )
    })
  app.clock.advance(DAY + MINUTE - 1)
  await sweep()
  expect(await counts()).toEqual([1, 1, 1, 1, 1])
  app.clock.advance(1)
  await sweep()
  expect(await counts()).toEqual([0, 0, 0, 0, 0])
})

test('every table whose rows expire is swept', async () => {
  const app = await startApp()
  const { store, clock } = app.context
  const user = await addUser(app, 'alice')
  const expiring = Object.entries(sqliteTables).filter(([, table]) => 'expires_at' in getTableColumns(table))
  // Two tables are left out. The sweep ends a session, with an event, before it removes the session. Keys are
  // removed by the rotation.
  const others = expiring.filter(([name]) => name !== 'sessions' && name !== 'signing_keys')
  const value = (column: Column): unknown => {
    if (column.name === 'expires_at') return clock.now() + 1
    if (column.name === 'user_id') return user.id
    if (column.name === 'organization_id') return user.organization_id
    const values: Record<string, unknown> = { number: 1, boolean: false, custom: {} }
    if (column.getSQLType() === 'blob') return Buffer.from('sealed')
    return values[column.dataType] ?? column.name
  }
  for (const [, table] of others) {
    const needed = Object.entries(getTableColumns(table)).filter(
      // The sweep removes only logouts that are done.
      ([name, { notNull, hasDefault }]) => (notNull && !hasDefault) || name === 'done_at',
    )
    const row = Object.fromEntries(needed.map(([name, column]) => [name, value(column)]))
    await store.write(async tx => void (await tx.insert(table).values(row as never)))
  }
  const left = async () => {
    const counts = await store.read(q =>
      Promise.all(others.map(async ([name, table]) => [name, await q.$count(table)] as const)),
    )
    return counts.filter(([, count]) => count > 0).map(([name]) => name)
  }
  expect(await left()).toEqual(others.map(([name]) => name))
  // Invitations that have ended are shown for 90 days.
  app.clock.advance(91 * DAY)
  await sweep(app.context)
  expect(await left()).toEqual([])
})
