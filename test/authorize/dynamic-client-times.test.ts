/** Tests which times of a dynamic client an administrator of a tenant sees. */
import { expect, test } from 'bun:test'
import { DAY } from '#src/lib/duration.ts'
import { iso } from '#src/lib/text.ts'
import type { Json } from '#test/support/app.ts'
import { callerOf, create, listAll } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { documentWorld, tools, WEB } from './document-world.ts'

const { app, configure, publish, grant, logIn } = await documentWorld()
const acme = await addOrganization(app, 'acme')
const open = { client_metadata_documents: 'any', client_registration: 'open' }
await configure(open)
await configure(open, 'acme')
await addUser(app, 'zoe')
await addUser(app, 'amy', { organization_id: acme.id })
const resource = 'https://acme.example/mcp'
await create(app, '/apis', { ...tools, identifier: resource, organization_id: acme.id })

const now = () => iso(app.clock.now())
const register = async (client_name: string, token?: string): Promise<Json> => {
  const body = JSON.stringify({ client_name, redirect_uris: [WEB], token_endpoint_auth_method: 'none' })
  const headers = {
    'content-type': 'application/json',
    ...(token && { authorization: `Bearer ${token}` }),
  }
  return (await app.call('/oauth/register', { method: 'POST', headers, body })).json()
}

test('DCR-13 M-11 a tenant does not see when other organizations use a dynamic client', async () => {
  const document = publish({ client_name: 'Document' })
  await grant(document)
  const shared = await register('Shared')
  const first = now()
  app.clock.advance(DAY)
  const { token } = await create(app, '/initial-access-tokens', { organization_id: acme.id })
  for (const client of [document, shared, await register('Own', token)])
    await logIn(client, { resource }, 'amy')
  const second = now()
  const times = async (by?: string) =>
    Object.fromEntries(
      (await listAll(app, '/dynamic-clients', by)).map((client: Json) => [
        client.name,
        [client.created_at, client.changed_at, client.last_used_at],
      ]),
    )
  const seen = {
    Document: [null, null, null],
    Shared: [null, null, null],
    Own: [second, null, second],
  }
  expect(await times(await callerOf(app, acme.id, ['clients:read']))).toEqual(seen)
  expect(await times()).toEqual({ ...seen, Document: [first, null, second], Shared: [first, null, second] })
  app.clock.advance(30 * DAY)
  publish({ client_name: 'Document', redirect_uris: [WEB, `${WEB}/2`] }, {}, document.client_id)
  await logIn(document, {}, 'zoe')
  expect(await times(await callerOf(app, acme.id, ['clients:read']))).toEqual(seen)
  expect((await times()).Document).toEqual([first, now(), now()])
})
