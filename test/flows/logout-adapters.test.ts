/** Tests that each adapter of the SDK receives the logout tokens of a server over a socket. */
import { expect, test } from 'bun:test'
import { createLogoutReceiver, type LogoutClaims } from '#src/resource-server/logout.ts'
import { deliverLogouts } from '#src/sessions/logout-delivery.ts'
import { sources } from '#test/resource-server/sources.ts'
import { targets } from '#test/resource-server/targets.ts'
import { BASE, startApp } from '#test/support/app.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { claimsOf, grantTokens } from '#test/support/tokens.ts'

test.each(targets)('SDK-30 $name ends the session that the server has ended', async target => {
  let send: (request: Request) => Promise<Response>
  const tokens: string[] = []
  await using socket = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request => {
      tokens.push(new URLSearchParams(await request.clone().text()).get('logout_token') ?? '')
      return send(new Request('http://localhost/logout', request))
    },
  })
  const app = await startApp({ outbound_allow: [`127.0.0.1:${socket.port}`] })
  const ended: LogoutClaims[] = []
  const refused: string[] = []
  const receiver = createLogoutReceiver({
    issuer: BASE,
    audience: 'shop',
    fetch: input => app.call(String(input)),
    now: app.clock.now,
    onLogout: claims => void ended.push(claims),
    onRefused: ({ code }) => void refused.push(code),
  })
  const mounted = await target.mountLogout(sources, receiver)
  send = mounted.send
  const shop = await addClient(app, 'shop', { backchannel_logout_uri: `http://127.0.0.1:${socket.port}/` })
  const user = await addUser(app, 'ada')
  const { sid, sub } = claimsOf((await grantTokens(app, shop, user)).id_token)
  await app.admin('DELETE', `/users/${user.id}/sessions`)
  await deliverLogouts(app.context)
  expect(ended.map(claims => [claims.sid, claims.sub])).toEqual([[sid, sub]])
  const statuses = async () =>
    (await app.admin('GET', '/clients/shop/logouts')).body.data.map(
      ({ status }: { status: string }) => status,
    )
  expect(await statuses()).toEqual(['delivered'])
  const body = new URLSearchParams({ logout_token: tokens[0] ?? '' }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const again = await mounted.send(new Request('http://localhost/logout', { method: 'POST', headers, body }))
  expect([again.status, refused]).toEqual([400, ['token_replayed']])
  await mounted.close()
})
