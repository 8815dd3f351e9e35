import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { callerOf } from '#test/support/callers.ts'
import { addOrganization } from '#test/support/people.ts'

test('EVT-26 a setting of more than 4 KiB is in events by its size and hash', async () => {
  const app = await startApp()
  const { id } = await addOrganization(app, 'acme')
  const token = await callerOf(app, id, ['organizations:update', 'events:read'])
  const put = async (settings: object) =>
    (await app.admin('PUT', `/organizations/${id}`, { settings }, token)).body.settings
  const blocked_clients = Array.from({ length: 1000 }, (_, i) => `https://${i}.example/`.padEnd(512, 'x'))
  await put({ blocked_clients })
  expect(await put({ theme: 'ember' })).toEqual({ blocked_clients, theme: 'ember' })

  const json = JSON.stringify(blocked_clients)
  const shown = { bytes: json.length, sha256: new Bun.CryptoHasher('sha256').update(json).digest('hex') }
  const list = await app.admin('GET', '/events?type=organization.updated', undefined, token)
  expect(list.body.data.map(({ metadata }: { metadata: unknown }) => metadata)).toEqual([
    { fields: ['settings'], settings: { blocked_clients: shown, theme: 'ember' } },
    { fields: ['settings'], settings: { blocked_clients: shown } },
  ])
})
