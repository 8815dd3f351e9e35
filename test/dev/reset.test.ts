import { describe, expect, test } from 'bun:test'
import type { Server } from 'bun'
import { devClock } from '#src/dev/clock.ts'
import { DEV_ADMIN_SECRET } from '#src/dev/default-seed.ts'
import { development } from '#src/dev/development.ts'
import { MINUTE } from '#src/lib/duration.ts'
import { captureMail } from '#src/mail/captured.ts'
import { purge } from '#src/operations/purge.ts'
import { startGatehouse } from '#src/testing/index.ts'
import { start } from '#src/testing/start.ts'
import type { SeedClient } from '#src/testing/types.ts'
import { adminAt } from '#test/support/admin-calls.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

const clientToken = async (url: string, client_id = 'dev-service'): Promise<Response> =>
  fetch(`${url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret: 'dev-secret' }),
  })

const jwksOf = async (url: string): Promise<string[]> =>
  ((await (await fetch(`${url}/.well-known/jwks.json`)).json()) as Json).keys.map(({ kid }: Json) => kid)

describe('dev 12: reset', () => {
  test('restores the whole server to its seed; keys survive', async () => {
    await using server = await startGatehouse()
    const before = await server.events.list()
    const { token } = await server.mint({ user: 'alice' })
    await jwksOf(server.url)
    const keys = await server.keys.list()
    await server.users.put(
      { username: 'carol', email: 'carol@example.com' },
      { username: 'alice', email: 'a@example.com' },
    )
    await server.clock.set('2030-01-01T00:00:00Z')
    await server.faults.add({ endpoint: 'jwks', status: 500 })
    await server.reset()
    expect((await server.users.list()).map(({ username, email }) => [username, email])).toEqual([
      ['alice', 'alice@example.com'],
      ['admin', 'admin@example.com'],
    ])
    expect(await server.events.list()).toEqual(before)
    expect(Math.abs((await server.clock.now()).getTime() - Date.now())).toBeLessThan(MINUTE)
    expect(await server.requests()).toEqual([])
    expect(await server.keys.list()).toEqual(keys)
    expect((await fetch(`${server.url}/oauth/userinfo`, bearer(token))).status).toBe(401)
    expect((await clientToken(server.url)).status).toBe(200)
  })

  test('leaves a stream of events open, which goes on with the events after the reset', async () => {
    await using server = await startGatehouse()
    const after = (await server.events.list()).at(-1)?.seq ?? 0
    const stream = server.events.stream({ after })
    const seen: Json[] = []
    const read = async () => seen.push((await stream.next()).value)
    for (let i = 0; i < 3; i++) await clientToken(server.url)
    for (let i = 0; i < 3; i++) await read()
    await server.reset()
    await clientToken(server.url)
    await read()
    const [last] = (await server.events.list()).slice(-1)
    expect(new Set(seen.map(({ id }) => id)).size).toBe(4)
    expect([last?.seq, seen.at(-1).id]).toEqual([after + 1, last?.id])
    await stream.return(undefined)
  })

  test('needs no body', async () => {
    const started = await start()
    try {
      const { local_url, control_token } = started
      const post = (path: string, init: RequestInit) =>
        fetch(`${local_url}/dev/${path}`, { method: 'POST', ...bearer(control_token), ...init })
      await post('clock', {
        headers: { authorization: `Bearer ${control_token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ freeze: true }),
      })
      expect((await post('reset', {})).status).toBe(204)
      const clock: Json = await (await fetch(`${local_url}/dev/clock`, bearer(control_token))).json()
      expect(clock.frozen).toBe(false)
      expect((await post('mint', {})).status).toBe(415)
    } finally {
      await started.stop()
    }
  })

  test('restores counts and search', async () => {
    await using server = await startGatehouse()
    const { token } = await server.mint({ user: 'admin', scope: 'admin' })
    const admin = async (path: string): Promise<Json> =>
      (
        await fetch(
          `${server.url}/api/v1/admin${path}`,
          bearer((await server.mint({ user: 'admin', scope: 'admin' })).token),
        )
      ).json()
    expect(token).toBeString()
    const look = async () => ({
      organizations: (await admin('/organizations')).data.map(({ slug, user_count }: Json) => [
        slug,
        user_count,
      ]),
      roles: (await admin('/roles')).data.map(({ name, user_count }: Json) => [name, user_count]),
      total: (await admin('/users')).pagination.total,
      found: (await admin('/users?search=alice')).data.length,
    })
    const before = await look()
    await server.users.put({ username: 'alice-two', email: 'alice-two@example.com' })
    expect(await look()).not.toEqual(before)
    await server.reset()
    expect(await look()).toEqual(before)
  })

  test('can restore one organization and leave others', async () => {
    const worker = (slug: string) => ({
      username: 'tester',
      email: `tester@${slug}.example`,
      organization: slug,
    })
    await using server = await startGatehouse({
      seed: {
        organizations: [{ slug: 'worker-1' }, { slug: 'worker-2' }],
        users: [worker('worker-1'), worker('worker-2')],
        groups: ['worker-1', 'worker-2'].map(organization => ({
          name: 'testers',
          organization,
          roles: ['user'],
          members: ['tester'],
        })),
        clients: [
          {
            client_id: 'one',
            organization: 'worker-1',
            type: 'confidential',
            client_secret: 'dev-secret',
            grant_types: ['client_credentials'],
            scopes: ['read'],
          },
        ],
      },
    })
    for (const organization of ['worker-1', 'worker-2'])
      await server.users.put({ username: 'extra', email: 'extra@example.com', organization })
    const kept = await server.mint({
      user: 'tester',
      organization: 'worker-2',
      client_id: 'one',
      scope: 'openid',
    })
    await server.users.remove('tester', { organization: 'worker-1' })
    await server.reset({ organization: 'worker-1' })
    const names = async (organization: string) =>
      (await server.users.list({ organization })).map(({ username }) => username)
    expect(await names('worker-1')).toEqual(['tester'])
    expect(await names('worker-2')).toEqual(['tester', 'extra'])
    expect((await clientToken(server.url, 'one')).status).toBe(200)
    expect((await server.mint({ user: 'tester', organization: 'worker-1' })).claims.roles).toEqual(['user'])
    expect((await fetch(`${server.url}/oauth/userinfo`, bearer(kept.token))).status).toBe(200)
    await expect(server.reset({ organization: 'nowhere' })).rejects.toThrow(/does not exist/)
  })

  test('fills the rate limits, and ends the wait after wrong secrets', async () => {
    const settings = { client_registration: 'open' }
    await using server = await startGatehouse({ seed: { organizations: [{ slug: 'default', settings }] } })
    await server.clock.freeze()
    let registered = 0
    const register = async (): Promise<number> => {
      const body = JSON.stringify({
        redirect_uris: [`https://app-${++registered}.example/callback`],
        token_endpoint_auth_method: 'none',
      })
      const headers = { 'content-type': 'application/json' }
      return (await fetch(`${server.url}/oauth/register`, { method: 'POST', headers, body })).status
    }
    const guess = async (): Promise<number> => {
      const body = new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: 'dev-service',
        client_secret: 'wrong',
      })
      return (await fetch(`${server.url}/oauth/token`, { method: 'POST', body })).status
    }
    const exhaust = async (ask: () => Promise<number>): Promise<void> => {
      for (let call = 0; (await ask()) !== 429; call++) expect(call).toBeLessThan(100)
    }
    await exhaust(register)
    await server.reset({ organization: 'default' })
    expect(await register()).toBe(201)
    await exhaust(register)
    await exhaust(guess)
    await server.reset({ organization: 'default' })
    expect(await guess()).toBe(401)
    await exhaust(guess)
    await server.reset()
    expect([await register(), await guess()]).toEqual([201, 401])
  })

  test('removes an organization that was added later', async () => {
    await using server = await startGatehouse()
    await server.seed({
      organizations: [{ slug: 'later' }],
      users: [{ username: 'guest', email: 'guest@example.com', organization: 'later' }],
    })
    await server.reset({ organization: 'later' })
    await expect(server.users.list({ organization: 'later' })).rejects.toThrow(/does not exist/)
  })

  test('refuses to restore an organization whose client id another one has', async () => {
    const shop: SeedClient = { client_id: 'shop', type: 'public', grant_types: ['refresh_token'], scopes: [] }
    await using server = await startGatehouse({
      seed: {
        organizations: [{ slug: 'first' }, { slug: 'second' }],
        clients: [{ ...shop, organization: 'first' }],
      },
    })
    const admin = adminAt(server.url, DEV_ADMIN_SECRET)
    expect((await admin('DELETE', '/clients/shop')).status).toBe(204)
    await server.seed({ clients: [{ ...shop, organization: 'second' }] })
    const stored = async () => [await server.events.list(), (await admin('GET', '/clients')).body.data]
    const before = await stored()
    await expect(server.reset({ organization: 'first' })).rejects.toThrow(
      /409 .*has taken a client id .*Reset the whole server/,
    )
    expect(await stored()).toEqual(before)
    await server.reset()
    expect((await admin('GET', '/clients/shop')).body.organization_id).toBe(
      (await admin('GET', '/organizations?search=first')).body.data[0].id,
    )
  })

  test('restores users whose row numbers went to users of another organization meanwhile', async () => {
    const names = ['ann', 'ben', 'cid']
    await using server = await startGatehouse({
      seed: {
        organizations: [{ slug: 'first' }, { slug: 'second' }],
        users: names.map(username => ({
          username,
          email: `${username}@example.com`,
          organization: 'second',
        })),
      },
    })
    const listed = async (organization: string) =>
      (await server.users.list({ organization })).map(({ username, roles }) => [username, roles])
    const before = await listed('second')
    for (const user of ['ben', 'cid']) await server.users.remove(user, { organization: 'second' })
    await server.users.put({ username: 'dan', email: 'dan@example.com', organization: 'first' })
    await server.reset({ organization: 'second' })
    expect(await listed('second')).toEqual(before)
    expect(before).toEqual(names.map(name => [name, ['user']]))
    expect(await listed('first')).toEqual([['dan', ['user']]])
    const { body } = await adminAt(server.url, DEV_ADMIN_SECRET)('GET', '/users?role=user&order=asc')
    expect(body.data.map(({ username }: Json) => username)).toEqual(['dan', ...names])
  })

  test('ends the purges of what it restores', async () => {
    const mail = captureMail()
    const app = await startApp({}, { mail })
    const acme = await addOrganization(app, 'acme')
    const organization_id = acme.id
    const { body: editor } = await app.admin('POST', '/roles', {
      name: 'editor',
      organization_id,
      permissions: [],
    })
    const alice = await addUser(app, 'alice', { organization_id, roles: ['editor'] })
    const { client_id } = await addClient(app, 'shop', { organization_id })
    const { body: group } = await app.admin('POST', '/groups', { name: 'staff', organization_id })
    const look = async () => ({
      user: (await app.admin('GET', `/users/${alice.id}`)).body,
      client: (await app.admin('GET', `/clients/${client_id}`)).body,
      members: (await app.admin('GET', `/groups/${group.id}`)).body,
      events: (await app.admin('GET', `/events?organization_id=${organization_id}`)).body,
    })
    // A development server takes its snapshot soon after the call of `development`.
    const handle = development(app.context, app.fetch, {
      clock: devClock(),
      mail,
      token: 'control-token',
      client_id: 'web',
      remote: false,
      exposed: false,
      password: '',
    })
    const control = async (method: string, path: string, body?: object): Promise<number> => {
      const request = new Request(`http://localhost:8080/dev/${path}`, {
        method,
        headers: { authorization: 'Bearer control-token', 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      const loopback = { requestIP: () => ({ address: '127.0.0.1', port: 40_000, family: 'IPv4' }) }
      return (await handle(request, loopback as unknown as Server<unknown>)).status
    }
    expect(await control('GET', 'clock')).toBe(200)
    const before = await look()
    for (const paths of [
      [`/roles/${editor.id}`, `/clients/${client_id}`, `/groups/${group.id}`, `/users/${alice.id}`],
      [`/organizations/${organization_id}`],
    ]) {
      for (const path of paths) expect((await app.admin('DELETE', path)).status).toBe(204)
      expect(await control('POST', 'reset', { organization: 'acme' })).toBe(204)
      await purge(app.context)
      expect(await look()).toEqual(before)
    }
    // The reset runs between two steps of the purge. The purge has read which objects were deleted, but has
    // not removed their rows yet.
    expect((await app.admin('DELETE', `/roles/${editor.id}`)).status).toBe(204)
    const { store } = app.context
    const read: typeof store.read = async fn => {
      const found = await store.read(fn)
      await control('POST', 'reset', { organization: 'acme' })
      return found
    }
    await purge({ ...app.context, store: { ...store, read } })
    expect(await look()).toEqual(before)
  })
})
