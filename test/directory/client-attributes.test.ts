import { expect, test } from 'bun:test'
import { exportSeed } from '#src/seed/export.ts'
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
})
