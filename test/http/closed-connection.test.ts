/**
 * Tests a client that closes its connection before the answer. The runtime has no address for a request whose
 * connection is closed.
 */
import { expect, test } from 'bun:test'
import type { Server } from 'bun'
import { ADMIN_SECRET, type Json, startApp } from '#test/support/app.ts'
import { developmentOf } from '#test/support/development.ts'

type Fetch = (request: Request, server: Server<unknown>) => Response | Promise<Response>

const app = await startApp()
const token = await app.tokenOf('gatehouse-admin', ADMIN_SECRET)

/** Calls `fetch` over a connection that is closed as soon as `fetch` has returned, or before. */
const hangUp = async (fetch: Fetch, request: Request, isOpen = true): Promise<Response> => {
  const requestIP = () => (isOpen ? { address: '192.0.2.7', port: 40_000, family: 'IPv4' as const } : null)
  const answer = fetch(request, { requestIP } as unknown as Server<unknown>)
  isOpen = false
  return answer
}
const creation = (name: string) =>
  new Request('http://localhost:8080/api/v1/admin/groups', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  })
const find = async (name: string) =>
  (await app.admin('GET', '/groups')).body.data.filter((group: Json) => group.name === name)
const addressesOf = async (name: string) => {
  const [group] = await find(name)
  const { data } = (await app.admin('GET', `/events?target_id=${group.id}`)).body
  return data.map(({ type, ip_address }: Json) => [type, ip_address])
}

test('EVT-05 an event shows the address of a client that closed its connection during the request', async () => {
  expect((await hangUp(app.fetch, creation('closing'))).status).toBe(201)
  expect(await addressesOf('closing')).toEqual([['group.created', '192.0.2.7']])
})

test('EVT-05 a request whose connection has no address any more is refused', async () => {
  await app.events()
  const answer = await hangUp(app.fetch, creation('reset'), false)
  expect([answer.status, ((await answer.json()) as Json).error]).toEqual([400, 'invalid_request'])
  expect(await app.events()).toEqual([])
  expect(await find('reset')).toEqual([])
})

test('EVT-05 the same holds for the requests that development mode passes on', async () => {
  const handle = developmentOf(app.context, app.fetch)
  expect((await hangUp(handle, creation('delayed'))).status).toBe(201)
  expect(await addressesOf('delayed')).toEqual([['group.created', '192.0.2.7']])
  expect((await hangUp(handle, creation('absent'), false)).status).toBe(400)
  expect(await find('absent')).toEqual([])
})
