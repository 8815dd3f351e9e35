/** Tests GET /dynamic-clients. */
import { beforeAll, expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import type { Json } from '#test/support/app.ts'
import { callerOf, create, listAll } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { documentWorld, tools, WEB } from './document-world.ts'

const { app, configure, publish, grant, logIn } = await documentWorld()
const acme = await addOrganization(app, 'acme')
const token = await callerOf(app, acme.id, ['admin'])
const open = { client_metadata_documents: 'any', client_registration: 'open' }
await configure(open)
await configure(open, 'acme')
await addUser(app, 'amy', { organization_id: acme.id })
const resource = 'https://acme.example/mcp'
await create(app, '/apis', { ...tools, identifier: resource, organization_id: acme.id })

const register = async (client_name: string): Promise<Json> => {
  app.clock.advance(MINUTE)
  const body = JSON.stringify({ client_name, redirect_uris: [WEB], token_endpoint_auth_method: 'none' })
  const headers = { 'content-type': 'application/json' }
  return (await app.call('/oauth/register', { method: 'POST', headers, body })).json()
}
const document = publish({ client_name: 'Document' })
beforeAll(async () => {
  await grant(document)
  await logIn(await register('Ours'))
  await logIn(await register('Theirs'), { resource }, 'amy')
  await register('Unused')
})

const names = async (query = '', by?: string) =>
  (await listAll(app, `/dynamic-clients${query}`, by)).map(({ name }: Json) => name)

test('DCR-13 administrators list the clients that their people allow, by source', async () => {
  expect(await names()).toEqual(['Unused', 'Theirs', 'Ours', 'Document'])
  expect(await names('?order=asc')).toEqual(['Document', 'Ours', 'Theirs', 'Unused'])
  expect(await names('?source=document')).toEqual(['Document'])
  expect(await names('?source=registration&organization_id=org_default')).toEqual(['Ours'])
  expect(await names('', token)).toEqual(['Theirs'])
  expect(await names('?organization_id=org_default', token)).toEqual([])
  expect((await app.admin('GET', '/dynamic-clients?source=other')).status).toBe(422)
  const { body } = await app.admin('GET', '/dynamic-clients?source=document')
  expect(body).toEqual({
    data: [
      {
        client_id: document.client_id,
        organization_id: null,
        source: 'document',
        name: 'Document',
        redirect_uris: [WEB],
        created_at: expect.any(String),
        changed_at: null,
        last_used_at: expect.any(String),
      },
    ],
    pagination: { total: 1, limit: 20, has_more: false },
  })
})

test('DCR-13 administrators end the sessions of a dynamic client whose id is a URL', async () => {
  const query = `?client_id=${encodeURIComponent(document.client_id)}`
  const active = async () => (await app.admin('GET', `/sessions${query}`)).body.pagination.total
  expect(await active()).toBe(1)
  expect((await app.admin('DELETE', `/sessions${query}`)).status).toBe(200)
  expect(await active()).toBe(0)
})
