import { expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '#src/storage/open.ts'
import { startApp } from '#test/support/app.ts'
import { until } from '#test/support/until.ts'

test('EVT-18 a backup is begun once at a time, recorded, listed and never sent', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await (await openStore({ data_dir })).close()
  const app = await startApp({ data_dir })
  const list = async () => (await app.admin('GET', '/backups')).body
  expect(await list()).toEqual({ running: false, data: [] })
  await app.events()
  const { status, body } = await app.admin('POST', '/backups')
  expect([status, body]).toEqual([202, { running: true, data: [] }])
  expect((await app.admin('POST', '/backups')).status).toBe(409)
  expect(await app.events()).toEqual([
    {
      type: 'admin.settings_changed',
      actor_id: 'gatehouse-admin',
      target_id: 'backups',
      target_type: 'settings',
      organization_id: 'org_default',
      metadata: { action: 'started' },
    },
  ])
  while ((await list()).running) await new Promise(setImmediate)
  const name = 'gatehouse-20260115T120000Z.db'
  expect(await list()).toEqual({
    running: false,
    data: [{ name, bytes: expect.any(Number), created_at: '2026-01-15T12:00:00.000Z' }],
  })
  expect((await app.admin('GET', `/backups/${name}`)).status).toBe(404)
}, 20_000)

test('EVT-19 signing keys are listed and rotated without private parts, and the caller is recorded', async () => {
  const app = await startApp()
  const list = async () => (await app.admin('GET', '/keys')).body.data
  // Waits for the RSA key, which a new instance makes in the background.
  await until(async () => (await list()).length === 2)
  const [first, second] = await list()
  expect(second).toMatchObject({ alg: 'RS256', state: 'signing' })
  expect(first).toEqual({
    kid: expect.stringMatching(/^key_/),
    alg: 'ES256',
    state: 'signing',
    signs_from: '2026-01-15T12:00:00.000Z',
    published_until: null,
  })
  await app.events()
  const { status, body } = await app.admin('POST', '/keys/rotate')
  expect(status).toBe(200)
  const [old, oldRsa, ...next] = body.data
  next.sort((a: { alg: string }, b: { alg: string }) => a.alg.localeCompare(b.alg))
  expect(old).toMatchObject({ kid: first.kid, state: 'signing', published_until: '2026-01-16T12:25:00.000Z' })
  expect(oldRsa).toMatchObject({ kid: second.kid, state: 'signing' })
  const signs_from = '2026-01-15T12:15:00.000Z'
  expect(next).toEqual([
    { kid: expect.any(String), alg: 'ES256', state: 'next', signs_from, published_until: null },
    { kid: expect.any(String), alg: 'RS256', state: 'next', signs_from, published_until: null },
  ])
  expect(await list()).toEqual(body.data)
  expect(await app.events()).toMatchObject([
    {
      type: 'admin.settings_changed',
      actor_id: 'gatehouse-admin',
      target_id: 'signing_keys',
      metadata: { action: 'rotated' },
    },
  ])
  await app.admin('POST', '/keys/rotate')
  expect(await list()).toHaveLength(4)
})
