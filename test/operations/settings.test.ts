import { Database } from 'bun:sqlite'
import { expect, spyOn, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DAY, HOUR, MINUTE } from '#src/lib/duration.ts'
import { openCore } from '#src/operations/core.ts'
import { scheduledBackup } from '#src/operations/scheduled-backup.ts'
import { DATABASE_FILE, openStore } from '#src/storage/open.ts'
import { startApp } from '#test/support/app.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { mountTmpfs } from '#test/support/tmpfs.ts'

const defaults = { key_rotation_interval: '90d', backup_interval: null, backup_keep: 7 }

test('EVT-14 settings are read, changed in part, and recorded once each', async () => {
  const app = await startApp()
  expect((await app.admin('GET', '/settings')).body).toEqual(defaults)
  await app.events()
  const changed = { ...defaults, key_rotation_interval: '30d' }
  const answer = await app.admin('PUT', '/settings', { key_rotation_interval: '30d', backup_keep: 7 })
  expect(answer).toMatchObject({ status: 200, body: changed })
  await app.admin('PUT', '/settings', { key_rotation_interval: '30d' })
  expect((await app.admin('GET', '/settings')).body).toEqual(changed)
  expect(await app.events()).toEqual([
    {
      type: 'admin.settings_changed',
      actor_id: 'gatehouse-admin',
      target_id: 'server',
      target_type: 'settings',
      organization_id: 'org_default',
      metadata: { fields: ['key_rotation_interval'] },
    },
  ])
})

test('an unknown setting or a value out of range refuses the whole change', async () => {
  const app = await startApp()
  for (const body of [
    { key_rotation_interval: '1m' },
    { key_rotation_interval: '23h' },
    { key_rotation_interval: '366d' },
    { key_rotation_interval: null },
    { backup_interval: '59m' },
    { backup_interval: '366d' },
    { backup_keep: 0 },
    { backup_keep: 1.5 },
    { event_retention: '1d' },
    { key_rotation_interval: '30d', backup_keep: 366 },
  ])
    expect((await app.admin('PUT', '/settings', body)).status).toBe(422)
  expect((await app.admin('GET', '/settings')).body).toEqual(defaults)
  for (const body of [
    { key_rotation_interval: '1d', backup_interval: '1h', backup_keep: 1 },
    { key_rotation_interval: '365d', backup_interval: '365d', backup_keep: 365 },
  ])
    expect(await app.admin('PUT', '/settings', body)).toMatchObject({ status: 200, body })
})

test('backups run at the interval, and a limited number is kept', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await (await openStore({ data_dir })).close()
  const app = await startApp({ data_dir })
  const backups = () => readdirSync(join(data_dir, 'backups'))
  await scheduledBackup(app.context)
  expect(() => backups()).toThrow()
  await app.admin('PUT', '/settings', { backup_interval: '1d', backup_keep: 2 })
  for (const wait of [0, HOUR, DAY, DAY]) {
    app.clock.advance(wait)
    await scheduledBackup(app.context)
  }
  const two = ['gatehouse-20260116T130000Z.db', 'gatehouse-20260117T130000Z.db'] as const
  expect(backups().sort()).toEqual([...two])
  expect(statSync(join(data_dir, 'backups')).mode & 0o777).toBe(0o700)
  // The next backup removes leftovers of a killed process. Files of the operator stay.
  const own = [
    `${two[0]}.old`,
    `${two[1]}.old`,
    `copy-${two[0]}`,
    `copy-${two[0]}.partial`,
    'mine.db.partial',
  ]
  for (const left of [`${two[0]}.partial`, `${two[0]}.partial-journal`, ...own])
    writeFileSync(join(data_dir, 'backups', left), '')
  app.clock.advance(DAY)
  await scheduledBackup(app.context)
  expect(backups().sort()).toEqual([two[1], 'gatehouse-20260118T130000Z.db', ...own].sort())
}, 60_000)

test('a backup that fails is tried again after an hour, by any worker', async () => {
  const app = await startApp({ data_dir: mkdtempSync(join(tmpdir(), 'gatehouse-')) })
  await app.admin('PUT', '/settings', { backup_interval: '1d', backup_keep: 2 })
  const spawn = spyOn(Bun, 'spawn')
  const outcomes = []
  // The data directory has no database, so each backup fails. Each backup runs in another worker.
  for (const minutes of [0, 1, 60, -120]) {
    app.clock.advance(minutes * MINUTE)
    const worker = { ...app.context, ...openCore(app.context) }
    const failure = await scheduledBackup(worker).catch((error: Error) => error.message)
    outcomes.push([spawn.mock.calls.length, failure])
  }
  const failed = expect.stringContaining('the backup failed: ')
  expect(outcomes).toEqual([
    [1, failed],
    [1, undefined],
    [2, failed],
    [3, failed],
  ])
  spawn.mockRestore()
  const folder = join(app.context.config.data_dir, 'backups')
  expect(readdirSync(folder)).toEqual(['.failed'])
  await (await openStore(app.context.config)).close()
  app.clock.advance(HOUR)
  await scheduledBackup(app.context)
  expect(readdirSync(folder)).toEqual(['gatehouse-20260115T120100Z.db'])
}, 60_000)

