import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { openInstance, openMasterKey } from '#src/cli/instance.ts'
import { loadConfig } from '#src/config.ts'
import { embed } from '#src/lib/embed.ts'
import { silentLog } from '#src/lib/log.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { changeMasterKey } from '#src/operations/instance-key.ts'
import { migratePostgres } from '#src/storage/postgres/migrate.ts'
import { getSetting } from '#src/storage/settings.ts'
import { migrate } from '#src/storage/sqlite/migrate.ts'
import { ask } from '#test/storage/copies.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { mountTmpfs } from '#test/support/tmpfs.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const configIn = (data_dir: string, env: Record<string, string> = {}) =>
  loadConfig({ GATEHOUSE_DATA_DIR: data_dir, ...env }).config

test('a full disk gets no partial key file, and a complete one when there is space', async () => {
  const data_dir = join(folder, 'full')
  mkdirSync(data_dir)
  const unmount = await mountTmpfs(data_dir, '64k')
  if (!unmount) return console.log('left out: may not mount a small disk')
  try {
    const ballast = join(data_dir, 'ballast')
    expect(() => writeFileSync(ballast, Buffer.alloc(1 << 20))).toThrow('ENOSPC')
    const file = join(data_dir, 'master.key')
    expect(() => openMasterKey(configIn(data_dir), true)).toThrow(`${file}: cannot be created (ENOSPC).`)
    expect(readdirSync(data_dir)).toEqual(['ballast'])
    rmSync(ballast)
    openMasterKey(configIn(data_dir), true)
    expect(readdirSync(data_dir)).toEqual(['master.key'])
    expect(readFileSync(file, 'utf8')).toMatch(/^[A-Za-z0-9+/]{43}=\n$/)
  } finally {
    await unmount()
  }
})

test('the current master key is refused as the new one, and nothing changes', async () => {
  const config = configIn(join(folder, 'same'))
  const instance = await openInstance(config, silentLog)
  const state = () =>
    instance.store.read(async q => ({
      sealed: await getSetting(q, 'instance_key'),
      events: await q.select().from(q.tables.events),
    }))
  try {
    const before = await state()
    const current = openMasterKey(config)
    await expect(changeMasterKey(instance, current, current)).rejects.toMatchObject({
      exit_code: 1,
      message:
        'The new master key is the current master key. Name a file with another key, or a file that does not exist.',
    })
    expect(await state()).toEqual(before)
    await changeMasterKey(instance, current, masterKey(Buffer.alloc(32, 1)))
    const { sealed, events } = await state()
    expect(sealed).not.toBe(before.sealed)
    expect(events.map(({ type, target_id, metadata }) => ({ type, target_id, metadata }))).toEqual([
      { type: 'admin.settings_changed', target_id: 'master_key', metadata: { action: 'changed' } },
    ])
  } finally {
    await instance.store.close()
  }
})

