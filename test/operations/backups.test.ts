import { expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { openCore } from '#src/operations/core.ts'
import { openStore } from '#src/storage/open.ts'
import { adminCall } from '#test/support/admin-calls.ts'
import { ADMIN_SECRET, openApp, startApp } from '#test/support/app.ts'
import { EXECUTABLE, serveExecutable } from '#test/support/executable.ts'
import { freshStore, isPostgres, openBeside } from '#test/support/store.ts'
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
}, 60_000)

test('of two calls at once one begins a backup, and only this one is recorded', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await (await openStore({ data_dir })).close()
  const app = await startApp({ data_dir })
  await app.admin('GET', '/backups')
  await app.events()
  const answers = await Promise.all([app.admin('POST', '/backups'), app.admin('POST', '/backups')])
  expect(answers.map(({ status }) => status).sort()).toEqual([202, 409])
  await until(async () => !(await app.admin('GET', '/backups')).body.running)
  expect(readdirSync(join(data_dir, 'backups'))).toEqual(['gatehouse-20260115T120000Z.db'])
  expect(await app.events()).toMatchObject([{ target_id: 'backups', metadata: { action: 'started' } }])
}, 60_000)

test('a backup whose folder cannot be made is refused and not recorded', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await (await openStore({ data_dir })).close()
  const app = await startApp({ data_dir })
  symlinkSync(join(data_dir, 'missing'), join(data_dir, 'backups'))
  await app.admin('GET', '/backups')
  await app.events()
  const { status, body } = await app.admin('POST', '/backups')
  expect([status, body.error]).toEqual([409, 'conflict'])
  expect(body.error_description).toStartWith('The folder of the backups cannot be used: EEXIST')
  expect(readdirSync(data_dir)).not.toContain('missing')
  expect(await app.events()).toEqual([])
})

test('a backup whose folder cannot be written to is refused and not recorded', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const folder = join(data_dir, 'backups')
  mkdirSync(folder)
  // Root may write to every folder. The server therefore runs as another user.
  const program = join(data_dir, 'as-other-user')
  const other = process.getuid?.() === 0 ? 'setpriv --reuid=65534 --regid=65534 --clear-groups' : ''
  writeFileSync(program, `#!/bin/sh\nexec ${other} '${EXECUTABLE}' "$@"\n`, { mode: 0o755 })
  if (other) for (const path of [data_dir, folder]) chownSync(path, 65_534, 65_534)
  chmodSync(folder, 0o500)
  await using server = await serveExecutable({}, data_dir, program)
  const { status, body } = await server.admin('POST', '/backups')
  expect([status, body.error]).toEqual([409, 'conflict'])
  expect(body.error_description).toStartWith('The folder of the backups cannot be used: EACCES')
  const events = await server.admin('GET', '/events')
  expect(readdirSync(folder)).toEqual([])
  expect(events.body.data.map(({ type }: { type: string }) => type)).toEqual(['token.issued'])
}, 30_000)

test('a backup removes files that no process writes to, and no other', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await (await openStore({ data_dir })).close()
  const app = await startApp({ data_dir })
  const folder = join(data_dir, 'backups')
  mkdirSync(folder)
  const partial = (second: string, pid: number): string => {
    const name = `gatehouse-20260115T1159${second}Z.db.partial-${pid}`
    writeFileSync(join(folder, name), '')
    return name
  }
  const ended = Bun.spawn(['true'])
  await ended.exited
  const live = partial('00', process.pid)
  partial('01', ended.pid)
  // An earlier process with the same process id left this file before this server started.
  utimesSync(join(folder, partial('02', process.pid)), 1, 1)
  expect((await app.admin('GET', '/backups')).body).toEqual({ running: true, data: [] })
  expect((await app.admin('POST', '/backups')).status).toBe(202)
  const made = join(folder, 'gatehouse-20260115T120000Z.db')
  await until(async () => existsSync(made))
  expect(readdirSync(folder).sort()).toEqual([live, 'gatehouse-20260115T120000Z.db'])
}, 60_000)

if (isPostgres)
  test('EVT-18 a backup of another worker is shown, is not begun again, and keeps its file', async () => {
    const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
    const { path, ...store } = await freshStore()
    const one = await startApp({ data_dir, database_url: path }, { store })
    const beside = await openBeside(path)
    const serverOn = (folder: string) =>
      openApp(
        openCore({ ...one.context, store: beside, config: { ...one.context.config, data_dir: folder } }),
      )
    const other = await serverOn(data_dir)
    const elsewhere = await serverOn(mkdtempSync(join(tmpdir(), 'gatehouse-')))
    const token = await one.tokenOf('gatehouse-admin', ADMIN_SECRET)
    const callOf = (server: typeof other) => async (path: string, init?: RequestInit) =>
      server.fetch(new Request(new URL(path, one.context.config.url), init), {
        requestIP: () => ({ address: '127.0.0.1', port: 40_000, family: 'IPv4' }),
      })
    const at = (method: string, server = other) => adminCall(callOf(server), token, method, '/backups')
    const folder = join(data_dir, 'backups')
    // The first call also requests a token, which records an event.
    expect((await one.admin('GET', '/backups')).body).toEqual({ running: false, data: [] })
    await one.events()
    const sql = new SQL({ url: path, max: 1 })
    // The backup waits until this table is unlocked.
    await sql.begin(async tx => {
      await tx.unsafe('LOCK TABLE webhooks IN ACCESS EXCLUSIVE MODE')
      expect((await one.admin('POST', '/backups')).body).toEqual({ running: true, data: [] })
      const partials = () =>
        existsSync(folder) ? readdirSync(folder).filter(name => /\.partial-\d+$/.test(name)) : []
      await until(() => partials().length > 0)
      const before = partials()
      expect((await at('GET')).body).toEqual({ running: true, data: [] })
      expect((await at('POST')).status).toBe(409)
      expect(partials()).toEqual(before)
      // A copy of the server with another data directory does not wait for this backup.
      expect((await at('POST', elsewhere)).status).toBe(202)
      expect(partials()).toEqual(before)
    })
    await until(async () => !(await at('GET', elsewhere)).body.running)
    await until(async () => !(await at('GET')).body.running)
    expect((await at('GET')).body.data).toHaveLength(1)
    expect(readdirSync(folder)).toEqual(['gatehouse-20260115T120000Z.db'])
    const begun = { target_id: 'backups', metadata: { action: 'started' } }
    expect(await one.events()).toMatchObject([begun, begun])
    await sql.close()
    await beside.close()
  }, 60_000)

test('EVT-19 signing keys are listed and rotated without private parts, and the caller is recorded', async () => {
  const app = await startApp()
  const list = async () => (await app.admin('GET', '/keys')).body.data
  await app.context.keys.published()
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
