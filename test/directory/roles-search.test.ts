/** Tests the search in the list of roles, on both engines. */
import { expect, test } from 'bun:test'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create, refused } from '#test/support/callers.ts'
import { addOrganization } from '#test/support/people.ts'

const permissions = ['users:read']

const finder =
  (app: TestApp) =>
  async (search: string, more = ''): Promise<string[]> => {
    const { body } = await app.admin('GET', `/roles?search=${encodeURIComponent(search)}${more}`)
    expect(body.pagination.total).toBe(body.data.length)
    return body.data.map(({ name }: Json) => name)
  }

test('ROL-11 roles are found by part of name, in either case of each letter', async () => {
  const app = await startApp()
  for (const name of ['Ärzte [50%]', 'Łódź_Στάσης', 'a^b.c*d?e\\f-g'])
    await create(app, '/roles', { name, permissions })
  const found = finder(app)
  for (const term of ['ärzte', 'ÄRZTE', 'e [50%]', '[', ']', '%'])
    expect([term, await found(term)]).toEqual([term, ['Ärzte [50%]']])
  for (const term of ['łÓDŹ', 'ΣΤΆ', 'ΣΗΣ', 'σησ', '_'])
    expect([term, await found(term)]).toEqual([term, ['Łódź_Στάσης']])
  for (const term of ['^', '.', '*', '?', '\\', 'A^B.C*D?E\\F-G'])
    expect([term, await found(term)]).toEqual([term, ['a^b.c*d?e\\f-g']])
  for (const term of ['nothing', "'", '"', '[a-z]', 'a.b', 'Full access', 'role_admin'])
    expect([term, await found(term)]).toEqual([term, []])
  expect((await found('')).length).toBe(5)
  expect(refused(await app.admin('GET', `/roles?search=${'x'.repeat(257)}`))).toEqual(['search'])
})

test('ROL-11 a search is limited to an organization, and a tenant finds its own roles only', async () => {
  const app = await startApp()
  const { id } = await addOrganization(app, 'acme')
  await create(app, '/roles', { name: 'editor', permissions })
  await create(app, '/roles', { name: 'Sub-Editor', permissions, organization_id: id })
  expect(await finder(app)('editor')).toEqual(['Sub-Editor', 'editor'])
  expect(await finder(app)('editor', '&organization_id=org_default')).toEqual(['editor'])
  expect(await finder(app)('editor', `&organization_id=${id}`)).toEqual(['Sub-Editor'])
  const token = await callerOf(app, id, ['roles:read'])
  const { body } = await app.admin('GET', '/roles?search=editor', undefined, token)
  expect(body.data.map(({ name }: Json) => name)).toEqual(['Sub-Editor'])
})

test('ROL-11 a search continues on the next page, and only with the same term', async () => {
  const app = await startApp()
  for (const name of ['shop-one', 'shop-two', 'shop-three'])
    await create(app, '/roles', { name, permissions })
  const first = (await app.admin('GET', '/roles?search=SHOP&limit=2')).body
  expect(first.pagination).toMatchObject({ total: 3, has_more: true })
  const cursor = encodeURIComponent(first.pagination.next_cursor)
  const rest = (await app.admin('GET', `/roles?search=SHOP&limit=2&cursor=${cursor}`)).body
  expect([...first.data, ...rest.data].map(({ name }: Json) => name)).toEqual([
    'shop-three',
    'shop-two',
    'shop-one',
  ])
  expect((await app.admin('GET', `/roles?search=other&limit=2&cursor=${cursor}`)).status).toBe(400)
})
