import type { Gatehouse, GatehouseOptions } from '#src/testing/types.ts'

const same = (actual: unknown, expected: unknown): void => {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (a !== b) throw new Error(`expected ${b}, not ${a}`)
}

/** Makes one call of each kind to a server that has its own certificate. */
export const checkTls = async (
  startGatehouse: (options: GatehouseOptions) => Promise<Gatehouse>,
): Promise<void> => {
  const server = await startGatehouse({ tls: true })
  same(server.url.startsWith('https:'), true)
  same((await server.mint({ user: 'alice' })).claims.iss, server.url)
  await server.users.put({ username: 'dave', email: 'dave@example.com' })
  await server.reset()
  same(
    (await server.users.list()).map(({ username }) => username),
    ['alice', 'admin'],
  )
  let refusal = ''
  await server.users.remove('nobody').catch(({ message }) => {
    refusal = message
  })
  same(refusal, 'DELETE /dev/users?user=nobody: 404 The user does not exist.')
  const stream = server.events.stream()
  same(typeof (await stream.next()).value.type, 'string')
  await stream.return(undefined)
  await server.close()
}

/** Calls every function of the testing package once, without a test runner, in Node, Deno and Bun. */
export const checkControls = async (
  startGatehouse: (options: GatehouseOptions) => Promise<Gatehouse>,
): Promise<void> => {
  const server = await startGatehouse({
    seed: {
      users: [{ username: 'carol', email: 'carol@example.com' }],
      clients: [
        {
          client_id: 'shop',
          type: 'confidential',
          client_secret: 'shop-secret',
          grant_types: ['client_credentials'],
          scopes: ['read'],
        },
      ],
    },
  })
  same([server.client_id, server.client_secret, server.password], ['shop', 'shop-secret', 'Gatehouse-dev-1'])
  const { token, claims } = await server.mint({ user: 'carol', claims: { tier: 'gold' } })
  same([claims.aud, claims.tier, claims.preferred_username], ['shop', 'gold', 'carol'])
  const userinfo = await fetch(`${server.url}/api/v1/admin/users`, {
    headers: { authorization: `Bearer ${token}` },
  })
  same([userinfo.status, await userinfo.text().then(text => text.length > 0)], [403, true])

  // The server reads XML in a separate process in every runtime.
  same((await fetch(`${server.url}/dev/saml/sso?SAMLRequest=AAAA`)).status, 400)

  await server.users.put({ username: 'dave', email: 'dave@example.com' })
  await server.seed({ roles: [{ name: 'editor', permissions: [] }] })
  same((await server.users.list()).length, 2)
  await server.users.remove('dave')

  await server.clock.freeze()
  await server.clock.set('2030-01-01T00:00:00Z')
  await server.clock.advance(60_000)
  same(await server.clock.now(), new Date('2030-01-01T00:01:00Z'))
  await server.clock.reset()

  const published = await server.keys.publish('ES256')
  const next = published.find(({ state }) => state === 'next')?.kid ?? ''
  await server.keys.activate(next)
  await server.keys.revoke(next)
  same(
    (await server.keys.list()).some(({ kid }) => kid === next),
    false,
  )

  await server.faults.add({ endpoint: 'token', status: 503 })
  const ask = async () => {
    const answer = await fetch(`${server.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: 'shop',
        client_secret: 'shop-secret',
      }),
    })
    await answer.text()
    return answer.status
  }
  same(await ask(), 503)
  await server.faults.clear()
  same(await ask(), 200)
  same((await server.requests({ path: '/oauth/token' })).length, 2)
  same(
    (await server.tokens({ client_id: 'shop' })).map(({ grant_type }) => grant_type),
    ['mint', 'client_credentials'],
  )

  const [{ seq = 0 } = {}] = (await server.events.list({ type: 'token.issued' })).slice(-1)
  const stream = server.events.stream({ after: seq - 1 })
  same((await stream.next()).value.type, 'token.issued')
  await stream.return(undefined)

  await server.reset()
  same(await server.requests(), [])
  await server.close()
}
