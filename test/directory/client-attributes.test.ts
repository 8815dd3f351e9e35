import { expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed } from '#src/seed/export.ts'
import { readSeed } from '#src/seed/read.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { refused } from '#test/support/callers.ts'
import { addClient } from '#test/support/people.ts'

const app = await startApp()

test('ATT-14 a client has attributes, which a PUT replaces and an export has', async () => {
  const attributes = { plan: 'gold', limits: { users: 5 } }
  const { attributes: none } = await addClient(app, 'plain')
  const client = await addClient(app, 'web', { attributes })
  expect([none, client.attributes]).toEqual([{}, attributes])
  await app.events()
  const { body } = await app.admin('PUT', '/clients/web', { attributes: { plan: 'silver' } })
  expect([body.attributes, (await app.events()).map(({ metadata }) => metadata)]).toEqual([
    { plan: 'silver' },
    [{ fields: ['attributes'] }],
  ])
  const { clients } = await exportSeed(app.context, { secrets: false })
  expect(clients?.map((row: Json) => [row.client_id, row.attributes])).toContainEqual([
    'web',
    { plan: 'silver' },
  ])
  const keys = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`k${i}`, 1]))
  const number = { a: [{ b: 9007199254740992 }] }
  for (const wrong of [
    'x',
    [],
    keys,
    JSON.parse('{"__proto__":{}}'),
    { a: 'x'.repeat(65_536) },
    { a: '\0' },
    number,
  ])
    expect(refused(await app.admin('PUT', '/clients/web', { attributes: wrong }))).toEqual(['attributes'])
  expect((await app.admin('GET', '/clients/web')).body.attributes).toEqual({ plan: 'silver' })
  const input = { client_id: 'new', name: 'New', type: 'public', attributes: number }
  expect(refused(await app.admin('POST', '/clients', input))).toContain('attributes')
})

test('ATT-14 a stored number that has lost digits may be sent back, and an export be applied again', async () => {
  const old = await addClient(app, 'old')
  const attributes = { a: [{ b: 1e20 }] }
  await app.context.store.write(async tx => {
    const { clients } = tx.tables
    await tx.update(clients).set({ attributes }).where(eq(clients.client_id, old.client_id))
  })
  await app.events()
  const { body } = await app.admin('GET', '/clients/old')
  const { secret: _, ...fields } = { ...body, name: 'New' }
  expect((await app.admin('PUT', '/clients/old', fields)).body.attributes).toEqual(attributes)
  expect((await app.events()).map(({ metadata }) => metadata)).toEqual([{ fields: ['name'] }])
  const more = { attributes: { ...attributes, c: 1e16 } }
  expect(refused(await app.admin('PUT', '/clients/old', more))).toEqual(['attributes'])
  const exported = (await exportSeed(app.context, { secrets: false })).clients?.find(
    ({ client_id }) => client_id === 'old',
  )
  expect(exported?.attributes).toEqual(attributes)
  const changed = readSeed({ clients: [{ ...exported, description: 'New' }] })
  expect(await applySeed(app.context, changed)).toHaveLength(1)
  expect((await app.events()).map(({ metadata }) => metadata)).toEqual([{ fields: ['description'] }])
  const other = (await startApp()).context
  const copied = readSeed({ clients: [{ ...exported, client_secret: 'x'.repeat(43) }] })
  await expect(applySeed(other, copied)).rejects.toThrow('may lose digits')
})
