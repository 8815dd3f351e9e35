/** Tests commands that root runs beside a service: the user of the service can read every file they leave. */
import { afterAll, expect, test } from 'bun:test'
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatehouse, serveExecutable, stop } from '#test/support/executable.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const isRoot = process.getuid?.() === 0
/** Owner of the data directory. Only root can give a directory away. */
const owner = isRoot ? [65_534, 65_533] : [process.getuid?.(), process.getgid?.()]

/** Gives the folder and its files to the owner. */
const give = (path: string): void => {
  const [uid = 0, gid = 0] = owner
  if (isRoot)
    for (const each of [path, ...readdirSync(path).map(name => join(path, name))]) chownSync(each, uid, gid)
}

/** Returns the names of files that another user or group owns. */
const foreign = (path: string): string[] =>
  readdirSync(path).filter(name => {
    const { uid, gid } = statSync(join(path, name))
    return uid !== owner[0] || gid !== owner[1]
  })

test('restore and keys rekey leave files of the owner of the data directory', async () => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  const run = (...args: string[]) => gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir })
  await stop(await serveExecutable({}, data_dir))
  const backup = join(folder, 'backup.db')
  expect((await run('backup', backup)).code).toBe(0)
  rmSync(join(data_dir, 'gatehouse.lock'))
  give(data_dir)
  expect(await run('restore', backup, '--force')).toMatchObject({ code: 0, stderr: '' })
  expect(await run('keys', 'rekey')).toMatchObject({ code: 0, stderr: '' })
  expect(readdirSync(data_dir)).toContain('gatehouse.lock')
  expect(foreign(data_dir)).toEqual([])
  // A backup contains all password hashes. It belongs to the user who makes it, even in a folder of another
  // user.
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(elsewhere)
  give(elsewhere)
  expect((await run('backup', join(elsewhere, 'backup.db'))).code).toBe(0)
  expect(statSync(join(elsewhere, 'backup.db')).uid).toBe(process.getuid?.() ?? -1)
}, 30_000)

test('apply to a new instance leaves files of the owner of the data directory', async () => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  give(data_dir)
  const seed = join(folder, 'seed.yaml')
  await Bun.write(seed, 'roles: [{ name: editor, permissions: [] }]')
  expect(await gatehouse(['apply', seed], { GATEHOUSE_DATA_DIR: data_dir })).toMatchObject({ code: 0 })
  expect(readdirSync(data_dir)).toContain('admin-client.json')
  expect(foreign(data_dir)).toEqual([])
}, 30_000)

testOnPostgres('migrate-to sqlite leaves a database of the owner of the data directory', async () => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  const { url, drop } = await temporaryPostgres(true)
  const env = { GATEHOUSE_DATABASE_URL: url }
  await stop(await serveExecutable(env, data_dir))
  give(data_dir)
  const moved = await gatehouse(['migrate-to', 'sqlite'], { ...env, GATEHOUSE_DATA_DIR: data_dir })
  expect(moved).toMatchObject({ code: 0, stderr: '' })
  expect(readdirSync(data_dir)).toContain('gatehouse.db')
  expect(foreign(data_dir)).toEqual([])
  await drop()
})