test('an hour counts from the failure of a backup, not from its beginning', async () => {
  const app = await startApp({ data_dir: mkdtempSync(join(tmpdir(), 'gatehouse-')) })
  await app.admin('PUT', '/settings', { backup_interval: '1d' })
  const spawn = spyOn(Bun, 'spawn').mockImplementation((() => {
    app.clock.advance(2 * HOUR)
    return { exited: 1, stderr: 'too slow' }
  }) as never)
  const outcomes = []
  for (const minutes of [0, 59, 1]) {
    app.clock.advance(minutes * MINUTE)
    const failure = await scheduledBackup(app.context).catch((error: Error) => error.message)
    outcomes.push([spawn.mock.calls.length, failure])
  }
  spawn.mockRestore()
  const failed = 'the backup failed: too slow'
  expect(outcomes).toEqual([
    [1, failed],
    [1, undefined],
    [2, failed],
  ])
})

test('a backup that does not fit beside the database is not begun; free pages of it take no room', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await (await openStore({ data_dir })).close()
  const database = new Database(join(data_dir, DATABASE_FILE))
  database.run('CREATE TABLE filler AS SELECT zeroblob(60000000) AS bytes')
  const app = await startApp({ data_dir })
  await app.admin('PUT', '/settings', { backup_interval: '1d', backup_keep: 2 })
  const folder = join(data_dir, 'backups')
  mkdirSync(folder)
  const unmount = await mountTmpfs(folder, '100m')
  if (!unmount) return console.log('left out: may not mount a small disk')
  const spawn = spyOn(Bun, 'spawn')
  await app.events()
  try {
    const needs = /^The backup needs 12\d MB of free space in .*, but only 10\d MB are free\.$/
    await expect(scheduledBackup(app.context)).rejects.toThrow(needs)
    expect(await app.admin('POST', '/backups')).toMatchObject({
      status: 409,
      body: { error: 'conflict', error_description: expect.stringMatching(needs) },
    })
    expect(spawn).not.toHaveBeenCalled()
    expect([readdirSync(folder), await app.events()]).toEqual([['.failed'], []])
    database.run('DROP TABLE filler')
    app.clock.advance(HOUR)
    await scheduledBackup(app.context)
    expect(readdirSync(folder)).toEqual(['gatehouse-20260115T130000Z.db'])
  } finally {
    spawn.mockRestore()
    database.close()
    await unmount()
  }
}, 60_000)

test('backups with names in the future stop no backup, and remove none', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await (await openStore({ data_dir })).close()
  const app = await startApp({ data_dir })
  await app.admin('PUT', '/settings', { backup_interval: '1d', backup_keep: 2 })
  const future = ['gatehouse-20310101T000000Z.db', 'gatehouse-20310102T000000Z.db'] as const
  mkdirSync(join(data_dir, 'backups'))
  for (const name of future) writeFileSync(join(data_dir, 'backups', name), '')
  const rounds = []
  for (const wait of [0, HOUR, DAY, DAY]) {
    app.clock.advance(wait)
    await app.events()
    await scheduledBackup(app.context)
    expect(await app.events()).toEqual([])
    rounds.push(readdirSync(join(data_dir, 'backups')).sort())
  }
  const first = 'gatehouse-20260115T120000Z.db'
  const [second, third] = ['gatehouse-20260116T130000Z.db', 'gatehouse-20260117T130000Z.db'] as const
  expect(rounds).toEqual([
    [first, ...future],
    [first, ...future],
    [first, second, ...future],
    [second, third, ...future],
  ])
}, 60_000)

test('the process that makes a backup gets no variable of the server, which may be a secret', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await (await openStore({ data_dir })).close()
  const app = await startApp({ data_dir })
  await app.admin('PUT', '/settings', { backup_interval: '1d' })
  // The process would refuse this value.
  process.env.GATEHOUSE_MASTER_KEY = 'secret'
  try {
    await scheduledBackup(app.context)
  } finally {
    delete process.env.GATEHOUSE_MASTER_KEY
  }
  expect(readdirSync(join(data_dir, 'backups'))).toEqual(['gatehouse-20260115T120000Z.db'])
}, 60_000)

testOnPostgres('a backup at its time reaches the server by the same environment', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const app = await startApp()
  await app.admin('PUT', '/settings', { backup_interval: '1d' })
  const { url, drop } = await temporaryPostgres()
  const database_url = url.replace('gatehouse@', '')
  process.env.PGUSER = 'gatehouse'
  try {
    await scheduledBackup({ ...app.context, config: { ...app.context.config, data_dir, database_url } })
  } finally {
    delete process.env.PGUSER
  }
  expect(readdirSync(join(data_dir, 'backups'))).toEqual(['gatehouse-20260115T120000Z.db'])
  await drop()
})

test('only an administrator of the instance can read or change them', async () => {
  const app = await startApp()
  const { id } = await create(app, '/organizations', { name: 'acme', slug: 'acme', display_name: 'Acme' })
  const tenant = await callerOf(app, id, ['settings:read', 'settings:update'])
  const reader = await callerOf(app, 'org_default', ['settings:read'])
  expect((await app.admin('GET', '/settings', undefined, tenant)).status).toBe(403)
  expect((await app.admin('PUT', '/settings', { backup_keep: 1 }, tenant)).status).toBe(403)
  expect((await app.admin('GET', '/settings', undefined, reader)).status).toBe(200)
  expect((await app.admin('PUT', '/settings', { backup_keep: 1 }, reader)).status).toBe(403)
})
