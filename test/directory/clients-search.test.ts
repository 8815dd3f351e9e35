/** Tests the search in the list of clients, on both engines. */
import { expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { type Json, startApp } from '#test/support/app.ts'
import { refused } from '#test/support/callers.ts'
import { addClient, addOrganization } from '#test/support/people.ts'
import { hearStatements } from '#test/support/statements.ts'
import { isPostgres } from '#test/support/store.ts'

test('CLI-12 the list is searched by part of name or client_id, in either case of each letter', async () => {
  const app = await startApp()
  const { id } = await addOrganization(app, 'acme')
  const names: [client_id: string, name: string][] = [
    ['portal', 'Ärzteportal [50%]'],
    ['field-app', 'Łódź_Στάση'],
    ['board', 'a^b.c*d?e\\f-g'],
  ]
  for (const [client_id, name] of names) await addClient(app, client_id, { name })
  const found = async (search: string, more = '') => {
    const { body } = await app.admin('GET', `/clients?search=${encodeURIComponent(search)}${more}`)
    expect(body.pagination.total).toBe(body.data.length)
    return body.data.map(({ client_id }: Json) => client_id)
  }
  for (const term of ['ärzte', 'ÄRZTE', 'PORTAL', 'l [50%]', '[', ']', '%'])
    expect([term, await found(term)]).toEqual([term, ['portal']])
  for (const term of ['łÓDŹ', 'ΣΤΆ', 'Field-A', '_'])
    expect([term, await found(term)]).toEqual([term, ['field-app']])
  for (const term of ['^', '.', '*', '?', '\\', 'A^B.C*D?E\\F-G'])
    expect([term, await found(term)]).toEqual([term, ['board']])
  for (const term of ['nothing', "'", '"', '[a-z]', 'p.rtal', 'p*l']) expect(await found(term)).toEqual([])
  expect(await found('portal', '&type=public')).toEqual([])
  expect(await found('portal', `&organization_id=${id}`)).toEqual([])
  expect((await found('')).length).toBeGreaterThan(names.length)
  expect(refused(await app.admin('GET', `/clients?search=${'x'.repeat(257)}`))).toEqual(['search'])
})

test('CLI-12 a search continues on the next page, and only with the same term', async () => {
  const app = await startApp()
  for (const name of ['one', 'two', 'three']) await addClient(app, name, { name: `Shop ${name}` })
  const first = (await app.admin('GET', '/clients?search=shop&limit=2')).body
  expect(first.pagination).toMatchObject({ total: 3, has_more: true })
  const cursor = encodeURIComponent(first.pagination.next_cursor)
  const rest = (await app.admin('GET', `/clients?search=shop&limit=2&cursor=${cursor}`)).body
  const names = [...first.data, ...rest.data].map(({ name }: Json) => name)
  expect(names.sort()).toEqual(['Shop one', 'Shop three', 'Shop two'])
  expect((await app.admin('GET', `/clients?search=other&limit=2&cursor=${cursor}`)).status).toBe(400)
})

test('CLI-12 a term in ASCII is found without a pattern, which would be tried at each position', async () => {
  const app = await startApp()
  await addClient(app, 'board', { name: `The ${'Y'.repeat(100)}` })
  const heard: string[] = []
  const stop = hearStatements(text => heard.push(text))
  const found = async (search: string) =>
    (await app.admin('GET', `/clients?search=${search}`)).body.data.map(({ client_id }: Json) => client_id)
  expect(await found('y'.repeat(100))).toEqual(['board'])
  expect(await found(`${'y'.repeat(100)}z`)).toEqual([])
  stop()
  expect(heard.filter(text => / GLOB /.test(text))).toEqual([])
})

test('CLI-12 a search in thousands of clients finds the same in slices, between which other requests run', async () => {
  const heard: string[] = []
  const stop = hearStatements(text => heard.push(text))
  const app = await startApp()
  await addClient(app, 'first', { name: 'Needle' })
  await app.context.store.write(async tx => {
    const { clients } = tx.tables
    const [model] = await tx.select().from(clients).where(eq(clients.client_id, 'first'))
    if (!model) return
    const rows = Array.from({ length: 2_400 }, (_, i) => {
      const name = i % 1_000 === 500 ? `A needle ${i}` : `Straw ${i}`
      return { ...model, client_id: `client-${i}`, name, created_at: model.created_at + 1 + (i >> 1) }
    })
    for (let start = 0; start < rows.length; start += 300)
      await tx.insert(clients).values(rows.slice(start, start + 300))
  })
  const found = async (query: string, cursor = ''): Promise<string[]> => {
    const { body } = await app.admin('GET', `/clients?search=needle&${query}${cursor}`)
    const { total, has_more, next_cursor } = body.pagination
    expect(total).toBe(3)
    const ids = body.data.map(({ client_id }: Json) => client_id)
    return has_more ? [...ids, ...(await found(query, `&cursor=${encodeURIComponent(next_cursor)}`))] : ids
  }
  const ids = ['first', 'client-500', 'client-1500']
  for (const limit of [1, 2, 3, 20]) {
    expect(await found(`order=asc&limit=${limit}`)).toEqual(ids)
    expect(await found(`limit=${limit}`)).toEqual(ids.toReversed())
  }
  heard.length = 0
  await found('limit=20')
  stop()
  expect(heard.filter(text => / ~ |instr\(/.test(text))).toHaveLength(isPostgres ? 2 : 6)
})