test('two processes that finish an interrupted change at once keep the old key once', async () => {
  const data_dir = join(folder, 'interrupted')
  const [file, next] = [join(data_dir, 'master.key'), join(data_dir, 'master.key.next')]
  const config = configIn(data_dir)
  await (await openInstance(config, silentLog)).store.close()
  const present = readFileSync(file, 'utf8')
  const old = `${Buffer.alloc(32, 1).toString('base64')}\n`
  writeFileSync(next, present)
  writeFileSync(file, old)
  // Both instances read `master.key.next` before one of them finishes the change.
  const opened = await Promise.allSettled([openInstance(config, silentLog), openInstance(config, silentLog)])
  for (const result of opened) if (result.status === 'fulfilled') await result.value.store.close()
  expect(opened.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
  expect(existsSync(next)).toBe(false)
  expect(readFileSync(file, 'utf8')).toBe(present)
  const kept = readdirSync(data_dir).filter(name => name.startsWith('master.key.until-'))
  expect(kept.map(name => readFileSync(join(data_dir, name), 'utf8'))).toEqual([old])
})

testOnPostgres(
  'one of several copies that start at once without a key makes the instance; the others keep no key of their own',
  async () => {
    for (let round = 0; round < 3; round++) {
      const { url, drop } = await temporaryPostgres()
      const dirs = [0, 1, 2].map(copy => join(folder, `copy-${round}-${copy}`))
      const opened = await Promise.allSettled(
        dirs.map(data_dir => openInstance(configIn(data_dir, { GATEHOUSE_DATABASE_URL: url }), silentLog)),
      )
      const kept = dirs.map(data_dir => existsSync(join(data_dir, 'master.key')))
      expect(opened.map(({ status }) => status === 'fulfilled')).toEqual(kept)
      expect(kept.filter(Boolean)).toHaveLength(1)
      for (const result of opened)
        if (result.status === 'fulfilled') await result.value.store.close()
        else
          expect(result.reason).toMatchObject({
            exit_code: 78,
            message: expect.stringContaining('master.key'),
          })
      await drop()
    }
  },
  30_000,
)

const RIGHT = Buffer.alloc(32, 1)
const APPLIED = 'SELECT name FROM migrations ORDER BY name'
const sealed = masterKey(RIGHT).seal(Buffer.alloc(32, 2), 'instance_key').toString('base64')
const ADD_INSTANCE = `INSERT INTO settings (name, value, updated_at) VALUES ('instance_key', '"${sealed}"', 0)`
const NOTHING = 'SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM settings) - 1 AS more'

/** Starts with no key, another key and the right key on a database whose last migration is pending. */
const startEach = async (
  data_dir: string,
  env: Record<string, string>,
  names: string[],
  query: (text: string) => unknown,
) => {
  mkdirSync(data_dir, { recursive: true })
  const start = async (key?: Buffer) => {
    const set = key ? { GATEHOUSE_MASTER_KEY: key.toString('base64') } : undefined
    const { store } = await openInstance(configIn(data_dir, { ...env, ...set }), silentLog)
    await store.close()
  }
  const applied = (upTo: string[]) => upTo.map(name => ({ name }))
  for (const [key, message] of [
    [undefined, 'there is no master key'],
    [Buffer.alloc(32, 3), 'does not belong to this database'],
  ] as const) {
    await expect(start(key)).rejects.toMatchObject({
      exit_code: 78,
      message: expect.stringContaining(message),
    })
    expect(await query(APPLIED)).toEqual(applied(names.slice(0, -1)))
    expect(Number(((await query(NOTHING)) as { more: number }[])[0]?.more)).toBe(0)
    expect(readdirSync(data_dir).filter(name => !name.startsWith('gatehouse.db'))).toEqual([])
  }
  await start(RIGHT)
  expect(await query(APPLIED)).toEqual(applied(names))
}

test('a start that is refused for its master key does not upgrade the schema', async () => {
  const data_dir = join(folder, 'older')
  mkdirSync(data_dir)
  const migrations = Object.entries(embed('migrations/sqlite', ['.sql']))
  using db = new Database(join(data_dir, 'gatehouse.db'), { create: true })
  migrate(db, Object.fromEntries(migrations.slice(0, -1)))
  db.run(ADD_INSTANCE)
  const names = migrations.map(([name]) => name)
  await startEach(data_dir, {}, names, text => db.query(text).all())
})

testOnPostgres(
  'a start that is refused for its master key does not upgrade the schema of PostgreSQL',
  async () => {
    const { url, drop } = await temporaryPostgres(true)
    const migrations = Object.entries(embed('migrations/postgres', ['.sql']))
    await using sql = new SQL({ url, max: 1 })
    await migratePostgres(sql, 'here', { migrations: Object.fromEntries(migrations.slice(0, -1)) })
    await ask(url, ADD_INSTANCE)
    const names = migrations.map(([name]) => name)
    const query = (text: string) => ask(url, text)
    await startEach(join(folder, 'older-postgres'), { GATEHOUSE_DATABASE_URL: url }, names, query)
    await sql.close()
    await drop()
  },
)
