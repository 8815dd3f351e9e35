import { describe, expect, test } from 'bun:test'
import { startGatehouse } from '#src/testing/index.ts'
import { start } from '#src/testing/start.ts'
import type { Json } from '#test/support/app.ts'

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
    expect((await server.clock.now()).getFullYear()).toBeLessThan(2030)
    expect(await server.requests()).toEqual([])
    expect(await server.keys.list()).toEqual(keys)
    expect((await fetch(`${server.url}/oauth/userinfo`, bearer(token))).status).toBe(401)
    expect((await clientToken(server.url)).status).toBe(200)
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
        groups: [{ name: 'testers', organization: 'worker-1', roles: ['user'], members: ['tester'] }],
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

  test('removes an organization that was added later', async () => {
    await using server = await startGatehouse()
    await server.seed({
      organizations: [{ slug: 'later' }],
      users: [{ username: 'guest', email: 'guest@example.com', organization: 'later' }],
    })
    await server.reset({ organization: 'later' })
    await expect(server.users.list({ organization: 'later' })).rejects.toThrow(/does not exist/)
  })
})
